/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPS control daemons: one per user for all whole GPUs, and one per user and MIG instance. Each is
 * started when a task needs it, and stopped when unused. `instance` is the UUID of a MIG instance,
 * or "" for the control daemon of whole GPUs.
 *
 * Contract:
 * 1. No call waits for a control daemon: the hook `ready` reports that a start or stop has ended.
 * 2. A request that was given to mps_start_by_hand or mps_stop_by_hand is answered once.
 */
#ifndef COLLOC_DAEMON_MPS_MANAGER_H
#define COLLOC_DAEMON_MPS_MANAGER_H

#include "daemon/mps/mps_options.h"

struct mps;

/* Creates the part; `options` is copied. Returns NULL when memory is out. */
struct mps *mps_create(const struct mps_options *options);

/* Takes over the control daemons of an earlier collocd, so that they too end when unused. */
void mps_adopt(struct mps *mps);

/* Begins to stop the daemons without tasks and waits for nothing: helper processes end by
 * themselves, and daemons with tasks stay for the next collocd. NULL is fine. */
void mps_close(struct mps *mps);

/* Releases the part once the loop has run after mps_close. NULL is fine. */
void mps_destroy(struct mps *mps);

/*
 * Makes sure that a control daemon of this user serves `ret_pipe_dir` (valid as long as the part).
 *
 * Returns 0; MPS_WAIT: not yet, the hook `ready` will be called; or a fault that says why there is
 * none: the task is time-sliced.
 */
enum { MPS_WAIT = 1 };
int mps_prepare(struct mps *mps, uid_t uid, gid_t gid, const char *instance,
    const char **ret_pipe_dir, struct fault *fault);

/* Writes the pipe directory of that user's control daemon, which may not exist. */
void mps_pipe_dir(const struct mps *mps, uid_t uid, const char *instance, char *path, size_t size);

/* A task of this user that shared by MPS has ended. */
void mps_task_ended(struct mps *mps, uid_t uid, const char *instance);

/* The setting mps-linger may have changed, or a MIG instance may be gone: sets anew when unused
 * control daemons are stopped. */
void mps_review(struct mps *mps);

#endif
