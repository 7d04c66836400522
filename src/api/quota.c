/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what each user takes of the server: a table of the users with a connection, searched
 * linearly. It has one entry per possible connection, so that there is always a free one. */
#include "api/quota.h"

#include <errno.h>
#include <stdlib.h>

int quota_init(struct quota *quota, const struct quota_limits *limits)
{
    *quota = (struct quota){.limits = *limits};
    quota->users = calloc((size_t)limits->connections, sizeof *quota->users);
    return quota->users ? 0 : -ENOMEM;
}

void quota_fini(struct quota *quota)
{
    free(quota->users);
    *quota = (struct quota){0};
}

static struct quota_user *find_user(const struct quota *quota, uid_t uid)
{
    struct quota_user *free_entry = NULL;
    for (int i = 0; i < quota->limits.connections; i++) {
        struct quota_user *user = &quota->users[i];
        if (user->connections && user->uid == uid)
            return user;
        if (!user->connections && !free_entry)
            free_entry = user;
    }
    if (free_entry)
        *free_entry = (struct quota_user){.uid = uid};
    return free_entry;
}

/* What counts against the user's limits: for an unlisted user, the sum of all unlisted users. */
static struct quota_user counted_usage(const struct quota *quota, const struct quota_user *user)
{
    struct quota_user sum = {.uid = user->uid};
    if (!user->is_unlisted)
        return *user;
    for (int i = 0; i < quota->limits.connections; i++) {
        if (!quota->users[i].is_unlisted)
            continue;
        sum.connections += quota->users[i].connections;
        sum.bytes += quota->users[i].bytes;
    }
    return sum;
}

static int find_connections_max(const struct quota_limits *limits, uid_t uid)
{
    return uid == QUOTA_UNPROVEN_UID ? limits->connections_unproven : limits->connections_per_user;
}

struct quota_user *quota_connect(struct quota *quota, uid_t uid, bool is_unlisted)
{
    const struct quota_limits *limits = &quota->limits;
    bool is_root = uid == 0;
    struct quota_user *user = find_user(quota, uid);
    if (!user || uid == (uid_t)-1)
        return NULL;
    user->is_unlisted = is_unlisted && !is_root;
    int most = limits->connections - (is_root ? 0 : limits->connections_reserved);
    if (quota->connections >= most ||
        (!is_root && counted_usage(quota, user).connections >= find_connections_max(limits, uid)))
        return NULL;
    user->connections++;
    quota->connections++;
    return user;
}

void quota_disconnect(struct quota *quota, struct quota_user *user)
{
    user->connections--;
    quota->connections--;
}

bool quota_set_unlisted(struct quota *quota, uid_t uid, bool is_unlisted)
{
    struct quota_user *user = find_user(quota, uid);
    if (!user || uid == 0)
        return false;
    user->is_unlisted = is_unlisted;
    return counted_usage(quota, user).connections > quota->limits.connections_per_user;
}

enum quota_answer quota_take(struct quota *quota, struct quota_user *user, size_t bytes)
{
    const struct quota_limits *limits = &quota->limits;
    bool is_root = user->uid == 0;
    size_t most = limits->bytes - (is_root ? 0 : limits->bytes_reserved);
    if (!is_root && counted_usage(quota, user).bytes >= limits->bytes_per_user)
        return QUOTA_USER_FULL;
    if (bytes > most || quota->bytes > most - bytes)
        return QUOTA_ALL_FULL;
    user->bytes += bytes;
    quota->bytes += bytes;
    return QUOTA_TAKEN;
}

void quota_give_back(struct quota *quota, struct quota_user *user, size_t bytes)
{
    user->bytes -= bytes;
    quota->bytes -= bytes;
}
