/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas: the connections and the bytes of pending requests and answers that each user may take, so
 * that no user and no group of users can block the others or root. Pure: the server reports what
 * comes and goes.
 *
 * A machine has far more user ids than users: each user of Debian has 65,536 subordinate ids, and
 * `unshare -U` can connect from any of them. Ids that are not in the user database are therefore
 * marked as unlisted, and all unlisted ids together have the quota of one user.
 */
#ifndef COLLOC_API_QUOTA_H
#define COLLOC_API_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Counts connections whose user is not known. No user has this id. */
#define QUOTA_UNPROVEN_UID ((uid_t)-2)

struct quota_limits {
    int connections;          /* of all users together */
    int connections_reserved; /* of those, for root alone */
    int connections_per_user; /* of one user other than root */
    int connections_unproven; /* of QUOTA_UNPROVEN_UID */
    size_t bytes;             /* of all users together */
    size_t bytes_reserved;    /* of those, for root alone */
    size_t bytes_per_user;    /* of one user other than root */
};

/* A user with at least one connection. */
struct quota_user {
    uid_t uid;
    bool is_unlisted;
    int connections; /* 0: this entry is free */
    size_t bytes;
};

struct quota {
    struct quota_limits limits;
    int connections; /* of all users */
    size_t bytes;
    struct quota_user *users; /* limits.connections of them */
};

/* Returns 0 or -ENOMEM. */
int quota_init(struct quota *quota, const struct quota_limits *limits);

/* Takes an all-zero quota, too. */
void quota_fini(struct quota *quota);

/*
 * Counts a new connection.
 *
 * uid:         (uid_t)-1 when the kernel does not report it
 * is_unlisted: not in the user database; false while that is being looked up
 *
 * Returns the user's entry, valid until its last connection is disconnected; or NULL when the
 * connection must be refused, which is then not counted.
 */
struct quota_user *quota_connect(struct quota *quota, uid_t uid, bool is_unlisted);

/* Counts the end of a connection. */
void quota_disconnect(struct quota *quota, struct quota_user *user);

/* Marks all open connections of `uid` as unlisted or not. Returns true when that exceeds the quota:
 * the connections of `uid` must be closed then. */
bool quota_set_unlisted(struct quota *quota, uid_t uid, bool is_unlisted);

enum quota_answer { QUOTA_TAKEN = 0, QUOTA_USER_FULL = 1, QUOTA_ALL_FULL = 2 };

/*
 * Takes bytes for one of the user's requests. A user below the limit may exceed it once, so that
 * one answer may be longer than the limit.
 *
 * Returns QUOTA_TAKEN; or, with nothing taken, which quota is used up: the user's or that of all.
 */
enum quota_answer quota_take(struct quota *quota, struct quota_user *user, size_t bytes);

/* Returns bytes that quota_take took. */
void quota_give_back(struct quota *quota, struct quota_user *user, size_t bytes);

#endif
