/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task as the TASK object of docs/protocol.md: the core's data about it, joined with its job. The
 * object of a task that ends is also its record in the log.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "core/sharing_choice.h"
#include "daemon/alone_time.h"
#include "daemon/attempt_list.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/public_json.h"
#include "daemon/learned_peak.h"
#include "daemon/overrun.h"
#include "daemon/rooms/room_text.h"
#include "daemon/step_list.h"
#include "preload/step_page.h"

static const char *end_reason(const struct task *task)
{
    return attempt_end_reason(task->ending ? task->ending : task->run->exit.failure);
}

/* A user's name. NULL: it was not cancelled, or the log names no user. */
static const char *cancelled_by(const struct job *job)
{
    return job ? job_canceller(job) : NULL;
}

static void explain_stop(const struct core *core, const struct task *task, char *text, size_t size)
{
    const struct halving_rule *rule = core_halving_rule(core, task->array.id);
    const struct halving_rank *stop = &task->run->stop;
    if (rule)
        snprintf(text, size, "rank %d of %d by %s (%s) at step %lld, where the best 1/%d goes on",
            stop->rank, stop->of, rule->metric, rule->is_max ? "max" : "min",
            (long long)halving_step(rule, stop->rung), rule->factor);
}

static void explain_end(const struct core *core, const struct job *job, const struct task *task,
    char *text, size_t size)
{
    char dependency[64];
    text[0] = '\0';
    if (task->ending == FAILURE_DEPENDENCY)
        snprintf(text, size, "--after=%s can never hold: task %llu has ended",
            dependency_format(&task->run->broken.dependency, dependency, sizeof dependency),
            (unsigned long long)task->run->broken.by);
    else if (task->ending == FAILURE_REQUEUED)
        snprintf(text, size, "it is being ended, to be run again");
    else if (task->ending == FAILURE_CANCELLED && cancelled_by(job))
        snprintf(text, size, "cancelled by %s", cancelled_by(job));
    else if (task->ending == FAILURE_STOPPED)
        explain_stop(core, task, text, size);
    else if (task->state == TASK_FAILED && task->not_at_fault)
        snprintf(text, size, "once too often, though perhaps without a fault of the task: %s",
            job && job->evidence ? job->evidence : "(no line says more)");
    else if (task->state == TASK_FAILED && task->possible_cause &&
             task->run->exit.failure == FAILURE_GPU_FAULT)
        snprintf(text, size,
            "apart from others too, so the fault that stopped its neighbours was its own: %s",
            job && job->evidence ? job->evidence : "(no line says more)");
    else if (task->state == TASK_OUT_OF_MEMORY && task->run->exit.failure == FAILURE_GPU_OOM)
        snprintf(text, size, "out of GPU memory %s: %s",
            task->had_coresidents ? "once too often" : "with its GPU to itself",
            job && job->evidence ? job->evidence : "(no line says more)");
    else if (job && job->evidence)
        snprintf(text, size, "%s", job->evidence);
}

/* Chosen: of so many waiting tasks a text says why each does not start before the head, of those
 * behind them how many are before them: a queue of 20,000 is listed in little more time. */
enum { EXPLAINED_MAX = 64 };

/* What the machine lacks for the task's start: it has its GPUs, but is shown as PENDING. NULL: its
 * start is not deferred. */
static const char *why_deferred(const struct http *http, const struct task *task)
{
    return task->state == TASK_STARTING ? attempts_why_deferred(http->parts.attempts, task->id)
                                        : NULL;
}

const char *public_task_state(const struct http *http, const struct task *task)
{
    return task_state_word(why_deferred(http, task) ? TASK_QUEUED : task->state);
}

/* A service that is started again later: adds why its last attempt ended. */
static void add_last_end(
    const struct job *job, const struct task *task, int64_t now_us, char *text, size_t size)
{
    size_t used = strlen(text);
    if (task->run->service.restarts > 0 && task->request.begin_us > now_us && job && job->evidence)
        snprintf(text + used, size - used, ": %s", job->evidence);
}

