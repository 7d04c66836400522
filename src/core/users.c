/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The users of the core: the charges of each, and their order (fairness/fair_tree.h).
 *
 * Samples are not in the log, so what they charge must not decide anything until it is: it is added
 * up in `accrued_us`, and each CHARGE_PERIOD_US, and when a task of the user ends, the decision
 * EVENT_USAGE sets a user's usage to a new value, decayed to that time. Ranks depend only on these
 * values and on which GPUs are held now: a replayed log gives the same usage and the same ranks. As
 * each event has the whole usage, only the last one of a user matters, and the log may drop the
 * others.
 *
 * A task's first charge reaches the log some minutes after its start. So that a user's whole list
 * of tasks does not start before that, each GPU that a task holds counts as one period of usage
 * more.
 *
 * With the setting usage_window_us the event also has the user's charges within that window
 * (fairness/usage_window.h), for the limits of GPU hours. The user keeps the window of the event
 * unchanged; readers move a copy to now, and to the length in the settings. So a replayed log gives
 * the same window, whenever the setting changed.
 *
 * Example, two free GPUs and equal users: ada has queued 100 tasks and bob, after her, one. All
 * usage is 0, so the oldest task starts: ada's. She now holds one GPU and bob none: his task is
 * next.
 */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "core/core_private.h"
#include "fairness/charge.h"
#include "fairness/usage_window.h"

/* Chosen: a user table and a log stay small, and an order by usage changes slowly anyway. */
#define CHARGE_PERIOD_US (300 * SECOND_US)

/* Chosen: a sum of all users is an integer; far beyond all GPUs and times. */
#define USAGE_MAX_US 1e18

/* ---- the table ---- */

