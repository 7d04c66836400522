/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of live attempts, and what all files of the part use of it.
 *
 * A live attempt is dropped from the table before its end is fed to the driver, because the core
 * may start the task's next attempt in the same step.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/attempts/attempts_state.h"
#include "daemon/state_dir.h"

static int compare_attempts(const void *a, const void *b)
{
    uint64_t left = ((const struct live_attempt *)a)->task,
             right = ((const struct live_attempt *)b)->task;
    return left < right ? -1 : left > right;
}

struct live_attempt *live_attempt_find(const struct attempts *attempts, uint64_t task)
{
    const struct live_attempt key = {.task = task};
    struct live_attempt *const *node = tfind(&key, &attempts->live, compare_attempts);
    return node ? *node : NULL;
}

struct live_attempt *live_attempt_get(struct attempts *attempts, uint64_t task)
{
    struct live_attempt *live = live_attempt_find(attempts, task);
    if (live)
        return live;
    live = calloc(1, sizeof *live);
    if (!live)
        driver_die_of_memory();
    *live = (struct live_attempt){.task = task, .attempts = attempts, .watch.pidfd = -1};
    if (!tsearch(live, &attempts->live, compare_attempts))
        driver_die_of_memory();
    return live;
}

static void on_handle_closed(uv_handle_t *handle)
{
    free(handle);
}

void live_attempt_unwatch(struct live_attempt *live)
{
    if (live->poll) {
        uv_poll_stop(live->poll);
        uv_close((uv_handle_t *)live->poll, on_handle_closed);
        live->poll = NULL;
    }
    if (live->watch.pidfd >= 0)
        attempt_unwatch(&live->watch);
    live->watch.pidfd = -1;
}

void live_attempt_remove(struct live_attempt *live)
{
    if (!live)
        return;
    live->attempts->n_awaiting_poll -= live->poll_awaited > 0;
    live_attempt_unwatch(live);
    user_helper_leave(&live->sweep.helper);
    tdelete(live, &live->attempts->live, compare_attempts);
    live_attempt_end_deferral(live);
    free(live);
}

void attempts_folder(
    const struct attempts *attempts, const struct task *task, char *path, size_t size)
{
    state_dir_attempt(attempts->parts.config->state_dir, task->id, task->attempts, path, size);
}

bool attempts_fault_passes(int fault)
{
    return fault == -ENOSPC || fault == -EDQUOT || fault == -ENOMEM || fault == -EAGAIN ||
           fault == -EMFILE || fault == -ENFILE || fault == -EIO;
}

void live_attempt_defer(struct live_attempt *live, const char *why)
{
    if (!live->why_deferred || strcmp(live->why_deferred, why) != 0) {
        log_warning("task %llu: start deferred, retrying every second: %s",
            (unsigned long long)live->task, why);
        live_attempt_end_deferral(live);
        live->why_deferred = strdup(why);
    }
    driver_try_again(live->attempts->parts.driver);
}

void live_attempt_end_deferral(struct live_attempt *live)
{
    free(live->why_deferred);
    live->why_deferred = NULL;
}

void attempts_report_started(
    struct attempts *attempts, uint64_t task, const struct started_how *how)
{
    struct event started = driver_event(attempts->parts.driver, EVENT_STARTED, task);
    started.started.by_streams = how->by_streams;
    started.started.has_library = how->has_library;
    driver_feed(attempts->parts.driver, &started, NULL);
}

bool attempts_is_watched(const struct attempts *attempts, uint64_t task)
{
    const struct live_attempt *live = live_attempt_find(attempts, task);
    return live && live->watch.pidfd >= 0;
}
