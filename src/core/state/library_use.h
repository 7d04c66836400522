/* SPDX-License-Identifier: Apache-2.0 */
/* Whether allocations of residents wait where memory is short (library_use.c). */
#ifndef COLLOC_CORE_STATE_LIBRARY_USE_H
#define COLLOC_CORE_STATE_LIBRARY_USE_H

#include "core/event.h"

struct core;

/* Sets what is known of the resident's allocations before a process of it is seen. */
void core_expect_library(struct resident *resident);

/* Notes what a sample lists of the resident's processes. */
void core_note_library_use(
    struct core *core, struct resident *resident, const struct task_memory *listed);

#endif
