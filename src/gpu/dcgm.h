/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SM activity from DCGM, for GPUs without GPM (Volta, Turing, Ampere): one long-running `dcgmi
 * dmon` whose lines are read as they come. No function waits for it. `dcgmi discovery -l` maps the
 * GPUs' UUIDs to DCGM's numbers first. When dcgmi ends or is silent it is restarted, with a pause
 * that doubles each time.
 */
#ifndef COLLOC_GPU_DCGM_H
#define COLLOC_GPU_DCGM_H

#include <stdint.h>

#include "gpu/dcgm_table.h"
#include "gpu/gpu.h"

struct dcgm;

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

/* Adds a GPU to query, before the first dcgm_poll. `gpu`: the caller's number, below
 * DCGM_GPUS_MAX. */
void dcgm_add_gpu(struct dcgm *dcgm, size_t gpu, const char *uuid);

/* Reads the output that has come; starts or restarts dcgmi when that is due. Does not block. */
void dcgm_poll(struct dcgm *dcgm, int64_t now_us);

/*
 * Returns the GPU's latest row with the time it was read at, or NULL when none has come for one and
 * a half periods: dcgm_missing_reason says why. The first row of a stream is left out: it is a mean
 * over no time.
 */
const struct dcgm_row *dcgm_latest(
    const struct dcgm *dcgm, size_t gpu, int64_t now_us, int64_t *ret_at_us);

/* Returns why there is no row, for the user, with dcgmi's last message. */
const char *dcgm_missing_reason(const struct dcgm *dcgm);

#endif
