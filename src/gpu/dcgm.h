/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SM activity from DCGM, for GPUs and MIG instances without GPM (Volta, Turing, Ampere): one
 * long-running child process whose lines are read as they come. No function waits for it, and a
 * crash or a hang in DCGM's library is one of the child. The child is colloc-dcgm, which loads
 * libdcgm; where that fails, `dcgmi dmon` of the same package, after `dcgmi discovery` has mapped
 * GPUs (by UUID) and instances (by the card's UUID and NVML's number of the GPU instance) to DCGM's
 * numbers. A child that ends or is silent is restarted, with a pause that doubles each time.
 *
 * The callers' numbers of what they watch are positions in their set of GPUs.
 */
#ifndef COLLOC_GPU_DCGM_H
#define COLLOC_GPU_DCGM_H

#include <stdint.h>

#include "gpu/dcgm_table.h"
#include "gpu/gpu.h"

struct dcgm;

/* Finds colloc-dcgm where it was installed or built together with this program. Returns 0, or
 * -ENOENT with "". */
int dcgm_find_helper(char *path, size_t size);

/*
 * helper:    path of colloc-dcgm; "": there is none
 * dcgmi:     path of dcgmi, or its name on PATH
 * period_us: between two rows
 *
 * The first dcgm_poll starts the child. Returns NULL without memory. dcgm_destroy kills the child;
 * takes NULL.
 */
struct dcgm *dcgm_create(const char *helper, const char *dcgmi, int64_t period_us);
void dcgm_destroy(struct dcgm *dcgm);

/* Changes the time between two rows: a stream is started anew at once. The same period: nothing. */
void dcgm_set_period(struct dcgm *dcgm, int64_t period_us);

/* Forgets what is watched and ends the stream; the next dcgm_poll starts one of what has been added
 * since. */
void dcgm_watch_none(struct dcgm *dcgm);

/* Watch another GPU or MIG instance. `i`: the caller's number, below DCGM_WATCHED_MAX. */
void dcgm_add_gpu(struct dcgm *dcgm, size_t i, const char *uuid);
void dcgm_add_instance(struct dcgm *dcgm, size_t i, const char *card_uuid, unsigned gpu_instance);

/* Reads the output that has come; starts or restarts the child when that is due. Does not block. */
void dcgm_poll(struct dcgm *dcgm, int64_t now_us);

/*
 * Returns the latest row with the time it was read at, or NULL when none has come for one and a
 * half periods: dcgm_missing_reason says why. The first row of a stream is left out: it is a mean
 * over no time.
 */
const struct dcgm_row *dcgm_latest(
    const struct dcgm *dcgm, size_t i, int64_t now_us, int64_t *ret_at_us);

/* Returns why there is no row, for the user, with the child's last message. */
const char *dcgm_missing_reason(const struct dcgm *dcgm, size_t i);

/* Returns what measures, for the user: "libdcgm.so.4 with nv-hostengine", or dcgmi and why the
 * library does not; "" before the first row. */
const char *dcgm_source(const struct dcgm *dcgm);

#endif
