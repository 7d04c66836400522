/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes into the log how much a user's tasks have been delayed by others (state/delays.c), as
 * decide/record_usage.c does for usage: each event has the whole sums, so only the last one of a
 * user and a way of sharing matters, and the log may drop the others. A crash loses what is newer.
 */
#include "core/decide/record_delays.h"

#include <math.h>

#include "base/clock.h"
#include "core/decide/effects.h"
#include "core/state/delays.h"
#include "core/state/users.h"

/* Chosen: 12 events an hour for each user at most, and none for a delay that says little. */
#define RECORD_PERIOD_US (300 * SECOND_US)
#define RECORD_DELAY_S   30

int core_record_delays(struct core *core, const struct task *task, int64_t now_us)
{
    const struct core_user *user = core_find_user(core, task->uid);
    const struct user_delays *delays = user ? &user->delays[task->run->share.sharing] : NULL;
    if (!delays || delays->newer.predicted_s < RECORD_DELAY_S ||
        (delays->recorded_us && now_us - delays->recorded_us < RECORD_PERIOD_US))
        return 0;
    struct delay_sum sum = delays->recorded;
    delay_sum_merge(&sum, &delays->newer);
    struct event event = {.kind = EVENT_DELAYS, .time_us = now_us};
    event.delays.uid = task->uid;
    event.delays.sharing = task->run->share.sharing;
    event.delays.measured_us = llround(sum.measured_s * (double)SECOND_US);
    event.delays.predicted_us = llround(sum.predicted_s * (double)SECOND_US);
    return core_decide(core, &event);
}
