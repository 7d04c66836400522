/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this part share. */
#ifndef COLLOC_DAEMON_ATTEMPTS_ATTEMPTS_STATE_H
#define COLLOC_DAEMON_ATTEMPTS_ATTEMPTS_STATE_H

#include "daemon/attempts/attempts_options.h"
#include "exec/attempt.h"
#include "exec/cgroup.h"
#include "service/user_helper.h"

/*
 * An attempt from its first start or adoption to its EXITED or UNSTARTED:
 *
 *     start --> watched --> shim gone --> EXITED
 *       |                     |
 *       deferred, awaits MPS  to be adopted: exit not readable yet, or a poll is awaited
 */
struct live_attempt {
    uint64_t task;
    struct attempts *attempts;
    struct attempt_watch watch; /* pidfd -1: not watched */
    uv_poll_t *poll;            /* of the pidfd; NULL: not watched */
    bool awaits_mps;            /* the start waits for the user's MPS control daemon */
    bool to_adopt;              /* its shim was started, and its state has to be read again */
    bool has_folder;            /* it is written, but the shim could not be spawned yet */
    char *why_deferred;         /* what the machine lacks; NULL: nothing */
    int64_t poll_awaited;       /* its exit is reported after this poll of the GPUs; 0: none */
    int64_t poll_limit_us;      /* but no later than this (monotonic clock) */
    bool is_asked;              /* its shim was asked to end it */
    int64_t stopped_us;         /* since when that shim is stopped (monotonic clock); 0: it runs */
    int64_t shim_limit_us;      /* the time limit that its shim has; 0: that of its start */
    bool has_limited_slice;     /* its containers' slice has the limits and the filter */

    struct {
        struct user_helper helper;
        char why[256];         /* its end is not known */
        bool may_be_unstarted; /* it is, if it has left no process */
    } sweep;                   /* after its shim was killed (attempt_sweep.c) */
};

struct attempts {
    struct attempts_options parts;
    char cgroup_home[CGROUP_PATH_SIZE]; /* "": attempts have no cgroups */
    char cgroup_name[CGROUP_PATH_SIZE]; /* of the home in /proc/PID/cgroup; "": not known */
    struct cgroup_controllers enforced; /* the limits that they have */
    bool can_filter;                    /* these can be kept from GPUs, and are to be */
    void *live;                         /* a tsearch tree of struct live_attempt by task */
    struct user_helper slices;          /* limits and ends slices (attempt_slices.c) */
    int n_awaiting_poll;
    int64_t polled;         /* the number of the last complete poll */
    uint64_t exits_read_ms; /* the turn of the loop (uv_now) in which an exit was last read */
};

/* ---- live_attempts.c ---- */

/* Returns NULL when the task has none. */
struct live_attempt *live_attempt_find(const struct attempts *attempts, uint64_t task);

/* The same, created where there is none. */
struct live_attempt *live_attempt_get(struct attempts *attempts, uint64_t task);

void live_attempt_unwatch(struct live_attempt *live);

/* Stops watching and releases it. NULL is fine. */
void live_attempt_remove(struct live_attempt *live);

/* The folder of the task's last attempt. */
void attempts_folder(
    const struct attempts *attempts, const struct task *task, char *path, size_t size);

/* Whether a fault is the machine's and will pass: it lacks memory, space or descriptors, or its
 * disk failed. What could not be read is then not known. */
bool attempts_fault_passes(int fault);

/* Tries again in a second; logs why, unless that is the reason already. */
void live_attempt_defer(struct live_attempt *live, const char *why);

/* Forgets why the start was deferred: the machine lacks nothing any more. */
void live_attempt_end_deferral(struct live_attempt *live);

/* How an attempt was started. */
struct started_how {
    bool by_streams;  /* it shares by time slices though MPS was wanted */
    bool has_library; /* its processes were given the preloaded library, and allocations may wait */
};

/* Feeds STARTED. */
void attempts_report_started(
    struct attempts *attempts, uint64_t task, const struct started_how *how);

/* ---- attempt_watch.c ---- */

/* Watches the pidfd of `live->watch` in the loop. Ends the process where that is not possible. */
void live_attempt_watch(struct live_attempt *live);

/* ---- attempt_launch.c ---- */

/* Starts a task that has GPUs and no shim yet. */
void attempts_launch(struct attempts *attempts, uint64_t task);

/* ---- attempt_adopt.c ---- */

/* Reads what became of an attempt that was started and is not watched. */
void attempts_adopt_one(struct attempts *attempts, const struct task *task);

/* ---- attempt_launch.c ---- */

/* Writes the minor numbers of the GPUs that the task may open, for the caller to free; NULL: any,
 * or memory is out. */
char *attempts_join_minors(const struct attempts *attempts, const struct task *task, bool by_mps);

/* ---- attempt_limits.c ---- */

/* Shims get new time limits for tasks that have stopped or continued. */
void attempts_keep_time_limits(struct attempts *attempts);

/* ---- attempt_ending.c ---- */

/* Reports an exit, or lets it wait for a poll of the GPUs. */
void attempts_take_exit(
    struct attempts *attempts, const struct task *task, const struct attempt_exit *exit);

/* Reports an attempt about which nothing more is known, or that could not be started. */
void attempts_report_lost(struct attempts *attempts, const struct task *task, const char *why);
void attempts_report_launch_failure(
    struct attempts *attempts, const struct task *task, const char *why);

/* Reports that an attempt has run nothing: the task is queued again. */
void attempts_report_unstarted(struct attempts *attempts, const struct task *task);

/* ---- attempt_sweep.c ---- */

/*
 * Begins to kill the processes that a killed shim has left, and reports the attempt when they are
 * gone: as lost, or, if it may be unstarted and has left none, as unstarted.
 *
 * why: for the user
 */
void attempts_sweep(struct live_attempt *live, const char *why, bool may_be_unstarted);

/* ---- attempt_cgroups.c ---- */

/* Finds out whether attempts can have cgroups, and logs it when not. */
void cgroups_open(struct attempts *attempts);

/* Finds out whether tasks can be kept from GPUs that they were not given, if the setting wants it.
 */
void cgroups_try_filter(struct attempts *attempts);

/* Returns the limits of an attempt's cgroup. */
struct cgroup_limits cgroups_limits_of(const struct attempts *attempts, const struct task *task);

/* Writes the cgroup of the attempt with this folder. Returns false when there are none. */
bool cgroups_name(const struct attempts *attempts, const char *folder, char *path, size_t size);

/* Returns whether this attempt of the task goes on. */
bool cgroups_attempt_runs(const struct attempts *attempts, uint64_t task, int attempt);

/* Kills the processes in an attempt's cgroup and in the slice of its containers, and removes both.
 * Returns how many there were. For a helper process: it waits. */
int cgroups_sweep(const struct attempts *attempts, const char *folder);

/* The same for all attempts of this state folder that do not run: after a restart. */
void cgroups_sweep_left(struct attempts *attempts);

/* ---- attempt_slices.c ---- */

/* Reviews the slices of attempts' containers. */
void slices_review(struct attempts *attempts);

#endif