/* A GPU that the task uses though it was not given it. */
static void explain_misplaced(
    const struct http *http, const struct task *task, char *text, size_t size)
{
    struct gpu_report gpu;
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++)
        for (size_t k = 0; k < gpu.n_misplaced; k++)
            if (gpu.misplaced[k].task == task->id && gpu.misplaced[k].is_lasting) {
                snprintf(text, size,
                    "it uses GPU %s, which it was not given: its script sets CUDA_VISIBLE_DEVICES; "
                    "colloc sets it, so remove that line",
                    gpu.info->index);
                return;
            }
}

/* What a user has suspended waits for nothing but the user. */
static void add_suspension(const struct task *task, char *text, size_t size)
{
    if (!*text && task->state == TASK_SUSPENDED && task->run->yield.by_user)
        snprintf(
            text, size, "suspended by a user; `colloc resume %" PRIu64 "` lets it go on", task->id);
}

static void add_reason(
    struct http *http, json_t *object, const struct task *task, const struct job *job, int position)
{
    char text[2048] = "";
    const char *word, *lacks = why_deferred(http, task);
    if (task_state_is_done(task->state) || task->state == TASK_EXITED) {
        word = end_reason(task);
        explain_end(http->parts.core, job, task, text, sizeof text);
    } else if (lacks) {
        word = "Resources";
        snprintf(text, sizeof text, "its start is retried every second: %s", lacks);
    } else if (position > EXPLAINED_MAX) {
        word = "Priority";
        core_explain_ahead(http->parts.core, task->id, text, sizeof text);
    } else {
        int64_t now_us = driver_now_us(http->parts.driver);
        word = core_reason_word(http->parts.core, task->id);
        core_explain(http->parts.core, task->id, now_us, text, sizeof text);
        add_suspension(task, text, sizeof text);
        add_last_end(job, task, now_us, text, sizeof text);
        if (!*text)
            explain_misplaced(http, task, text, sizeof text);
    }
    json_object_set_new(object, "reason", json_string(word));
    json_object_set_new(object, "reason_text", json_string(text));
}

static void add_times(struct http *http, json_t *object, const struct task *task)
{
    int64_t now_us = driver_now_us(http->parts.driver);
    bool deferred = why_deferred(http, task), done = task_state_is_done(task->state);
    bool waits = task->queue || task->state == TASK_HELD || deferred;
    bool runs = task_state_has_attempt(task->state) && !deferred;
    int64_t end_us = done ? task->ended_us : now_us;
    int64_t waits_since_us = deferred ? task->started_us : task->queued_us;
    bool started = task->attempts > task->run->unstarted && !deferred;
    json_object_set_new(object, "submitted_at", json_moment(http, task->submitted_us, true));
    json_object_set_new(object, "started_at", json_moment(http, task->started_us, started));
    json_object_set_new(object, "ended_at", json_moment(http, task->ended_us, done));
    json_object_set_new(
        object, "wait_s", json_seconds(task->waited_us + (waits ? now_us - waits_since_us : 0)));
    json_object_set_new(
        object, "exec_s", json_seconds(task->executed_us + (runs ? now_us - task->started_us : 0)));
    json_object_set_new(object, "jct_s", json_seconds(end_us - task->submitted_us));
}

/* Waits for GPU memory; memory_wait_s includes a present one. */
static void add_memory_waits(json_t *object, const struct memory_wait *wait, int64_t now_us)
{
    int64_t waited_us = wait->waited_us + (wait->bytes ? now_us - wait->since_us : 0);
    json_object_set_new(object, "memory_waits", json_integer(wait->count));
    json_object_set_new(object, "memory_wait_s", json_seconds(waited_us));
}

