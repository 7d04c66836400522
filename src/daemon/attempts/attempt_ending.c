/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the end of an attempt to the event EXITED: when it ended, why, and what goes to the log.
 *
 * A program whose GPU fails fails with a signal or an exit code, and the daemon may
 * see the lost GPU only at its next poll. So an exit that may come from a lost GPU waits for that
 * poll:
 *
 *     exit, code 1 --> poll of the GPUs --> GPU 3 is lost --> EXITED GPU_GONE, the task is requeued
 *                                       --> all GPUs well --> EXITED PROGRAM
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/alone_time.h"
#include "daemon/attempts/attempts_state.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/overrun.h"
#include "daemon/state_dir.h"
#include "exec/failure_facts.h"

/* A context and the code of cuDNN take about 1 GiB, which a process that failed has given back. */
#define LIBRARY_ROOM_BYTES (2.0 * GIB)

#define POLL_LIMIT_US SECOND_US /* chosen: a driver that does not answer delays no exit longer */

/*
 * When the attempt ended, in the core's time, from the shim's wall time: 0 when that is not known.
 * It is at least the start plus the run time by a monotonic clock, and at most now, so a wall clock
 * that has jumped since cannot move it further.
 */
static int64_t end_time(
    struct driver *driver, const struct task *task, const struct attempt_exit *exit)
{
    int64_t now_us = driver_now_us(driver);
    int64_t end_us = exit->end_wall_us + now_us - clock_wall_us();
    int64_t least_us = task->started_us + (exit->end_wall_us - exit->start_wall_us);
    if (exit->end_wall_us == 0)
        return 0;
    return end_us < least_us ? least_us : end_us < now_us ? end_us : now_us;
}

static const char PROCESS_LOST[] = "the driver has lost its process";

/* An instance may be there again before the task that was evicted from it has ended. A task is also
 * evicted when its process cannot be resumed. */
static const char *why_gone(const struct attempts *attempts, const struct task *task, int gpu)
{
    const char *why = gpus_why_gone(attempts->parts.gpus, gpu);
    bool is_instance = core_view(attempts->parts.core)->gpus[gpu].id.is_mig_instance;
    if (why || task->ending != FAILURE_GPU_GONE)
        return why;
    return is_instance ? "the MIG instance was not there any more" : PROCESS_LOST;
}

/* Were others on one of its GPUs, with little memory left? */
static bool gpu_was_full(const struct attempts *attempts, const struct task *task)
{
    const struct cluster_view *view = core_view(attempts->parts.core);
    const int64_t now_us = driver_now_us(attempts->parts.driver);
    for (int i = 0; i < task->n_gpus && task->had_coresidents; i++) {
        const struct gpu_view *gpu = &view->gpus[task->gpus[i]];
        struct reading free = gpu_view_free_bytes(gpu);
        bool is_recent = now_us - gpu->sampled_us <=
                         core_get_settings(attempts->parts.core)->conditions.sample_valid_us;
        if (free.valid && is_recent && free.value < LIBRARY_ROOM_BYTES)
            return true;
    }
    return false;
}

static int64_t largest_gpu_bytes(const struct cluster_view *view)
{
    int64_t largest = 0;
    for (int i = 0; i < view->n_gpus; i++)
        if (view->gpus[i].id.mem_total_bytes > largest)
            largest = view->gpus[i].id.mem_total_bytes;
    return largest;
}

static struct failure with_facts(
    const struct attempts *attempts, const struct task *task, const struct failure *failure)
{
    const struct failure_facts facts = {
        .largest_gpu_bytes = largest_gpu_bytes(core_view(attempts->parts.core)),
        .was_shared = task->had_coresidents || task->run->share.mem_limit_bytes > 0,
        .gpu_was_full = gpu_was_full(attempts, task),
        .by_mps = task->run->share.sharing == SHARING_MPS};
    struct failure known = *failure;
    failure_apply_facts(&known, &facts);
    return known;
}

/* A failure on a lost GPU is not the task's fault, unless colloc ended the task. A task that colloc
 * ends gets no memory that it waits for: then lack of memory is no failure. */
static struct failure judge_failure(const struct attempts *attempts, const struct task *task,
    int64_t ended_us, const struct failure *failure)
{
    struct failure gone = {.class = FAILURE_GPU_GONE};
    bool was_ended = task_was_ended(task) && !task_ended_before_limit(task, ended_us);
    if (task->ending == FAILURE_REQUEUED)
        return (struct failure){.class = FAILURE_REQUEUED};
    if (was_ended && failure->class == FAILURE_GPU_OOM)
        return (struct failure){.class = task->ending};
    if (was_ended || failure->class == FAILURE_NONE)
        return *failure;
    for (int i = 0; i < task->n_gpus; i++) {
        const char *why = why_gone(attempts, task, task->gpus[i]);
        if (!why)
            continue;
        snprintf(gone.evidence, sizeof gone.evidence, "GPU %s: %s",
            core_view(attempts->parts.core)->gpus[task->gpus[i]].id.label, why);
        return gone;
    }
    bool was_suspended = task->ending == FAILURE_GPU_GONE && task->n_gpus == 0;
    snprintf(gone.evidence, sizeof gone.evidence, "%s", PROCESS_LOST);
    return was_suspended ? gone : with_facts(attempts, task, failure);
}

