/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes into the log what users have used. Samples are not in the log, so what they charge must
 * not decide anything until it is: it is added up (state/charges.c), and each
 * CORE_CHARGE_PERIOD_US, and when a task of the user ends, the decision EVENT_USAGE sets a user's
 * usage to a new value, decayed to that time. As each event has the whole usage, only the last one
 * of a user matters, and the log may drop the others. With a window for limits of GPU hours it has
 * the charges within that, too.
 */
#include "core/decide/record_usage.h"

#include "core/ask/standing.h"
#include "core/decide/effects.h"
#include "core/state/charges.h"
#include "core/state/state.h"
#include "core/state/users.h"
#include "fairness/usage_window.h"

static int record_user(struct core *core, const struct core_user *user, int64_t now_us)
{
    struct event event = {.kind = EVENT_USAGE, .time_us = now_us};
    event.usage.uid = user->uid;
    event.usage.usage_us = (int64_t)(core_decayed_usage(core, user, now_us) + user->accrued_us);
    if (user->accrued_us < 1)
        return 0;
    event.usage.window = core_usage_window(core, user, now_us);
    usage_window_charge(&event.usage.window, user->accrued_us);
    core->pass_needed = true;
    return core_decide(core, &event);
}

int core_record_usage(struct core *core, int64_t now_us)
{
    struct core_users *users = core->users;
    if (!core->settings.usage_half_life_us)
        return 0;
    if (!users->recorded_us)
        users->recorded_us = now_us;
    if (now_us - users->recorded_us < CORE_CHARGE_PERIOD_US)
        return 0;
    core_accrue_all(core, now_us);
    core_accrue_suspended(core, now_us);
    users->recorded_us = now_us;
    int r = 0;
    for (int i = 0; i < users->n && r == 0; i++)
        r = record_user(core, users->list[i], now_us);
    return r;
}

int core_record_usage_of(struct core *core, uint32_t uid, int64_t now_us)
{
    struct core_user *user = core_find_user(core, uid);
    return core->settings.usage_half_life_us && user ? record_user(core, user, now_us) : 0;
}
