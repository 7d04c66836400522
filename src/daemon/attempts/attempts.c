/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the part, and the entries through which the driver and other parts reach it.
 *
 *     live_attempts.c    the table of live attempts
 *     attempt_launch.c   starts an attempt: its folder, its environment, its shim
 *     attempt_watch.c    waits for the shim's end, by its pidfd
 *     attempt_ending.c   why an attempt ended: EXITED
 *     attempt_sweep.c    kills what a killed shim has left
 *     attempt_slices.c   limits and ends the containers of attempts
 *     attempt_adopt.c    what became of an attempt while the daemon was not watching
 */
#include <search.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "daemon/attempts/attempts.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/attempts/attempts_state.h"
#include "daemon/state_dir.h"

/* ---- life ---- */

struct attempts *attempts_create(const struct attempts_options *options)
{
    struct attempts *attempts = calloc(1, sizeof *attempts);
    if (!attempts)
        return NULL;
    attempts->parts = *options;
    cgroups_open(attempts);
    cgroups_try_filter(attempts);
    return attempts;
}

void attempts_close(struct attempts *attempts)
{
    /* tdelete changes the root, which clang-tidy does not know. */
    while (attempts && attempts->live)
        live_attempt_remove(*(void **)attempts->live); // NOLINT(clang-analyzer-unix.Malloc)
    if (attempts)
        user_helper_leave(&attempts->slices);
}

void attempts_destroy(struct attempts *attempts)
{
    attempts_close(attempts);
    free(attempts);
}

/* ---- shims that are stopped ---- */

/* Chosen: a debugger that holds a shim for longer costs the task its exit record, not the GPU. */
static const int64_t STOPPED_LIMIT_US = 30 * SECOND_US;

/* A shim that is stopped (SIGSTOP, a debugger) cannot end its task: it is continued, and killed
 * when it stays stopped; what it leaves is then swept. */
static void wake_stopped_shim(struct live_attempt *live)
{
    struct process_stat stat;
    int64_t now_us = clock_monotonic_us();
    if (!live->is_asked || live->watch.pidfd < 0)
        return;
    bool is_stopped = process_read_stat(live->watch.shim, &stat) == 0 &&
                      (stat.state == 'T' || stat.state == 't');
    if (!is_stopped)
        live->stopped_us = 0;
    else if (!live->stopped_us)
        live->stopped_us = now_us;
    if (is_stopped && now_us - live->stopped_us < STOPPED_LIMIT_US) {
        attempt_signal_shim(&live->watch, SIGCONT);
    } else if (is_stopped) {
        log_warning("task %llu: its shim, process %d, stays stopped: it is killed, and the task's "
                    "processes with it",
            (unsigned long long)live->task, (int)live->watch.shim);
        attempt_signal_shim(&live->watch, SIGKILL);
    }
}

static void on_live_attempt(const void *node, VISIT visit, void *context)
{
    if (visit == postorder || visit == leaf)
        wake_stopped_shim(*(struct live_attempt *const *)node);
}

/* ---- the part's entries ---- */

void attempts_kill(struct attempts *attempts, uint64_t id)
{
    const struct task *task = core_task(attempts->parts.core, id);
    struct live_attempt *live = live_attempt_find(attempts, id);
    if (!task || !live || live->watch.pidfd < 0)
        return;
    attempt_terminate(&live->watch, task->ending == FAILURE_TIME_LIMIT ? ATTEMPT_ASK_TIME_LIMIT
                                    : task->ending == FAILURE_GPU_GONE ? ATTEMPT_ASK_EVICT
                                                                       : ATTEMPT_ASK_CANCEL);
    live->is_asked = true;
    wake_stopped_shim(live);
}

/* Inodes are scarce, too: of an ended task only output that is stored here stays. */
void attempts_clean(struct attempts *attempts, const struct task *task)
{
    char folder[STATE_PATH_SIZE];
    live_attempt_remove(live_attempt_find(attempts, task->id));
    for (int attempt = 1; attempt <= task->attempts; attempt++) {
        state_dir_attempt(
            attempts->parts.config->state_dir, task->id, attempt, folder, sizeof folder);
        attempt_clean(folder);
    }
    if (task->attempts > 0) {
        *strrchr(folder, '/') = '\0';
        rmdir(folder);
    }
}

void attempts_start(struct attempts *attempts, uint64_t id)
{
    const struct task *task = core_task(attempts->parts.core, id);
    const struct live_attempt *live = live_attempt_find(attempts, id);
    if (!task || (live && live->watch.pidfd >= 0))
        return;
    if (live && live->to_adopt)
        attempts_adopt_one(attempts, task);
    else
        attempts_launch(attempts, id);
}

void attempts_retry(struct attempts *attempts)
{
    uint64_t id = 0;
    for (const struct task *task; (task = core_next_task(attempts->parts.core, id));) {
        id = task->id;
        const struct live_attempt *live = live_attempt_find(attempts, id);
        if (task_state_has_attempt(task->state) && !(live && live->watch.pidfd >= 0))
            driver_queue_start(attempts->parts.driver, id);
    }
}

void attempts_mps_ready(struct attempts *attempts, uid_t uid)
{
    uint64_t id = 0;
    for (const struct task *task; (task = core_next_task(attempts->parts.core, id));) {
        id = task->id;
        const struct live_attempt *live = live_attempt_find(attempts, id);
        if (task->uid == uid && task->state == TASK_STARTING && live && live->awaits_mps)
            driver_queue_start(attempts->parts.driver, id);
    }
}

void attempts_polled(struct attempts *attempts, int64_t poll)
{
    uint64_t id = 0;
    attempts->polled = poll;
    attempts_keep_time_limits(attempts);
    slices_review(attempts);
    twalk_r(attempts->live, on_live_attempt, attempts);
    if (!attempts->n_awaiting_poll)
        return;
    for (const struct task *task; (task = core_next_task(attempts->parts.core, id));) {
        id = task->id;
        const struct live_attempt *live = live_attempt_find(attempts, id);
        if (live && live->poll_awaited && live->poll_awaited <= poll)
            driver_queue_start(attempts->parts.driver, id);
    }
}

const char *attempts_why_deferred(const struct attempts *attempts, uint64_t task)
{
    const struct live_attempt *live = live_attempt_find(attempts, task);
    return live ? live->why_deferred : NULL;
}

pid_t attempts_find_shim(const struct attempts *attempts, uint64_t task)
{
    const struct live_attempt *live = live_attempt_find(attempts, task);
    return live && live->watch.pidfd >= 0 ? live->watch.shim : 0;
}

int64_t attempts_warn(const struct attempts *attempts, uint64_t id)
{
    const struct live_attempt *live = live_attempt_find(attempts, id);
    const struct task *task = core_task(attempts->parts.core, id);
    char folder[STATE_PATH_SIZE];
    struct fault fault;
    if (!task || !live || live->watch.pidfd < 0)
        return 0;
    attempts_folder(attempts, task, folder, sizeof folder);
    int64_t wait_us = attempt_warn(folder, &live->watch, &fault);
    if (wait_us < 0)
        log_warning("task %llu gets no signal: %s", (unsigned long long)id, fault.text);
    return wait_us < 0 ? 0 : wait_us;
}