/* The detail that the log stores with EXITED. The caller releases it. */
static json_t *make_detail(const struct attempts *attempts, const struct task *task,
    const struct attempt_exit *exit, const struct failure *failure)
{
    json_t *detail = json_pack("{s:s, s:s, s:f, s:f}", "evidence", failure->evidence, "framework",
        failure->framework, "cpu_s", (double)exit->cpu_us / 1e6, "max_rss_mib",
        (double)exit->max_rss_bytes / 1048576.0);
    if (failure->class != FAILURE_GPU_OOM)
        return detail;
    if (task->run->share.mem_limit_bytes > 0)
        json_object_set_new(
            detail, "mem_limit_bytes", json_integer(task->run->share.mem_limit_bytes));
    json_object_set_new(
        detail, "overruns", overruns_beside(attempts->parts.core, attempts->parts.jobs, task));
    return detail;
}

/* Whose MPS control daemon a task uses: copied before its end, and reported after it. */
struct mps_use {
    bool by_mps;
    uid_t uid;
    char instance[sizeof((struct gpu_identity *)0)->uuid];
};

static struct mps_use find_mps_use(const struct attempts *attempts, const struct task *task)
{
    struct mps_use use = {task->run->share.sharing == SHARING_MPS, task->uid, ""};
    snprintf(use.instance, sizeof use.instance, "%s",
        cluster_view_instance_of(core_view(attempts->parts.core), task));
    return use;
}

static void end_mps_use(struct attempts *attempts, const struct mps_use *use)
{
    if (use->by_mps)
        mps_task_ended(attempts->parts.mps, use->uid, use->instance);
}

static void report_exit(
    struct attempts *attempts, const struct task *task, const struct attempt_exit *exit)
{
    const int64_t ended_us = end_time(attempts->parts.driver, task, exit);
    const struct failure failure = judge_failure(attempts, task, ended_us, &exit->failure);
    struct job *job = jobs_find(attempts->parts.jobs, task->id);
    struct event event = driver_event(attempts->parts.driver, EVENT_EXITED, task->id);
    event.exited = (struct task_exit){.failure = failure.class,
        .code = exit->exit_code,
        .signal = exit->signal,
        .ended_us = ended_us,
        .by_gpu = failure_is_hardware(&failure)};
    json_t *detail = make_detail(attempts, task, exit, &failure);
    const struct mps_use mps = find_mps_use(attempts, task);
    live_attempt_remove(live_attempt_find(attempts, task->id));
    gpus_end_usage(attempts->parts.gpus, job);
    alone_time_note_end(attempts->parts.core, task, job, ended_us);
    job_note_exit(job, failure.class, detail);
    driver_feed(attempts->parts.driver, &event, detail);
    json_decref(detail);
    end_mps_use(attempts, &mps);
    gpus_poll(attempts->parts.gpus);
}

/* Failures that may come from a lost GPU. */
static bool may_be_the_gpus(const struct attempt_exit *exit)
{
    enum failure_class failure = exit->failure.class;
    return failure == FAILURE_PROGRAM || failure == FAILURE_SIGNAL ||
           failure == FAILURE_GPU_FAULT || failure == FAILURE_MPS;
}

static void begin_poll(struct attempts *attempts, struct live_attempt *live)
{
    live->poll_awaited = gpus_poll_closely(attempts->parts.gpus);
    live->poll_limit_us = clock_monotonic_us() + POLL_LIMIT_US;
    attempts->n_awaiting_poll += live->poll_awaited > 0;
}

/* Whether the exit waits for a poll of the GPUs. */
static bool awaits_poll(struct attempts *attempts, uint64_t task, const struct attempt_exit *exit)
{
    struct live_attempt *live = live_attempt_get(attempts, task);
    if (!live->poll_awaited && may_be_the_gpus(exit))
        begin_poll(attempts, live);
    if (live->poll_awaited <= attempts->polled || clock_monotonic_us() >= live->poll_limit_us)
        return false;
    live->to_adopt = true;
    driver_try_again(attempts->parts.driver);
    return true;
}

void attempts_take_exit(
    struct attempts *attempts, const struct task *task, const struct attempt_exit *exit)
{
    if (!awaits_poll(attempts, task->id, exit))
        report_exit(attempts, task, exit);
}

void attempts_report_lost(struct attempts *attempts, const struct task *task, const char *why)
{
    struct attempt_exit exit = {.exit_code = -1, .failure = {.class = FAILURE_LOST}};
    span_copy(span_of(why), exit.failure.evidence, sizeof exit.failure.evidence);
    report_exit(attempts, task, &exit);
}

void attempts_report_launch_failure(
    struct attempts *attempts, const struct task *task, const char *why)
{
    struct attempt_exit exit = {.exit_code = -1, .failure = {.class = FAILURE_LAUNCH}};
    span_copy(span_of(why), exit.failure.evidence, sizeof exit.failure.evidence);
    log_warning("task %llu could not be started: %s", (unsigned long long)task->id, why);
    report_exit(attempts, task, &exit);
}

void attempts_report_unstarted(struct attempts *attempts, const struct task *task)
{
    struct event never = driver_event(attempts->parts.driver, EVENT_UNSTARTED, task->id);
    const struct mps_use mps = find_mps_use(attempts, task);
    if (task->has_process)
        log_info(
            "task %llu: its start had come to nothing: queued again", (unsigned long long)task->id);
    live_attempt_remove(live_attempt_find(attempts, task->id));
    driver_feed(attempts->parts.driver, &never, NULL);
    end_mps_use(attempts, &mps); /* its control daemon may have started for it alone */
}
