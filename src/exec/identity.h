/* SPDX-License-Identifier: Apache-2.0 */
/* Acting as the user who submitted the task. Without root all of this does nothing: then every task
 * runs as the daemon's user. */
#ifndef COLLOC_EXEC_IDENTITY_H
#define COLLOC_EXEC_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

struct identity {
    bool is_root; /* we are root, and so can and must change */
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* all of the user's, as at a login */
    int group_count;
};

/* Looks up the groups; a uid that has no name has just `gid`. 0 or -errno. */
int identity_init(struct identity *identity, uid_t uid, gid_t gid);
void identity_fini(struct identity *identity);

/*
 * Lets this (single-threaded) process touch files with exactly the user's rights, until
 * identity_restore. Both: 0 or -errno; a process that cannot restore itself must end.
 */
int identity_assume(const struct identity *identity);
int identity_restore(const struct identity *identity);

/* Becomes the user for good, with a session keyring of its own (exec/keyring.h). 0 or -errno. */
int identity_become(const struct identity *identity);

#endif
