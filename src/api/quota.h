/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas: how much of the server each user may take, in connections and in bytes of requests and
 * answers under way, so that no user and no group of users keeps the others, or root, from being
 * answered. Pure: the server reports what comes and goes.
 *
 * A machine has far more user ids than users: each user of Debian has 65,536 subordinate ids, and
 * `unshare -U` lets a connection come from any of them. Ids that are not in the user database are
 * therefore marked as strangers, and all strangers together have one user's part.
 */
#ifndef COLLOC_API_QUOTA_H
#define COLLOC_API_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct quota_limits {
    int connections;          /* of all users together */
    int connections_reserved; /* of those, for root alone */
    int connections_per_user; /* of one user other than root */
    size_t bytes;             /* of all users together */
    size_t bytes_reserved;    /* of those, for root alone */
    size_t bytes_per_user;    /* of one user other than root */
};

/* A user with at least one connection. */
struct quota_user {
    uid_t uid;
    bool is_stranger;
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

/* All zero is fine. */
void quota_fini(struct quota *quota);

/*
 * Counts a new connection.
 * uid: who connects; (uid_t)-1 when the kernel does not say.
 * is_stranger: not in the user database. One who is being looked up is none yet.
 * Returns the user's entry, valid until its last connection is disconnected, or NULL when the
 * connection must be refused: it is not counted then.
 */
struct quota_user *quota_connect(struct quota *quota, uid_t uid, bool is_stranger);

void quota_disconnect(struct quota *quota, struct quota_user *user);

/* Marks every connection of `uid`, now open, as a stranger's or not. Returns whether those that
 * count with them are then more than there may be: the connections of `uid` must be closed. */
bool quota_set_stranger(struct quota *quota, uid_t uid, bool is_stranger);

enum quota_answer { QUOTA_TAKEN = 0, QUOTA_USER_FULL = 1, QUOTA_ALL_FULL = 2 };

/* Takes bytes for one of the user's requests. A user below the own limit may go beyond it once, so
 * that an answer longer than that can be had. Returns QUOTA_TAKEN, or what has no bytes left: the
 * user or all users together; nothing is taken then. */
enum quota_answer quota_take(struct quota *quota, struct quota_user *user, size_t bytes);

/* Gives back bytes that quota_take took. */
void quota_give_back(struct quota *quota, struct quota_user *user, size_t bytes);

#endif
