/* SPDX-License-Identifier: Apache-2.0 */
/* What users have used, and how they rank. */
#ifndef COLLOC_CORE_ASK_STANDING_H
#define COLLOC_CORE_ASK_STANDING_H

#include "base/clock.h"
#include "core/state/state.h"

/* Chosen: a user table and a log stay small, and an order by usage changes slowly anyway. */
#define CORE_CHARGE_PERIOD_US (300 * SECOND_US)

/* The usage of the last EVENT_USAGE, decayed to now. */
double core_decayed_usage(const struct core *core, const struct core_user *user, int64_t now_us);

/* The charges within the window, moved to now. */
struct usage_window core_usage_window(
    const struct core *core, const struct core_user *user, int64_t now_us);

/* Returns the usage of a user, or of all users of a project by its number, for a limit of GPU
 * hours: that within the window, if there is one, or else decayed to now. */
int64_t core_usage_of(const struct core *core, bool is_project, uint32_t id, int64_t now_us);

/* Returns when that within the window falls below a limit above 0, if nothing more is charged. */
int64_t core_usage_falls_below(
    const struct core *core, bool is_project, uint32_t id, int64_t limit_us, int64_t now_us);

/* Ranks the users anew: core_rank_users does where something has changed. */
void core_rank_users_anew(const struct core *core);

/* Makes the ranks those of now: a memo (state/state.h, struct core_users). */
static inline void core_rank_users(const struct core *core)
{
    if (core->users->is_stale)
        core_rank_users_anew(core);
}

#endif