/* Can the carrier take its memory off its GPUs? */
static void add_carrier(struct http *http, json_t *object, const struct task *task)
{
    char why[160];
    enum carrier_use use = suspension_ask_carrier(http->parts.suspension, task, why, sizeof why);
    json_object_set_new(
        object, "carried", use == CARRIER_UNKNOWN ? json_null() : json_boolean(use == CARRIER_CAN));
    json_object_set_new(
        object, "carrier_obstacle", use == CARRIER_CANNOT ? json_string(why) : json_null());
}

/* Host memory that is ready for a copy of its GPU memory; null: none of its processes has any, or
 * could have. */
static void add_rooms(struct http *http, json_t *object, const struct task *task)
{
    struct room_of_task rooms;
    char text[192];
    bool has_rooms = preload_manager_rooms_of_task(http->parts.preload, task->id, &rooms);
    json_object_set_new(object, "copy_room_mib",
        has_rooms ? json_real((double)rooms.bytes / (double)MIB) : json_null());
    json_object_set_new(object, "copy_room_text",
        has_rooms ? json_string(room_text_write(&rooms, text, sizeof text)) : json_null());
}

/* How it gave way; suspended_s includes a present stop. */
static void add_yield(struct http *http, json_t *object, const struct task *task)
{
    const struct task_yield *yield = &task->run->yield;
    char probes[128], no_room[256];
    const char *why = suspension_why_failed(http->parts.suspension, task->id);
    if (!*why)
        why = core_explain_copy(http->parts.core, task, no_room, sizeof no_room);
    int64_t now_us = driver_now_us(http->parts.driver);
    int64_t stopped_us = yield->stopped_us + (yield->since_us ? now_us - yield->since_us : 0);
    json_object_set_new(object, "suspended_s", json_seconds(stopped_us));
    json_object_set_new(object, "suspension_cost_s", json_seconds(yield->cost_us));
    json_object_set_new(object, "suspensions", json_integer(yield->suspensions));
    json_object_set_new(object, "moves", json_integer(yield->moves));
    json_object_set_new(object, "pauses", json_integer(yield->pauses));
    core_explain_probes(http->parts.core, task, probes, sizeof probes);
    json_object_set_new(object, "probes_text", *probes ? json_string(probes) : json_null());
    add_memory_waits(object, &task->run->memory_wait, now_us);
    json_object_set_new(object, "suspension_error", *why ? json_string(why) : json_null());
    add_carrier(http, object, task);
    add_rooms(http, object, task);
}

static void add_gpus(struct http *http, json_t *object, const struct task *task)
{
    const struct gpu_view *gpus = core_view(http->parts.core)->gpus;
    json_t *labels = json_array(), *uuids = json_array();
    for (int i = 0; i < task->n_gpus; i++) {
        json_array_append_new(labels, json_string(gpus[task->gpus[i]].id.label));
        json_array_append_new(uuids, json_string(gpus[task->gpus[i]].id.uuid));
    }
    json_object_set_new(object, "gpus_requested", json_integer(task->request.gpus));
    json_object_set_new(object, "gpus", labels);
    json_object_set_new(object, "gpu_uuids", uuids);
}

static void add_share(json_t *object, const struct task *task)
{
    const struct sharing_mode *share = &task->run->share;
    bool limited = share->mem_limit_bytes > 0;
    json_object_set_new(
        object, "sharing_requested", json_string(sharing_name(task->request.sharing)));
    json_object_set_new(object, "sharing_text", json_string(sharing_reason_text(share->reason)));
    json_object_set_new(object, "thread_percentage",
        share->thread_percent ? json_integer(share->thread_percent) : json_null());
    json_object_set_new(object, "mem_limit_mib",
        limited ? json_real((double)share->mem_limit_bytes / (double)MIB) : json_null());
}

