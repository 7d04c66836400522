/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The users of the core, by uid: the shares of each, what its tasks hold and have used, and with
 * ORDER_FAIR its queue. A user comes with its first task or its first charge and stays.
 *
 * Usage is what the last EVENT_USAGE of the user said, as of its time. Ranks depend only on that
 * and on which GPUs are held now (ask/standing.c): a replayed log gives the same. Whatever may
 * change them marks the ranks as stale here.
 */
#include "core/state/users.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "core/state/learned_model.h"
#include "core/state/state.h"

int core_user_position(const struct core_users *users, uint32_t uid)
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
    int i = core_user_position(users, uid);
    return i < users->n && users->list[i]->uid == uid ? users->list[i] : NULL;
}

static void set_shares(const struct core *core, struct core_user *user)
{
    struct user_shares shares = share_table_find(&core->shares, user->uid);
    user->fair.project = shares.project;
    user->fair.shares = shares.shares;
}

void core_make_ranks_stale(struct core *core, int64_t now_us)
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
        ARRAY_RESERVE(users->order, users->order_capacity, users->n + 1) < 0 ||
        ARRAY_RESERVE(users->factors, users->factors_capacity, users->n + 1) < 0 ||
        ARRAY_RESERVE(users->copies, users->copies_capacity, users->n + 1) < 0) {
        free(user);
        return NULL;
    }
    int at = core_user_position(users, uid);
    for (int i = users->n++; i > at; i--)
        users->list[i] = users->list[i - 1];
    users->list[at] = user;
    user->uid = uid;
    user->queue.total = &core->n_queued;
    user->usage_at_us = now_us;
    set_shares(core, user);
    core_make_ranks_stale(core, now_us);
    if (users->n <= 2) /* what a user alone has taught no longer holds */
        core_correct_model(core);
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

void core_count_gpu(struct core *core, uint32_t uid, int change, int64_t now_us)
{
    core_find_user(core, uid)->n_gpus += change;
    core_make_ranks_stale(core, now_us);
}
