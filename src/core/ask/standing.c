/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What users have used, and their order by it (fairness/fair_tree.h).
 *
 * Usage decays from the time of its event on. A task's first charge reaches the log some minutes
 * after its start; so that a user's whole list of tasks does not start before that, each GPU that a
 * task holds counts as one period of usage more.
 *
 * With the setting usage_window_us, limits of GPU hours count the charges within that window
 * (fairness/usage_window.h). The user keeps the window of the last event unchanged; readers move a
 * copy to now, and to the length in the settings. So a replayed log gives the same window, whenever
 * the setting changed.
 *
 * Example, two free GPUs and equal users: ada has queued 100 tasks and bob, after her, one. All
 * usage is 0, so the oldest task starts: ada's. She now holds one GPU and bob none: his task is
 * next.
 */
#include "core/ask/standing.h"

#include <math.h>

#include "core/questions.h"
#include "core/state/state.h"
#include "core/state/users.h"
#include "fairness/charge.h"
#include "fairness/fair_tree.h"
#include "fairness/usage_window.h"

/* ---- usage ---- */

double core_decayed_usage(const struct core *core, const struct core_user *user, int64_t now_us)
{
    return charge_decay(
        (double)user->usage_us, now_us - user->usage_at_us, core->settings.usage_half_life_us);
}

struct usage_window core_usage_window(
    const struct core *core, const struct core_user *user, int64_t now_us)
{
    return usage_window_at(&user->window, core->settings.usage_window_us, now_us);
}

static bool is_of(const struct core_user *user, bool is_project, uint32_t id)
{
    return is_project ? (uint32_t)user->fair.project == id : user->uid == id;
}

/* The charges of all these users together. */
static struct usage_window window_of(
    const struct core *core, bool is_project, uint32_t id, int64_t now_us)
{
    struct usage_window sum = {.length_us = core->settings.usage_window_us, .at_us = now_us};
    for (int i = 0; i < core->users->n; i++) {
        const struct core_user *user = core->users->list[i];
        if (!is_of(user, is_project, id))
            continue;
        const struct usage_window window = core_usage_window(core, user, now_us);
        usage_window_add(&sum, &window);
    }
    return sum;
}

/* Chosen: a sum of all users is an integer; far beyond all GPUs and times. */
#define USAGE_MAX_US 1e18

int64_t core_usage_of(const struct core *core, bool is_project, uint32_t id, int64_t now_us)
{
    double sum = 0;
    if (core->settings.usage_window_us) {
        const struct usage_window window = window_of(core, is_project, id, now_us);
        return (int64_t)fmin(usage_window_sum(&window), USAGE_MAX_US);
    }
    for (int i = 0; i < core->users->n; i++)
        if (is_of(core->users->list[i], is_project, id))
            sum += core_decayed_usage(core, core->users->list[i], now_us);
    return (int64_t)sum;
}

int64_t core_usage_falls_below(
    const struct core *core, bool is_project, uint32_t id, int64_t limit_us, int64_t now_us)
{
    const struct usage_window window = window_of(core, is_project, id, now_us);
    return usage_window_falls_below(&window, (double)limit_us);
}

/* ---- ranks ---- */

void core_rank_users_anew(const struct core *core)
{
    struct core_users *users = core->users;
    users->is_stale = false;
    for (int i = 0; i < users->n; i++) {
        struct core_user *user = users->list[i];
        double ahead_us = (double)user->n_gpus * (double)CORE_CHARGE_PERIOD_US;
        double decayed_us = core->settings.usage_half_life_us
                                ? core_decayed_usage(core, user, users->changed_us)
                                : 0;
        user->fair.usage = decayed_us + ahead_us;
        users->order[i] = &user->fair;
    }
    fair_tree_rank(users->order, users->n, &core->shares);
}

int core_fair_rank(const struct core *core, uint32_t uid)
{
    const struct core_user *user = core_find_user(core, uid);
    core_rank_users(core);
    return user ? user->fair.rank : 0;
}

int core_user_number(const struct core *core, uint32_t uid)
{
    int i = core_user_position(core->users, uid);
    return i < core->users->n && core->users->list[i]->uid == uid ? i : -1;
}

int core_user_count(const struct core *core)
{
    return core->users->n;
}

struct user_standing core_user_standing(const struct core *core, int i, int64_t now_us)
{
    const struct core_user *user = core->users->list[i];
    bool decays = core->settings.usage_half_life_us > 0;
    struct usage_window window = core_usage_window(core, user, now_us);
    usage_window_charge(&window, user->accrued_us);
    core_rank_users(core);
    return (struct user_standing){.uid = user->uid,
        .project = core->shares.projects[user->fair.project].name,
        .shares = user->fair.shares,
        .usage_us = decays ? (int64_t)(core_decayed_usage(core, user, now_us) + user->accrued_us)
                           : 0,
        .recorded_us = user->usage_us,
        .window_us = (int64_t)fmin(usage_window_sum(&window), USAGE_MAX_US),
        .n_gpus = user->n_gpus,
        .fair_rank = user->fair.rank};
}