/* The position of the first user with a number of at least `uid`. */
static int lower_bound(const struct core_users *users, uint32_t uid)
{
    int low = 0, high = users->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (users->list[middle]->uid < uid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct core_user *core_find_user(const struct core *core, uint32_t uid)
{
    const struct core_users *users = core->users;
    int i = lower_bound(users, uid);
    return i < users->n && users->list[i]->uid == uid ? users->list[i] : NULL;
}

static void set_shares(const struct core *core, struct core_user *user)
{
    struct user_shares shares = share_table_find(&core->shares, user->uid);
    user->fair.project = shares.project;
    user->fair.shares = shares.shares;
}

static void make_stale(struct core *core, int64_t now_us)
{
    core->users->is_stale = true;
    core->users->changed_us = now_us;
}

struct core_user *core_add_user(struct core *core, uint32_t uid, int64_t now_us)
{
    struct core_users *users = core->users;
    struct core_user *user = core_find_user(core, uid);
    if (user)
        return user;
    user = calloc(1, sizeof *user);
    if (!user || ARRAY_RESERVE(users->list, users->capacity, users->n + 1) < 0 ||
        ARRAY_RESERVE(users->order, users->order_capacity, users->n + 1) < 0) {
        free(user);
        return NULL;
    }
    int at = lower_bound(users, uid);
    for (int i = users->n++; i > at; i--)
        users->list[i] = users->list[i - 1];
    users->list[at] = user;
    user->uid = uid;
    user->queue.total = &core->n_queued;
    user->usage_at_us = now_us;
    set_shares(core, user);
    make_stale(core, now_us);
    return user;
}

void core_set_shares(struct core *core, const struct share_table *table)
{
    if (table)
        core->shares = *table;
    else
        share_table_init(&core->shares);
    core->settings.shares = &core->shares;
    for (int i = 0; i < core->users->n; i++)
        set_shares(core, core->users->list[i]);
    core->users->change++;
    core->users->is_stale = true;
}

void core_free_users(struct core *core)
{
    for (int i = 0; core->users && i < core->users->n; i++)
        free(core->users->list[i]);
    if (core->users) {
        free(core->users->list);
        free(core->users->order);
    }
    free(core->users);
}

/* ---- charging ---- */

/* A MIG instance is a part of its card, which is no smaller than the largest GPU of the view. */
static double size_of(const struct core *core, const struct gpu_view *gpu)
{
    struct reading largest = core->view.mem_total_max_bytes;
    bool is_part = gpu->id.is_mig_instance && largest.valid;
    return is_part ? (double)gpu->id.mem_total_bytes / largest.value : 1;
}

/*
 * The GPU's activity is divided among its computing residents: by the expected activity of each
 * alone; equally, if one of these is unknown. What is measured of a compute instance is that of all
 * in its memory domain, and is divided among all residents of that.
 */
struct activity {
    struct reading level;
    double weights; /* their sum; 0: equal parts */
    double equal_part;
    double resident_part; /* 1 divided by the number of residents, also of those that are stopped */
};

static struct activity activity_of(const struct gpu_view *gpu)
{
    struct activity activity = {
        .level = gpu->smact_level.valid ? gpu->smact_level : gpu->utilisation_level,
        .equal_part = 1,
        .resident_part = 1};
    bool all_known = true;
    int n = 0, n_residents = 0;
    const struct resident *each;
    struct domain_walk walk = memory_domain_walk(gpu);
    if (gpu->n_residents == 1 && !memory_domain_is_shared(gpu))
        return activity; /* most GPUs */
    while ((each = memory_domain_resident(&walk))) {
        n_residents++;
        if (each->is_stopped)
            continue;
        n++;
        all_known &= each->expect.smact.valid;
        activity.weights += each->expect.smact.value;
    }
    if (!all_known)
        activity.weights = 0;
    activity.equal_part = n > 0 ? 1.0 / n : 0;
    activity.resident_part = 1.0 / n_residents;
    return activity;
}

/* A task that does not compute has no part. */
static struct reading smact_part(const struct activity *activity, const struct resident *resident)
{
    if (!activity->level.valid)
        return READING_NONE;
    if (resident->is_stopped)
        return reading_of(0);
    double part = activity->weights > 0 ? resident->expect.smact.value / activity->weights
                                        : activity->equal_part;
    return reading_of(activity->level.value * part);
}

static struct reading memory_part(const struct gpu_view *gpu, const struct resident *resident)
{
    double total = (double)gpu->id.mem_total_bytes;
    if (total <= 0)
        return READING_NONE;
    if (resident->mem_used_bytes.valid)
        return reading_of(resident->mem_used_bytes.value / total);
    struct reading need = resident->need_bytes;
    return need.valid ? reading_of(need.value / total) : READING_NONE;
}

static void accrue_place(struct core *core, struct gpu_view *gpu, int64_t now_us)
{
    int64_t span_us = now_us - gpu->accrued_us;
    if (span_us <= 0)
        return;
    gpu->accrued_us = now_us;
    if (gpu->n_residents == 0 || !core->settings.usage_half_life_us)
        return;
    const double size_us = size_of(core, gpu) * (double)span_us;
    if (gpu->exclusive_for == gpu->residents[0].task && gpu->n_residents == 1) {
        gpu->residents[0].user->accrued_us += size_us; /* as charge_rate, sooner */
        return;
    }
    const struct activity activity = activity_of(gpu);
    double rate = 0; /* of the residents from the last change of user on */
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        const struct gpu_use use = {.is_whole = gpu->exclusive_for == resident->task,
            .equal_part = activity.resident_part,
            .smact = smact_part(&activity, resident),
            .memory = memory_part(gpu, resident)};
        bool is_last = i + 1 == gpu->n_residents || resident[1].user != resident->user;
        rate += charge_rate(&use);
        if (is_last) {
            resident->user->accrued_us += rate * size_us;
            rate = 0;
        }
    }
}

void core_accrue(struct core *core, struct gpu_view *gpu, int64_t now_us)
{
    struct gpu_view *at = gpu;
    do {
        accrue_place(core, at, now_us);
        at = memory_domain_next(at);
    } while (at != gpu);
}

static void accrue_all(struct core *core, int64_t now_us)
{
    for (int i = 0; i < core->view.n_gpus; i++)
        if (core->view.gpus[i].n_residents)
            accrue_place(core, &core->view.gpus[i], now_us);
}

/* A suspended task is charged for the memory that it had on each GPU, at a small rate. */
static void accrue_suspended(struct core *core, int64_t now_us)
{
    struct reading largest = core->view.mem_total_max_bytes;
    for (int i = 0; i < core->n_tasks; i++) {
        const struct task *task = core->tasks[i];
        if (task->state != TASK_SUSPENDED)
            continue;
        int64_t since_us = core->users->recorded_us;
        since_us = task->run->yield.since_us > since_us ? task->run->yield.since_us : since_us;
        bool is_known = task->run->yield.bytes.valid && largest.valid;
        double part = is_known ? task->run->yield.bytes.value / largest.value : 1;
        core_find_user(core, task->uid)->accrued_us += CHARGE_SUSPENDED * part *
                                                       task->request.gpus *
                                                       (double)(now_us - since_us);
    }
}

void core_count_gpu(struct core *core, uint32_t uid, int change, int64_t now_us)
{
    core_find_user(core, uid)->n_gpus += change;
    make_stale(core, now_us);
}

/* ---- usage in the log ---- */

static double usage_at(const struct core *core, const struct core_user *user, int64_t now_us)
{
    return charge_decay(
        (double)user->usage_us, now_us - user->usage_at_us, core->settings.usage_half_life_us);
}

static struct usage_window window_at(
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
        const struct usage_window window = window_at(core, user, now_us);
        usage_window_add(&sum, &window);
    }
    return sum;
}