/* When it may start, and before which tasks. */
static void add_order(struct http *http, json_t *object, const struct task *task)
{
    const struct task_request *request = &task->request;
    char text[64];
    json_t *waits_for = json_array();
    for (int i = 0; i < task->n_after; i++)
        json_array_append_new(
            waits_for, json_string(dependency_format(&task->after[i], text, sizeof text)));
    json_object_set_new(object, "priority", json_string(priority_name(request->priority)));
    json_object_set_new(
        object, "begin_at", json_moment(http, request->begin_us, request->begin_us > 0));
    json_object_set_new(object, "waits_for", waits_for);
    json_object_set_new(object, "requeue", json_boolean(!request->once));
}

/* What is expected of the task's SM activity, in a sentence. Returns `text`; "" of a task that has
 * ended, or has no GPU. */
static const char *expected_activity_text(const struct task *task, char *text, size_t size)
{
    struct reading smact = task->request.expect.smact;
    *text = 0;
    if (task_state_is_done(task->state) || task->request.gpus == 0)
        return text;
    if (smact.valid)
        snprintf(text, size, "%.0f %%, which counts before it is measured", 100 * smact.value);
    else
        snprintf(text, size,
            "unknown: it counts as the mean of the tasks that compute beside it until it is "
            "measured");
    return text;
}

static void add_request(
    struct http *http, json_t *object, const struct task *task, const struct job *job)
{
    const struct task_request *request = &task->request;
    const struct policy *policy = request->policy ? request->policy
                                                  : core_get_settings(http->parts.core)->policy;
    json_object_set_new(object, "policy", json_string(policy->name));
    enum sharing sharing = task->attempts > 0 ? task->run->share.sharing : request->sharing;
    json_object_set_new(object, "sharing", json_string(sharing_name(sharing)));
    add_share(object, task);
    json_object_set_new(object, "exclusive", json_boolean(request->exclusive));
    json_object_set_new(object, "time_limit_s",
        request->time_limit_us ? json_seconds(request->time_limit_us) : json_null());
    json_object_set_new(object, "expected_s", json_reading(request->expect.time_us, 1e6));
    json_object_set_new(object, "smact_expected", json_reading(request->expect.smact, 1));
    char text[128];
    json_object_set_new(
        object, "smact_text", json_string(expected_activity_text(task, text, sizeof text)));
    json_object_set_new(
        object, "estimator", job && *job->estimator ? json_string(job->estimator) : json_null());
    json_object_set_new(object, "estimate_evidence",
        job && *job->estimate_evidence ? json_string(job->estimate_evidence) : json_null());
    json_object_set_new(object, "estimate_kernels",
        job && *job->estimate_kernels ? json_string(job->estimate_kernels) : json_null());
    json_object_set_new(
        object, "subject", job && job->subject ? json_loads(job->subject, 0, NULL) : json_null());
    json_object_set_new(
        object, "estimate_mib", job ? json_reading(job->estimate_bytes, (double)MIB) : json_null());
    json_object_set_new(object, "predicted_mib",
        job ? json_reading(job->predicted_bytes, (double)MIB) : json_null());
    json_object_set_new(
        object, "p99_mib", job ? json_reading(job->p99_bytes, (double)MIB) : json_null());
}

/* null where the task's steps are not known: never zero. */
static void add_steps(json_t *object, const struct task *task, const struct job *job)
{
    const struct job_steps *steps = job ? &job->steps : NULL;
    bool known = steps && steps->total > 0 && steps->timed_s > 0;
    bool runs = task->state == TASK_RUNNING;
    json_object_set_new(object, "steps", known ? json_real(floor(steps->total)) : json_null());
    json_object_set_new(
        object, "steps_per_s", steps && runs ? json_reading(steps->per_s, 1) : json_null());
    json_object_set_new(
        object, "steps_per_s_mean", known ? json_real(steps->total / steps->timed_s) : json_null());
    struct reading alone = steps && steps->alone && steps->alone->windows > 0 ? steps->alone->per_s
                                                                              : READING_NONE;
    json_object_set_new(object, "steps_per_s_alone", json_reading(alone, 1));
    json_object_set_new(object, "step_source",
        !known                                  ? json_null()
        : steps->source == PRELOAD_STEPS_MARKED ? json_string("reported")
                                                : json_string("calls"));
}

