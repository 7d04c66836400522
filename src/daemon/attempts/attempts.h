/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts: each run of a task's script under a shim (exec/attempt.h) is started, watched, and
 * found again after a restart of the daemon.
 *
 * Contract:
 * 1. Each attempt that the core starts is answered with one of STARTED, UNSTARTED and EXITED, and
 *    each STARTED with one EXITED.
 * 2. A start that the machine cannot serve now (no memory, no disk space) is deferred and tried
 *    again each second; meanwhile the task keeps its GPUs.
 * 3. The exit of an attempt that may have lost its GPU is reported after a poll of the GPUs, or
 *    after a second where they do not answer.
 */
#ifndef COLLOC_DAEMON_ATTEMPTS_ATTEMPTS_H
#define COLLOC_DAEMON_ATTEMPTS_ATTEMPTS_H

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
     * Returns 0; ATTEMPTS_MPS_WAIT: attempts_mps_ready will be called; or a fault. */
    int (*prepare_mps)(
        void *context, uid_t uid, gid_t gid, const char **ret_pipe_dir, struct fault *fault);

    /* Writes where that user's control daemon is or would be. */
    void (*find_mps)(void *context, uid_t uid, char *path, size_t size);

    /* A task of this user that shared its GPUs through MPS has ended. */
    void (*mps_task_ended)(void *context, uid_t uid);

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

struct attempts;

/* Creates the part and finds out whether attempts can have cgroups. `options` is copied. Returns
 * NULL when memory is out. */
struct attempts *attempts_create(const struct attempts_options *options);

/* Finds the attempts of an earlier daemon, once the log is replayed and the GPUs are known. */
void attempts_adopt(struct attempts *attempts);

/* Stops watching; tasks go on. NULL is fine. */
void attempts_close(struct attempts *attempts);

/* Releases the part once the loop has run after attempts_close. NULL is fine. */
void attempts_destroy(struct attempts *attempts);

/* The driver's effects: starts a task that has GPUs, or ends its processes. */
void attempts_start(struct attempts *attempts, uint64_t task);
void attempts_kill(struct attempts *attempts, uint64_t task);

/* The task's END is durable: removes what its attempts left, except for output. */
void attempts_clean(struct attempts *attempts, const struct task *task);

/* Tries deferred starts and unread exits again. */
void attempts_retry(struct attempts *attempts);

/* This user's MPS control daemon is ready, or cannot be had: tasks that wait for it start. */
void attempts_mps_ready(struct attempts *attempts, uid_t uid);

/* The poll of this number is complete: exits that waited for it are reported. */
void attempts_polled(struct attempts *attempts, int64_t poll);

/* Returns what the machine lacks for the task's start; NULL: its start is not deferred. */
const char *attempts_why_deferred(const struct attempts *attempts, uint64_t task);

/* Returns whether the task has a shim that is watched. */
bool attempts_is_watched(const struct attempts *attempts, uint64_t task);

/* Limits the main memory of all tasks together, also of those without a limit, to the setting. */
void attempts_limit_all(const struct attempts *attempts);

/* Writes the path of the cgroup of the task's attempt. Returns false when it has none. */
bool attempts_find_cgroup(const struct attempts *attempts, uint64_t task, char *path, size_t size);

/* Returns the pid of the task's shim; 0: none is watched. */
pid_t attempts_find_shim(const struct attempts *attempts, uint64_t task);

#endif
