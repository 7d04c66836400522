/* SPDX-License-Identifier: Apache-2.0 */
/* How a training takes its GPU memory: the one model of the simulator and of the emulator. Pure. */
#ifndef COLLOC_SHARING_MEMORY_STEPS_H
#define COLLOC_SHARING_MEMORY_STEPS_H

#include <stdint.h>

/* The context, then six segments. */
enum { MEMORY_STEPS = 7 };

/*
 * The size of one allocation step of a training.
 *
 * total_bytes:   of all steps together.
 * context_bytes: of a CUDA context; a training that takes less has a context of that size.
 * step:          0 is the context, MEMORY_STEPS - 1 the last segment.
 *
 * Returns the bytes; those of all steps add up to the total, but for what is rounded down.
 */
int64_t memory_step_bytes(int64_t total_bytes, int64_t context_bytes, int step);

/*
 * The time of an allocation step.
 *
 * ramp_s: from the first segment to the last.
 *
 * Returns the seconds from the context on: 0 for the context and the first segment.
 */
double memory_step_due_s(double ramp_s, int step);

#endif
