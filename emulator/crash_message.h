/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a training framework when its GPU fails. */
#ifndef COLLOC_EMULATOR_CRASH_MESSAGE_H
#define COLLOC_EMULATOR_CRASH_MESSAGE_H

#include <stdio.h>

#include "emulator/world.h"

enum framework { FRAMEWORK_PYTORCH, FRAMEWORK_TENSORFLOW, FRAMEWORK_JAX, FRAMEWORK_CUDA };

/* Finds a framework by its name in lower case. Returns an enum framework, or -1. */
int framework_find(const char *name);

/*
 * Prints that an allocation failed. Between world_enter and world_leave.
 *
 * p:       the process.
 * ordinal: which of its seats had too little memory.
 * bytes:   of the request.
 */
void crash_message_oom(FILE *out, enum framework framework, const struct world *world,
    const struct process *p, int ordinal, int64_t bytes);

/* Prints that a CUDA call failed. `error`: CUDA's words, "unspecified launch failure". */
void crash_message_cuda(FILE *out, enum framework framework, const char *error);

#endif