static void add_outcome(
    struct http *http, json_t *object, const struct task *task, const struct job *job)
{
    bool seen = job && job->mem_peak_bytes.valid && job->peak_gpu != JOB_GPU_UNKNOWN;
    const char *kind = seen ? core_view(http->parts.core)->gpus[job->peak_gpu].id.name : NULL;
    bool preallocated = seen && learned_peak_is_preallocated(http->parts.core, task, job);
    bool exited = task->attempts > 0 && !task_state_has_attempt(task->state);
    bool failed = job && job->failure != FAILURE_NONE;
    json_object_set_new(
        object, "attempt_count", json_integer(task->attempts - task->run->unstarted));
    json_object_set_new(object, "attempts",
        attempt_list_copy(job ? job->attempts : NULL, driver_wall_us(http->parts.driver, 0)));
    json_object_set_new(object, "oom_count", json_integer(task->oom_count));
    json_object_set_new(object, "requeue_count", json_integer(task->requeue_count));
    json_object_set_new(object, "exit_code",
        exited && task->run->exit.code >= 0 ? json_integer(task->run->exit.code) : json_null());
    json_object_set_new(object, "signal",
        exited && task->run->exit.signal ? json_integer(task->run->exit.signal) : json_null());
    json_object_set_new(
        object, "failure", failed ? json_string(failure_name(job->failure)) : json_null());
    json_object_set_new(
        object, "evidence", job && job->evidence ? json_string(job->evidence) : json_null());
    json_object_set_new(
        object, "mem_used_mib", job ? json_reading(job->mem_used_bytes, (double)MIB) : json_null());
    json_object_set_new(object, "mem_text", overrun_text(task, job));
    json_object_set_new(object, "gpu_kind", kind ? json_string(kind) : json_null());
    json_object_set_new(
        object, "mem_peak_mib", job ? json_reading(job->mem_peak_bytes, (double)MIB) : json_null());
    json_object_set_new(object, "preallocated", json_boolean(preallocated));
    json_object_set_new(
        object, "smact_mean", job ? json_reading(job_mean_smact(job), 1) : json_null());
    json_object_set_new(
        object, "energy_j", job ? json_reading(job->usage.energy_j, 1) : json_null());
    json_object_set_new(object, "shares_estimated", json_boolean(job && job->usage.is_estimated));
}

/* "met", "missed" or "unknown"; null without a target. */
static json_t *target_state_json(const struct task *task)
{
    const struct task_service *service = &task->run->service;
    double target_us = (double)task->request.service.p99_us;
    if (target_us <= 0)
        return json_null();
    if (!service->p99_us.valid || task->state != TASK_RUNNING)
        return json_string("unknown");
    return json_string(service->p99_us.value <= target_us ? "met" : "missed");
}

static void add_service(json_t *object, const struct task *task)
{
    const struct service_request *request = &task->request.service;
    json_object_set_new(object, "service", json_boolean(request->is_service));
    json_object_set_new(object, "p99_target_s",
        request->p99_us ? json_real((double)request->p99_us / 1e6) : json_null());
    json_object_set_new(object, "p99_now_s", json_reading(task->run->service.p99_us, 1e6));
    json_object_set_new(object, "target_state", target_state_json(task));
    json_object_set_new(object, "restart_count", json_integer(task->run->service.restarts));
}

static void add_ledger(json_t *object, const struct job *job)
{
    json_object_set_new(object, "ledger", alone_time_json(job));
}

