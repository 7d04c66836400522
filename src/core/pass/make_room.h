/* SPDX-License-Identifier: Apache-2.0 */
/* The stage that moves a task to make room. */
#ifndef COLLOC_CORE_PASS_MAKE_ROOM_H
#define COLLOC_CORE_PASS_MAKE_ROOM_H

#include "core/state/state.h"

/* Moves a task to another GPU, if the head of the main queue can start then and that gains more
 * than it costs. Returns 0 or -ENOMEM. */
int core_make_room(struct core *core, int64_t now_us);

#endif
