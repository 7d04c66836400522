/* SPDX-License-Identifier: Apache-2.0 */
/* The list of reservations in advance. */
#ifndef COLLOC_CORE_STATE_ADVANCES_H
#define COLLOC_CORE_STATE_ADVANCES_H

#include "core/state/state.h"

enum { CORE_ADVANCE_GPUS_MAX = 256 }; /* GPUs of one reservation */

/* Has it GPUs, users and a time? */
bool core_is_advance_sound(const struct advance *advance);

/* Applies a RESERVE or UNRESERVE. Returns 0, CORE_NOT_NOW or -ENOMEM. */
int core_apply_advance(struct core *core, const struct event *event);

#endif
