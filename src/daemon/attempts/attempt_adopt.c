/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a restart the log says which tasks have GPUs, and each attempt's folder shows what happened
 * to it meanwhile:
 *
 *     log: STARTING, no folder           the start was deferred: it is started now
 *     shim runs                          it is watched again, and STARTED fed again
 *     shim wrote the exit                EXITED, as that says
 *     no shim claimed it                 UNSTARTED: the task is queued again
 *     shim killed, or folder gone        its processes are killed; EXITED LOST
 *
 * The same happens, in a running daemon, to an exit that could not be read at first or that waited
 * for a poll of the GPUs.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/attempts/attempts.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/attempts/attempts_state.h"
#include "daemon/state_dir.h"

/*
 * Whether the attempt was started without the MPS that its placement has. STARTED, which has this
 * too, may have been lost with the daemon. If the file cannot be read, the answer is "with MPS".
 */
static bool went_by_streams(
    const struct attempts *attempts, const struct task *task, const char *folder)
{
    struct fault fault = {0};
    char variable[700] = "CUDA_MPS_PIPE_DIRECTORY=";
    size_t n = strlen(variable);
    bool joined;
    if (task->run->share.sharing != SHARING_MPS)
        return false;
    mps_pipe_dir(attempts->parts.mps, task->uid,
        cluster_view_instance_of(core_view(attempts->parts.core), task), variable + n,
        sizeof variable - n);
    return attempt_has_variable(folder, variable, &fault, &joined) == 0 && !joined;
}

/*
 * A start that was deferred before the restart has no folder, so no shim can have started it: it is
 * still the same attempt, unless its GPU was removed.
 */
static bool is_still_deferred(
    const struct attempts *attempts, const struct task *task, const char *folder)
{
    if (task->state != TASK_STARTING || access(folder, F_OK) == 0 || errno != ENOENT)
        return false;
    for (int i = 0; i < task->n_gpus; i++)
        if (core_view(attempts->parts.core)->gpus[task->gpus[i]].health == VIEW_LOST)
            return false;
    return true;
}

/*
 * No shim had claimed the attempt, and none can. The daemon may have died between logging STARTED
 * and the claim: then, too, the attempt has run nothing, unless processes carry its mark. If the
 * whole folder was removed, a claim may have been in it.
 */
static void adopt_unclaimed(struct live_attempt *live, const struct task *task, int state)
{
    if (!task->has_process)
        attempts_report_unstarted(live->attempts, task);
    else if (state == ATTEMPT_NO_FOLDER)
        attempts_sweep(live, "its attempt folder is gone", false);
    else
        attempts_sweep(live, "its claim is gone", true);
}

/* STARTED is fed again, so that a task that is to end meanwhile is killed. What the log says of the
 * preloaded library stays. */
static void watch_again(struct attempts *attempts, struct live_attempt *live, bool by_streams)
{
    struct fault fault;
    log_info("task %llu is still running: found again", (unsigned long long)live->task);
    live_attempt_watch(live);
    attempts_apply_limits(attempts, live->task, &fault); /* changed just before the daemon died? */
    attempts_report_started(attempts, live->task, &(struct started_how){.by_streams = by_streams});
}

static void report_end(struct live_attempt *live, const struct task *task, int state,
    const struct attempt_exit *exit, const struct fault *fault)
{
    if (state == ATTEMPT_ENDED)
        attempts_take_exit(live->attempts, task, exit);
    else
        attempts_sweep(
            live, state < 0 ? fault->text : "its shim was killed or the machine went down", false);
}

void attempts_adopt_one(struct attempts *attempts, const struct task *task)
{
    struct live_attempt *live = live_attempt_get(attempts, task->id);
    struct attempt_exit exit = {0};
    struct fault fault = {0};
    char folder[STATE_PATH_SIZE];
    if (user_helper_is_under_way(&live->sweep.helper))
        return;
    attempts_folder(attempts, task, folder, sizeof folder);
    if (is_still_deferred(attempts, task, folder)) {
        live->to_adopt = false;
        attempts_launch(attempts, task->id);
        return;
    }
    int state = attempt_probe(folder, &fault, &live->watch, &exit);
    if (attempts_fault_passes(state)) {
        live_attempt_defer(live, fault.text);
        return;
    }
    live->to_adopt = false;
    if (state == ATTEMPT_NEVER_STARTED || state == ATTEMPT_NO_FOLDER) {
        adopt_unclaimed(live, task, state);
        return;
    }
    bool by_streams = went_by_streams(attempts, task, folder);
    if (state == ATTEMPT_RUNNING) {
        watch_again(attempts, live, by_streams);
        return;
    }
    if (by_streams)
        attempts_report_started(attempts, task->id, &(struct started_how){.by_streams = true});
    report_end(live, task, state, &exit, &fault);
}

void attempts_adopt(struct attempts *attempts)
{
    uint64_t id = 0;
    for (const struct task *task; (task = core_next_task(attempts->parts.core, id));) {
        id = task->id;
        if (!task_state_has_attempt(task->state) || attempts_is_watched(attempts, id))
            continue;
        live_attempt_get(attempts, id)->to_adopt = true;
        attempts_adopt_one(attempts, task);
    }
    cgroups_sweep_left(attempts);
}