/* null where no speed was promised, and where it is not known. */
static void add_promise(const struct http *http, json_t *object, const struct task *task)
{
    char text[256];
    int64_t now_us = driver_now_us(http->parts.driver);
    const struct task_promise *promise = &task->run->promise;
    bool is_shown = task->state == TASK_RUNNING && promise->reported_us;
    core_explain_promise(http->parts.core, task->id, now_us, text, sizeof text);
    json_object_set_new(object, "max_slowdown", json_reading(task->request.slowdown_max, 1));
    json_object_set_new(
        object, "slowdown", is_shown ? json_reading(promise->slowdown, 1) : json_null());
    json_object_set_new(object, "promise_text", *text ? json_string(text) : json_null());
}

json_t *http_stop_json(const struct http *http, const struct task *task)
{
    const struct halving_rule *rule = core_halving_rule(http->parts.core, task->array.id);
    const struct halving_rank *stop = &task->run->stop;
    if (!rule || stop->of == 0)
        return json_null();
    return json_pack("{s:s, s:I, s:i, s:i, s:b}", "metric", rule->metric, "step",
        (json_int_t)halving_step(rule, stop->rung), "rank", stop->rank, "of", stop->of, "stopped",
        task->ending == FAILURE_STOPPED);
}

static void add_need(json_t *object, const struct need *need)
{
    bool known = need->kind == NEED_ESTIMATED || need->kind == NEED_DECLARED;
    json_object_set_new(
        object, "need_mib", known ? json_real((double)need->bytes / (double)MIB) : json_null());
}

/* null for a task of no array */
static json_t *number_or_null(int64_t number, const struct task *task)
{
    return task->array.id ? json_integer(number) : json_null();
}

/* Its position in its queue, from 1; 0: it is in none. */
static int position_of(const struct http *http, const struct task *task)
{
    return task->queue ? core_ahead_of(http->parts.core, task, NULL) + 1 : 0;
}

static json_t *summary_json(
    struct http *http, const struct task *task, const struct job *job, int position)
{
    json_t *object = json_object();
    if (!object)
        return NULL;
    json_object_set_new(object, "id", json_integer((json_int_t)task->id));
    json_object_set_new(object, "array_id", number_or_null((int64_t)task->array.id, task));
    json_object_set_new(object, "array_index", number_or_null(task->array.index, task));
    json_object_set_new(object, "name", json_string(job ? job->name : ""));
    json_object_set_new(
        object, "command", job && *job->command ? json_string(job->command) : json_null());
    json_object_set_new(object, "user", json_string(job ? job->user : ""));
    json_object_set_new(object, "uid", json_integer(task->uid));
    json_object_set_new(object, "state", json_string(public_task_state(http, task)));
    add_reason(http, object, task, job, task->state == TASK_QUEUED ? position : 0);
    json_object_set_new(
        object, "cancelled_by", cancelled_by(job) ? json_string(cancelled_by(job)) : json_null());
    add_times(http, object, task);
    add_gpus(http, object, task);
    add_need(object, &task->request.need);
    return object;
}

json_t *http_task_summary_json(struct http *http, const struct task *task)
{
    return summary_json(http, task, jobs_find(http->parts.jobs, task->id), position_of(http, task));
}

json_t *http_task_json(struct http *http, const struct task *task)
{
    int position = position_of(http, task);
    const struct job *job = jobs_find(http->parts.jobs, task->id);
    json_t *object = summary_json(http, task, job, position);
    if (!object)
        return NULL;
    add_yield(http, object, task);
    add_request(http, object, task, job);
    add_order(http, object, task);
    add_service(object, task);
    add_promise(http, object, task);
    json_object_set_new(object, "stop_rank", http_stop_json(http, task));
    add_outcome(http, object, task, job);
    add_steps(object, task, job);
    add_ledger(object, job);
    json_object_set_new(object, "srun_steps",
        step_list_json(job ? job->srun_steps : NULL, task->attempts, object,
            driver_wall_us(http->parts.driver, 0)));
    json_object_set_new(object, "position", position ? json_integer(position) : json_null());
    return object;
}
