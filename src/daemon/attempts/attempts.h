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

#include "daemon/attempts/attempts_options.h"
#include "exec/cgroup.h"
#include "exec/torch_order.h"

struct attempts;

/* Creates the part and finds out whether attempts can have cgroups. `options` is copied. Returns
 * NULL when memory is out. */
struct attempts *attempts_create(const struct attempts_options *options);

/* Finds the attempts of an earlier daemon, once the log is replayed and the GPUs are known. */
void attempts_adopt(struct attempts *attempts);

/* Stops watching; tasks continue. NULL is fine. */
void attempts_close(struct attempts *attempts);

/* Releases the part once the loop has run after attempts_close. NULL is fine. */
void attempts_destroy(struct attempts *attempts);

/* The driver's effects: starts a task that has GPUs, or reads again what became of its attempt
 * where that was deferred; or ends its processes. */
void attempts_start(struct attempts *attempts, uint64_t task);
void attempts_kill(struct attempts *attempts, uint64_t task);

/* The task's END is durable: removes what its attempts left, except for output. */
void attempts_clean(struct attempts *attempts, const struct task *task);

/* Tries deferred starts and unread exits again, in turns of the loop. */
void attempts_retry(struct attempts *attempts);

/* This user's MPS control daemon is ready, or cannot be had: tasks that wait for it start
 * in turns of the loop. */
void attempts_mps_ready(struct attempts *attempts, uid_t uid);

/* The poll of this number is complete: exits that waited for it are reported, in turns of the
 * loop. */
void attempts_polled(struct attempts *attempts, int64_t poll);

/* The time limit, the CPUs or the main memory of a task were changed: the shim and the cgroup of
 * its attempt get them, if it has one. Returns 0, or -errno with a fault, which the log has, too:
 * not all of them are in force. */
int attempts_apply_limits(const struct attempts *attempts, uint64_t task, struct fault *fault);

/* Returns which limits of tasks are enforced: those whose controllers attempts' cgroups have. */
struct cgroup_controllers attempts_enforced(const struct attempts *attempts);

/* Passes an order to PyTorch's profiler on to the attempt of the task. Returns 0 or -errno. */
int attempts_order_profile(
    const struct attempts *attempts, uint64_t task, const struct torch_order *order);

/* Has a process of the task asked for orders to PyTorch's profiler? Returns 1, 0, or -errno: that
 * is not known, such as of an attempt that an older version started. */
int attempts_profile_was_asked(const struct attempts *attempts, uint64_t task);

/* Limits the main memory of all tasks together, also of those without a limit, to the setting. */
void attempts_limit_all(const struct attempts *attempts);

#endif
