/* SPDX-License-Identifier: Apache-2.0 */
/* Acting as the user that submitted the task. If the process is not root, these functions change
 * nothing: each task then runs as the daemon's user. */
#ifndef COLLOC_EXEC_IDENTITY_H
#define COLLOC_EXEC_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

struct identity {
    bool is_root; /* this process is root: it can, and must, change its user */
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* all groups of the user, as at a login; until the process ends */
    int group_count;
};

/*
 * Looks up the user's groups; a uid without a name has only `gid`. May wait for a name service.
 *
 * Returns 0 or -errno.
 */
int identity_init(struct identity *identity, uid_t uid, gid_t gid);

/*
 * Gives this process the user's rights to files (effective ids and groups), until identity_restore.
 * The process must have a single thread.
 *
 * Returns 0 or -errno.
 */
int identity_assume(const struct identity *identity);

/* Takes root's rights back. Returns 0; or -errno: the process must end. */
int identity_restore(const struct identity *identity);

/* Becomes the user for the rest of the process, with a new session keyring (exec/keyring.h), and
 * without the daemon's protection from the OOM killer (exec/oom_score.h).
 * Returns 0; or -errno: the process must not run the task. */
int identity_become(const struct identity *identity);

#endif
