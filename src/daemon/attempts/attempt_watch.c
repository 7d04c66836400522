/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shim is watched by its pidfd, which becomes readable when the shim has ended. The files in the
 * attempt's folder then say how it ended (exec/attempt.h).
 *
 * The end of one attempt takes milliseconds, and those of an array of short tasks may come all at
 * once. Then each turn of the loop reads the ends of a few: a pidfd stays readable, so that the
 * others are reported again in the next turn, after the requests that have come meanwhile.
 */
#include <stdlib.h>

#include "base/log.h"
#include "daemon/attempts/attempts_state.h"
#include "daemon/state_dir.h"

#define SLICE_MS 5 /* chosen: as for starts (driver.c) */

/* The first end of each turn is read, and others as long as the turn has not lasted SLICE_MS. The
 * loop's time is that at which the turn began. */
static bool is_read_now(struct attempts *attempts)
{
    uint64_t turn_ms = uv_now(attempts->parts.loop);
    bool is_first = attempts->exits_read_ms != turn_ms;
    attempts->exits_read_ms = turn_ms;
    return is_first || uv_hrtime() / 1000000 < turn_ms + SLICE_MS;
}

static void on_shim_gone(uv_poll_t *poll, int status, int events)
{
    struct live_attempt *live = poll->data;
    struct attempts *attempts = live->attempts;
    if (!is_read_now(attempts))
        return;
    const struct task *task = core_task(attempts->parts.core, live->task);
    struct attempt_watch watch = {.pidfd = -1};
    struct attempt_exit exit = {0};
    struct fault fault = {0};
    char folder[STATE_PATH_SIZE];

    live_attempt_unwatch(live);
    attempts_folder(attempts, task, folder, sizeof folder);
    int state = attempt_probe(folder, &fault, &watch, &exit);
    if (attempts_fault_passes(state)) {
        live->to_adopt = true;
        live_attempt_defer(live, fault.text);
        return;
    }
    switch (state) {
    case ATTEMPT_ENDED:
        attempts_take_exit(attempts, task, &exit);
        break;
    case ATTEMPT_NEVER_STARTED:
        attempts_report_launch_failure(
            attempts, task, "its shim ended before it had started anything");
        break;
    case ATTEMPT_NO_FOLDER:
        attempts_sweep(live, "its attempt folder is gone: how the task ended is not known", false);
        break;
    case ATTEMPT_LOST:
        attempts_sweep(live, "its shim was killed: how the task ended is not known", false);
        break;
    default:
        attempt_unwatch(&watch);
        attempts_report_lost(attempts, task, fault.text);
        break;
    }
}

void live_attempt_watch(struct live_attempt *live)
{
    live->poll = calloc(1, sizeof *live->poll);
    if (!live->poll ||
        uv_poll_init(live->attempts->parts.loop, live->poll, live->watch.pidfd) < 0) {
        log_error("task %llu cannot be watched: out of memory or descriptors",
            (unsigned long long)live->task);
        abort();
    }
    live->poll->data = live;
    uv_poll_start(live->poll, UV_READABLE, on_shim_gone);
    live_attempt_end_deferral(live);
}
