/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DCGM's SM activity counters, for GPUs that have no GPM (Volta, Turing, Ampere): one long-lived
 * `dcgmi dmon` whose lines are read as they come. Nothing here waits for it. It is told the GPUs by
 * the numbers that `dcgmi discovery -l` gives their UUIDs; it is started again, later each time,
 * when it ends or falls silent.
 */
#ifndef COLLOC_GPU_DCGM_H
#define COLLOC_GPU_DCGM_H

#include <stdint.h>

#include "gpu/dcgm_table.h"
#include "gpu/gpu.h"

struct dcgm;

/*
 * `program`: a path, or a name on PATH. Starts nothing yet. NULL: no memory. dcgm_destroy ends what
 * was started; takes NULL.
 */
struct dcgm *dcgm_create(const char *program, int64_t period_us);
void dcgm_destroy(struct dcgm *dcgm);

/* A GPU to be asked about; before the first dcgm_turn. `gpu` is the caller's number, below
 * DCGM_GPUS_MAX. */
void dcgm_want(struct dcgm *dcgm, size_t gpu, const char *uuid);

/* Reads what has come, starts what is to be started. */
void dcgm_turn(struct dcgm *dcgm, int64_t now_us);

/*
 * The GPU's latest row (but for the first of a stream, which is a mean over no time) with the time
 * it was read, or NULL: none has come for one and a half periods, and dcgm_why_not says why.
 */
const struct dcgm_row *dcgm_latest(
    const struct dcgm *dcgm, size_t gpu, int64_t now_us, int64_t *ret_at_us);

/* In words for people, dcgmi's own last words included; "" when there is nothing to say. */
const char *dcgm_why_not(const struct dcgm *dcgm);

#endif
