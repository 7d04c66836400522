/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much host memory the suspended tasks of a user may take, of what suspended tasks may take
 * together (setting suspend-memory-max). While tasks of one user fill it, those of the others could
 * give way to no task. So each user with tasks that may be suspended has an equal share:
 *
 *     60 GiB, 3 users: 20 GiB each    away      running    kept for it    may take more
 *     a                               30 GiB    40 GiB     -              60 - 30 - 20 - 8 = 2 GiB
 *     b                               -         25 GiB     20 GiB         60 - 30 = 30 GiB
 *     c                               -         8 GiB      8 GiB          30 GiB
 *
 * 1. A user whose tasks have taken less than its share may take what is free, also more than the
 *    share: a task leaves as a whole, and shares of many users are smaller than one task.
 * 2. Another user may take what is not kept. Kept is for each user what is left of its
 *    share, but no more than its running tasks have.
 *
 * A user that is alone has all of it. What is taken is never taken back: a copy leaves when its
 * task goes on.
 */
#ifndef COLLOC_CORE_COPY_SHARE_H
#define COLLOC_CORE_COPY_SHARE_H

#include <stddef.h>
#include <stdint.h>

/* What a user has, in bytes. */
struct copy_user {
    uint32_t uid;
    double away;    /* taken by copies of its tasks */
    double running; /* of its running tasks that may be suspended */
};

/* All in bytes. */
struct copy_share {
    double max;   /* of all copies together */
    double taken; /* by copies of all users */
    double share; /* of each user */
    double own;   /* taken by copies of the user in question */
    double kept;  /* for the others, as copy_share_claim says of each */
};

/* Returns what is kept for a user of whose tasks `away` is taken, and whose running tasks could
 * take `running`. */
static inline double copy_share_claim(double share, double away, double running)
{
    double left = share > away ? share - away : 0;
    return running < left ? running : left;
}

/*
 * The users that have anything, and the one in question, have equal shares.
 *
 * max:   bytes of all copies together
 * users: each once, in any order; those that have nothing do not matter
 * uid:   the user in question, who may be missing there
 *
 * Returns the shares as they are for that user.
 */
static inline struct copy_share copy_share_of(
    double max, const struct copy_user *users, size_t n, uint32_t uid)
{
    struct copy_share of = {.max = max};
    int n_users = 1;
    for (size_t i = 0; i < n; i++) {
        const struct copy_user *user = &users[i];
        of.taken += user->away;
        if (user->uid == uid)
            of.own = user->away;
        else
            n_users += user->away > 0 || user->running > 0;
    }
    of.share = max / n_users;
    for (size_t i = 0; i < n; i++)
        if (users[i].uid != uid)
            of.kept += copy_share_claim(of.share, users[i].away, users[i].running);
    return of;
}

/* Returns how much more the user's tasks may take. */
static inline double copy_share_left(const struct copy_share *of)
{
    double is_free = of->max > of->taken ? of->max - of->taken : 0;
    if (of->own < of->share)
        return is_free;
    return is_free > of->kept ? is_free - of->kept : 0;
}

#endif
