/* SPDX-License-Identifier: Apache-2.0 */
/* MPS control daemons, one per user: what the files of this room know of them. */
#ifndef COLLOC_DAEMON_MPS_MANAGER_H
#define COLLOC_DAEMON_MPS_MANAGER_H

#include "daemon/daemon.h"
#include "daemon/user_helper.h"

struct mps_user {
    struct mps_user *next;
    struct daemon *daemon;
    uid_t uid;
    gid_t gid;
    char home[560], pipe_dir[600], log_dir[600];
    struct user_helper helper; /* its daemon is being started or stopped */
    struct api_request *asker; /* who waits for that, or NULL */
    int64_t unused_since_us;   /* monotonic; 0: in use, or there is none */
    int64_t sick_until_us;     /* it failed to start: not tried again until then, */
    char why[512];             /* for this reason */
};

/* The control daemon's pid, or 0. */
pid_t mps_user_daemon(const struct mps_user *user);

/* How many tasks of the user share by it. */
int mps_user_tasks(const struct mps_user *user);

/*
 * For `colloc mps`: start or stop a user's daemon and answer `asker` when that is done. 0, or a
 * fault, and then the asker is the caller's to answer: -EBUSY (tasks share by it), -ESRCH (there is
 * none).
 */
int mps_start_by_hand(
    struct daemon *daemon, uid_t uid, gid_t gid, struct api_request *asker, struct fault *fault);
int mps_stop_by_hand(
    struct daemon *daemon, uid_t uid, struct api_request *asker, struct fault *fault);

#endif