int64_t core_usage_of(const struct core *core, bool is_project, uint32_t id, int64_t now_us)
{
    double sum = 0;
    if (core->settings.usage_window_us) {
        const struct usage_window window = window_of(core, is_project, id, now_us);
        return (int64_t)fmin(usage_window_sum(&window), USAGE_MAX_US);
    }
    for (int i = 0; i < core->users->n; i++)
        if (is_of(core->users->list[i], is_project, id))
            sum += usage_at(core, core->users->list[i], now_us);
    return (int64_t)sum;
}

int64_t core_usage_falls_below(
    const struct core *core, bool is_project, uint32_t id, int64_t limit_us, int64_t now_us)
{
    const struct usage_window window = window_of(core, is_project, id, now_us);
    return usage_window_falls_below(&window, (double)limit_us);
}

/* Replayed time was charged by another process: its charges are in the usage. */
int core_apply_usage(struct core *core, const struct event *event)
{
    struct core_user *user = core_add_user(core, event->usage.uid, event->time_us);
    if (!user)
        return -ENOMEM;
    if (core->replayed)
        accrue_all(core, event->time_us);
    user->usage_us = event->usage.usage_us;
    user->usage_at_us = event->time_us;
    user->window = event->usage.window;
    user->window.at_us = event->time_us;
    user->accrued_us = 0;
    make_stale(core, event->time_us);
    return 0;
}

static int record_user(struct core *core, const struct core_user *user, int64_t now_us)
{
    struct event event = {.kind = EVENT_USAGE, .time_us = now_us};
    event.usage.uid = user->uid;
    event.usage.usage_us = (int64_t)(usage_at(core, user, now_us) + user->accrued_us);
    if (user->accrued_us < 1)
        return 0;
    event.usage.window = window_at(core, user, now_us);
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
    if (now_us - users->recorded_us < CHARGE_PERIOD_US)
        return 0;
    accrue_all(core, now_us);
    accrue_suspended(core, now_us);
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

/* ---- ranks ---- */

void core_rank_users(const struct core *core)
{
    struct core_users *users = core->users;
    if (!users->is_stale)
        return;
    users->is_stale = false;
    for (int i = 0; i < users->n; i++) {
        struct core_user *user = users->list[i];
        double ahead_us = (double)user->n_gpus * (double)CHARGE_PERIOD_US;
        double decayed_us = core->settings.usage_half_life_us
                                ? usage_at(core, user, users->changed_us)
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
    int i = lower_bound(core->users, uid);
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
    struct usage_window window = window_at(core, user, now_us);
    usage_window_charge(&window, user->accrued_us);
    core_rank_users(core);
    return (struct user_standing){.uid = user->uid,
        .project = core->shares.projects[user->fair.project].name,
        .shares = user->fair.shares,
        .usage_us = decays ? (int64_t)(usage_at(core, user, now_us) + user->accrued_us) : 0,
        .recorded_us = user->usage_us,
        .window_us = (int64_t)fmin(usage_window_sum(&window), USAGE_MAX_US),
        .n_gpus = user->n_gpus,
        .fair_rank = user->fair.rank};
}
