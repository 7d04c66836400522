/* SPDX-License-Identifier: Apache-2.0 */
/* What the part attempts is given when it is created: the hooks that it calls, and what it
 * borrows. */
#ifndef COLLOC_DAEMON_ATTEMPTS_ATTEMPTS_HOOKS_H
#define COLLOC_DAEMON_ATTEMPTS_ATTEMPTS_HOOKS_H

#include <sys/types.h>
#include <uv.h>

#include "daemon/config.h"
#include "daemon/driver.h"
#include "daemon/jobs.h"
#include "store/store.h"

enum { ATTEMPTS_MPS_WAIT = 1 };

/* What the part calls. All must be set; each gets `context`. */
struct attempts_hooks {
    void *context;

    /* Makes sure that the user has an MPS control daemon, with its folder in `ret_pipe_dir`.
     * `instance`: the UUID of the MIG instance that it serves; "": it serves whole GPUs.
     * Returns 0; ATTEMPTS_MPS_WAIT: attempts_mps_ready will be called; or a fault. */
    int (*prepare_mps)(void *context, uid_t uid, gid_t gid, const char *instance,
        const char **ret_pipe_dir, struct fault *fault);

    /* Writes where that user's control daemon is or would be. */
    void (*find_mps)(void *context, uid_t uid, const char *instance, char *path, size_t size);

    /* A task of this user that shared the instance, or whole GPUs, through MPS has ended. */
    void (*mps_task_ended)(void *context, uid_t uid, const char *instance);

    /* Returns whether NVML's index of each GPU is also CUDA's. `by_mps`: for an MPS client. */
    bool (*cuda_counts_as_nvml)(void *context, bool by_mps);

    /* Returns why the GPU of this index in the core's view is lost or removed; NULL: it is not. */
    const char *(*why_gone)(void *context, int gpu);

    /* Polls the GPUs as soon as possible. */
    void (*poll_gpus)(void *context);

    /* The same, and also lists what GPUs there are. Returns the poll's number, for
     * attempts_polled; 0: there are no GPUs to poll. */
    int64_t (*poll_gpus_closely)(void *context);

    /* The task's attempt ends now: its use of the GPUs is added up to this moment. */
    void (*usage_ends)(void *context, struct job *job);

    /* Returns the socket of the preloaded library; NULL: tasks run without it. */
    const char *(*preload_socket)(void *context);
};

struct attempts_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    const struct core *core;
    struct jobs *jobs;
    struct store *store;
    struct driver *driver;
    int64_t open_files; /* a task's soft limit on open files */
    struct attempts_hooks hooks;
};

#endif
