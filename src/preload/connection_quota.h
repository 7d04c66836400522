/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many connections of the preloaded library each user may have: a pure rule.
 *
 * One half of all is guaranteed: equal parts for 64 users, which no other user can take. The other
 * half is shared by all; a user can take a quarter of it. So a sweep of one user may have hundreds
 * of processes, and users who take all they can keep no other user out:
 *
 *     of 4096   guaranteed to each user 32, of the shared 2048 at most 512: so 544 for one user
 */
#ifndef COLLOC_PRELOAD_CONNECTION_QUOTA_H
#define COLLOC_PRELOAD_CONNECTION_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct quota_user {
    uid_t uid;
    int count;
};

/* Begins with connection_quota_init. */
struct connection_quota {
    int total, guaranteed, shared, of_user; /* limits */
    int count, shared_count;                /* now; shared_count: beyond the guarantees */
    struct quota_user *users;               /* those that have had a connection */
    size_t n_users, capacity;
};

enum connection_answer {
    CONNECTION_ADMITTED,
    CONNECTION_USER_FULL, /* the user has as many as a user may have */
    CONNECTION_ALL_FULL,  /* the shared ones are all taken, or there are too many users */
};

/* total: of all users together, at least 128. */
void connection_quota_init(struct connection_quota *quota, int total);

/* Releases the list of users. */
void connection_quota_fini(struct connection_quota *quota);

/* May the user have one more? */
enum connection_answer connection_quota_check(const struct connection_quota *quota, uid_t uid);

/* Has the user more connections than those guaranteed to it? */
bool connection_quota_is_beyond(const struct connection_quota *quota, uid_t uid);

/* Returns how many the user has. */
int connection_quota_count(const struct connection_quota *quota, uid_t uid);

/* The user has one more. Returns 0 or -ENOMEM. */
int connection_quota_add(struct connection_quota *quota, uid_t uid);

/* The user has one less. */
void connection_quota_remove(struct connection_quota *quota, uid_t uid);

#endif
