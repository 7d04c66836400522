/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SM activity from DCGM, for GPUs and MIG instances without GPM (Volta, Turing, Ampere): one
 * long-running `dcgmi dmon` whose lines are read as they come. No function waits for it. `dcgmi
 * discovery` maps them to DCGM's numbers first: GPUs by UUID, instances by the card's UUID and
 * NVML's number of the GPU instance. When dcgmi ends or is silent it is restarted, with a pause
 * that doubles each time.
 *
 * The callers' numbers of what they watch are positions in their set of GPUs.
 */
#ifndef COLLOC_GPU_DCGM_H
#define COLLOC_GPU_DCGM_H

#include <stdint.h>

#include "gpu/dcgm_table.h"
#include "gpu/gpu.h"

struct dcgm;

/* Chosen: 16 cards with 7 instances each are 128. */
enum { DCGM_WATCHED_MAX = 256 };

/*
 * program:   path of dcgmi, or its name on PATH; started by the first dcgm_poll
 * period_us: between two rows
 *
 * Returns NULL without memory. dcgm_destroy kills the program; takes NULL.
 */
struct dcgm *dcgm_create(const char *program, int64_t period_us);
void dcgm_destroy(struct dcgm *dcgm);

/* Changes the time between two rows: a stream is started anew at once. The same period: nothing. */
void dcgm_set_period(struct dcgm *dcgm, int64_t period_us);

/* Forgets what is watched and ends the stream; the next dcgm_poll starts one of what has been added
 * since. */
void dcgm_watch_none(struct dcgm *dcgm);

/* Watch another GPU or MIG instance. `i`: the caller's number, below DCGM_WATCHED_MAX. */
void dcgm_add_gpu(struct dcgm *dcgm, size_t i, const char *uuid);
void dcgm_add_instance(struct dcgm *dcgm, size_t i, const char *card_uuid, unsigned gpu_instance);

/* Reads the output that has come; starts or restarts dcgmi when that is due. Does not block. */
void dcgm_poll(struct dcgm *dcgm, int64_t now_us);

/*
 * Returns the latest row with the time it was read at, or NULL when none has come for one and a
 * half periods: dcgm_missing_reason says why. The first row of a stream is left out: it is a mean
 * over no time.
 */
const struct dcgm_row *dcgm_latest(
    const struct dcgm *dcgm, size_t i, int64_t now_us, int64_t *ret_at_us);

/* Returns why there is no row, for the user, with dcgmi's last message. */
const char *dcgm_missing_reason(const struct dcgm *dcgm, size_t i);

#endif
