/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPS control daemons, one per user: started when a task needs one, stopped when unused.
 *
 * Contract:
 * 1. No call waits for a control daemon: the hook `ready` reports that a start or stop has ended.
 * 2. A request that was given to mps_start_by_hand or mps_stop_by_hand is answered once.
 */
#ifndef COLLOC_DAEMON_MPS_MANAGER_H
#define COLLOC_DAEMON_MPS_MANAGER_H

#include <jansson.h>
#include <uv.h>

#include "api/server.h"
#include "daemon/config.h"
#include "daemon/user_names.h"

/* What the part calls. All must be set; each gets `context`. */
struct mps_hooks {
    void *context;

    /* This user's control daemon was started or stopped, or could not be: tasks that wait for it
     * may start now. */
    void (*ready)(void *context, uid_t uid);

    /* A request was answered outside of its handler. */
    void (*answered)(void *context);

    /* Returns how many clients the user has: tasks that share by MPS now. */
    int (*count_clients)(void *context, uid_t uid);

    /* Lists the UUIDs of the GPUs that a control daemon serves, borrowed. Returns how many, at most
     * `max`. Called in a helper process. */
    size_t (*list_gpus)(void *context, const char **uuids, size_t max);
};

struct mps_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    struct names *names;
    struct mps_hooks hooks;
};

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
int mps_prepare(
    struct mps *mps, uid_t uid, gid_t gid, const char **ret_pipe_dir, struct fault *fault);

/* Writes the pipe directory of that user's control daemon, which may not exist. */
void mps_pipe_dir(const struct mps *mps, uid_t uid, char *path, size_t size);

/* A task of this user that shared by MPS has ended. */
void mps_task_ended(struct mps *mps, uid_t uid);

/* The setting mps-linger may have changed. */
void mps_linger_changed(struct mps *mps);

/*
 * For `colloc mps`: starts or stops a user's daemon and answers `asker` when that is done.
 *
 * Returns 0, or a fault, and then the caller answers `asker`: -EBUSY (tasks use it, or it is
 * starting or stopping), -ESRCH (there is none).
 */
int mps_start_by_hand(
    struct mps *mps, uid_t uid, gid_t gid, struct api_request *asker, struct fault *fault);
int mps_stop_by_hand(struct mps *mps, uid_t uid, struct api_request *asker, struct fault *fault);

/* Returns the users with a control daemon, now or earlier, as docs/protocol.md shows them. The
 * caller releases the list. */
json_t *mps_list(const struct mps *mps);

/* Writes the group of the user's control daemon, which may have ended. Returns false when the user
 * never had one. */
bool mps_find_group(const struct mps *mps, uid_t uid, gid_t *ret_gid);

#endif
