/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of connections by user. A connection beyond its user's guaranteed ones takes one of the
 * shared half; which of a user's connections those are does not matter, only how many.
 */
#include "preload/connection_quota.h"

#include <stdlib.h>

#include "base/array.h"

enum { GUARANTEED_USERS = 64, SHARED_PART = 4 }; /* chosen: a large lab; four such users fill it */

void connection_quota_init(struct connection_quota *quota, int total)
{
    *quota = (struct connection_quota){
        .total = total, .guaranteed = total / 2 / GUARANTEED_USERS, .shared = total - total / 2};
    quota->of_user = quota->guaranteed + quota->shared / SHARED_PART;
}

void connection_quota_fini(struct connection_quota *quota)
{
    free(quota->users);
    quota->users = NULL;
    quota->n_users = quota->capacity = 0;
}

static struct quota_user *find_user(const struct connection_quota *quota, uid_t uid)
{
    for (size_t i = 0; i < quota->n_users; i++)
        if (quota->users[i].uid == uid)
            return &quota->users[i];
    return NULL;
}

int connection_quota_count(const struct connection_quota *quota, uid_t uid)
{
    const struct quota_user *user = find_user(quota, uid);
    return user ? user->count : 0;
}

bool connection_quota_is_beyond(const struct connection_quota *quota, uid_t uid)
{
    return connection_quota_count(quota, uid) > quota->guaranteed;
}

enum connection_answer connection_quota_check(const struct connection_quota *quota, uid_t uid)
{
    int count = connection_quota_count(quota, uid);
    if (count >= quota->of_user)
        return CONNECTION_USER_FULL;
    if (quota->count >= quota->total)
        return CONNECTION_ALL_FULL;
    bool is_shared = count >= quota->guaranteed;
    return is_shared && quota->shared_count >= quota->shared ? CONNECTION_ALL_FULL
                                                             : CONNECTION_ADMITTED;
}

int connection_quota_add(struct connection_quota *quota, uid_t uid)
{
    struct quota_user *user = find_user(quota, uid);
    if (!user) {
        int r = ARRAY_APPEND(
            quota->users, quota->n_users, quota->capacity, (struct quota_user){.uid = uid});
        if (r < 0)
            return r;
        user = &quota->users[quota->n_users - 1];
    }
    quota->count++;
    quota->shared_count += user->count >= quota->guaranteed;
    user->count++;
    return 0;
}

void connection_quota_remove(struct connection_quota *quota, uid_t uid)
{
    struct quota_user *user = find_user(quota, uid);
    if (!user || user->count == 0)
        return;
    quota->count--;
    user->count--;
    quota->shared_count -= user->count >= quota->guaranteed;
    if (user->count == 0)
        *user = quota->users[--quota->n_users];
}
