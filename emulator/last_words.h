/* SPDX-License-Identifier: Apache-2.0 */
/* What a training framework prints when its GPU fails it: the wording that a resource manager has
 * to understand. */
#ifndef COLLOC_EMULATOR_LAST_WORDS_H
#define COLLOC_EMULATOR_LAST_WORDS_H

#include <stdio.h>

#include "emulator/world.h"

enum framework { FRAMEWORK_PYTORCH, FRAMEWORK_TENSORFLOW, FRAMEWORK_JAX, FRAMEWORK_CUDA };

/* By its name in lower case; -1 when unknown. */
int framework_find(const char *name);

/* Process `p` could not have `bytes` more on its GPU number `ordinal`. Under the world's lock. */
void last_words_oom(FILE *out, enum framework framework, const struct world *world,
    const struct process *p, int ordinal, int64_t bytes);

/* A CUDA call failed with `error` ("unspecified launch failure"). */
void last_words_cuda(FILE *out, enum framework framework, const char *error);

#endif
