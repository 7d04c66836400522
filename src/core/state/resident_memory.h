/* SPDX-License-Identifier: Apache-2.0 */
/* How a resident's memory tells whether it has settled. */
#ifndef COLLOC_CORE_STATE_RESIDENT_MEMORY_H
#define COLLOC_CORE_STATE_RESIDENT_MEMORY_H

#include "core/settings.h"
#include "core/view.h"

/* Moves the resident by its reading of memory. Returns whether it has just taken more than a CUDA
 * context. */
bool resident_follow_memory(
    const struct core_settings *settings, struct resident *resident, int64_t now_us);

#endif
