/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a failure beside its log. */
#ifndef COLLOC_EXEC_FAILURE_FACTS_H
#define COLLOC_EXEC_FAILURE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/failure.h"

struct failure_facts {
    int64_t largest_gpu_bytes; /* memory of the largest GPU here; 0: not known */
    bool was_shared;           /* others were on its GPU, or it had a limit of memory */
    bool gpu_was_full;         /* others were on its GPU, and had left little of its memory */
    bool by_mps;               /* it was a client of MPS */
};

/*
 * Corrects a class that the log alone gave:
 *
 * 1. A library of CUDA that could not start on a full GPU lacked GPU memory; it seldom says so.
 * 2. A program that asks for more memory than any GPU has asks for too much: its own error. The
 *    evidence then begins with that. What it held already is counted where it shared its GPU, and
 *    would run again; a program that had its GPU alone ran out of memory.
 * 3. A program that is no client of MPS did not fail by an MPS server.
 */
void failure_apply_facts(struct failure *failure, const struct failure_facts *facts);

/*
 * Reads from a line about a lack of GPU memory how much the process asked for.
 *
 * with_held: adds what it held already, where the line has that
 *
 * Returns bytes, or 0 when the line has no such number.
 */
int64_t failure_asked_bytes(const char *evidence, bool with_held);

/* Does the failure's line name a fault of the GPU itself, such as an ECC error? */
bool failure_is_hardware(const struct failure *failure);

#endif
