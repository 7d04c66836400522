/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions and effects that a step leaves for the driver. */
#ifndef COLLOC_CORE_DECIDE_EFFECTS_H
#define COLLOC_CORE_DECIDE_EFFECTS_H

#include "core/state/state.h"

/* Leaves an effect to be carried out. `event`: of EFFECT_APPEND, or NULL. Returns 0 or -ENOMEM. */
int core_add_effect(
    struct core *core, enum effect_kind kind, uint64_t task, const struct event *event);

/* Applies a decision and leaves it to be written to the log. Returns 0 or -ENOMEM. */
int core_decide(struct core *core, const struct event *event);

/* Records for each resident of the GPU that external processes are beside it. Returns 0 or
 * -ENOMEM. */
int core_record_external(struct core *core, int gpu, int64_t now_us);

#endif
