/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and GPUs as the protocol's JSON objects. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/units.h"
#include "core/sharing_choice.h"
#include "daemon/daemon.h"
#include "estimator/physics/gpu_traits.h"

static json_t *number(double value)
{
    return json_real(value);
}

static json_t *reading(struct reading r, double unit)
{
    return r.valid ? json_real(r.value / unit) : json_null();
}

static json_t *moment(struct daemon *daemon, int64_t time_us, bool known)
{
    return known ? json_real((double)driver_wall_us(daemon->driver, time_us) / 1e6) : json_null();
}

static json_t *seconds(int64_t us)
{
    return json_real((double)us / 1e6);
}

/* ---- a task ---- */

const char *record_failure_word(enum failure_class failure)
{
    static const char *const words[FAILURE_CLASSES] = {
        [FAILURE_NONE] = "None",
        [FAILURE_GPU_OOM] = "OutOfMemory",
        [FAILURE_HOST_OOM] = "HostOutOfMemory",
        [FAILURE_PROGRAM] = "NonZeroExitCode",
        [FAILURE_SIGNAL] = "RaisedSignal",
        [FAILURE_TIME_LIMIT] = "TimeLimit",
        [FAILURE_CANCELLED] = "Cancelled",
        [FAILURE_LAUNCH] = "Launch",
        [FAILURE_LOST] = "Lost",
        [FAILURE_GPU_FAULT] = "GpuFault",
        [FAILURE_MPS] = "MpsServer",
        [FAILURE_GPU_GONE] = "GpuGone",
    };
    return words[failure];
}

static const char *end_reason(const struct task *task)
{
    return record_failure_word(task->ending ? task->ending : task->exit.failure);
}

static void explain_end(const struct job *job, const struct task *task, char *text, size_t size)
{
    text[0] = '\0';
    if (task->state == TASK_FAILED && task->not_at_fault)
        snprintf(text, size, "once too often, though perhaps through no fault of its own: %s",
            job && job->evidence ? job->evidence : "(no line says more)");
    else if (task->state == TASK_FAILED && task->possible_cause &&
             task->exit.failure == FAILURE_GPU_FAULT)
        snprintf(text, size,
            "apart from others too, so the fault that stopped its neighbours was its own: %s",
            job && job->evidence ? job->evidence : "(no line says more)");
    else if (task->state == TASK_OUT_OF_MEMORY && task->exit.failure == FAILURE_GPU_OOM)
        snprintf(text, size, "out of GPU memory %s: %s",
            task->had_coresidents ? "once too often" : "with its GPU to itself",
            job && job->evidence ? job->evidence : "(no line says more)");
    else if (job && job->evidence)
        snprintf(text, size, "%s", job->evidence);
}

/* Its GPUs are taken for it, but it has not started: the machine is short of something else. */
static bool is_put_off(const struct task *task, const struct job *job)
{
    return task->state == TASK_STARTING && job && job->put_off_why;
}

const char *record_state(struct daemon *daemon, const struct task *task)
{
    return is_put_off(task, job_find(daemon, task->id)) ? task_state_word(TASK_QUEUED)
                                                        : task_state_word(task->state);
}

static void add_reason(struct daemon *daemon, json_t *object, const struct task *task,
    const struct job *job, int position)
{
    char text[2048] = "";
    const char *word;
    if (task_state_is_done(task->state) || task->state == TASK_EXITED) {
        word = end_reason(task);
        explain_end(job, task, text, sizeof text);
    } else if (is_put_off(task, job)) {
        word = "Resources";
        snprintf(text, sizeof text, "its start is retried every second: %s", job->put_off_why);
    } else if (position > 1) {
        word = "Priority";
        snprintf(text, sizeof text, "%d task%s before it in the queue", position - 1,
            position > 2 ? "s are" : " is");
    } else {
        word = core_reason_word(daemon->core, task->id);
        core_explain(daemon->core, task->id, driver_now_us(daemon->driver), text, sizeof text);
    }
    json_object_set_new(object, "reason", json_string(word));
    json_object_set_new(object, "reason_text", json_string(text));
}

static void add_times(
    struct daemon *daemon, json_t *object, const struct task *task, const struct job *job)
{
    int64_t now_us = driver_now_us(daemon->driver);
    bool put_off = is_put_off(task, job), done = task_state_is_done(task->state);
    bool waits = task->queue || task->state == TASK_HELD || put_off;
    bool runs = task_state_holds_gpus(task->state) && !put_off;
    int64_t end_us = done ? task->ended_us : now_us;
    int64_t waits_since_us = put_off ? task->started_us : task->queued_us;
    bool started = task->attempts > task->unstarted && !put_off;
    json_object_set_new(object, "submitted_at", moment(daemon, task->submitted_us, true));
    json_object_set_new(object, "started_at", moment(daemon, task->started_us, started));
    json_object_set_new(object, "ended_at", moment(daemon, task->ended_us, done));
    json_object_set_new(
        object, "wait_s", seconds(task->waited_us + (waits ? now_us - waits_since_us : 0)));
    json_object_set_new(
        object, "exec_s", seconds(task->executed_us + (runs ? now_us - task->started_us : 0)));
    json_object_set_new(object, "jct_s", seconds(end_us - task->submitted_us));
}

static void add_gpus(struct daemon *daemon, json_t *object, const struct task *task)
{
    const struct gpu_view *gpus = core_view(daemon->core)->gpus;
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
    const struct sharing_mode *share = &task->share;
    bool limited = share->mem_limit_bytes > 0;
    json_object_set_new(
        object, "sharing_requested", json_string(sharing_name(task->request.sharing)));
    json_object_set_new(object, "sharing_text", json_string(sharing_reason_text(share->reason)));
    json_object_set_new(object, "thread_percentage",
        share->thread_percent ? json_integer(share->thread_percent) : json_null());
    json_object_set_new(object, "mem_limit_mib",
        limited ? number((double)share->mem_limit_bytes / (double)MIB) : json_null());
}

static void add_request(
    struct daemon *daemon, json_t *object, const struct task *task, const struct job *job)
{
    const struct task_request *request = &task->request;
    const struct policy *policy = request->policy ? request->policy
                                                  : core_get_settings(daemon->core)->policy;
    bool known = request->need.kind == NEED_ESTIMATED || request->need.kind == NEED_DECLARED;
    json_object_set_new(object, "policy", json_string(policy->name));
    enum sharing sharing = task->attempts > 0 ? task->share.sharing : request->sharing;
    json_object_set_new(object, "sharing", json_string(sharing_name(sharing)));
    add_share(object, task);
    json_object_set_new(object, "exclusive", json_boolean(request->exclusive));
    json_object_set_new(object, "time_limit_s",
        request->time_limit_us ? seconds(request->time_limit_us) : json_null());
    json_object_set_new(object, "expected_s",
        request->expect.time_us ? seconds(request->expect.time_us) : json_null());
    json_object_set_new(object, "smact_expected", reading(request->expect.smact, 1));
    json_object_set_new(object, "need_mib",
        known ? number((double)request->need.bytes / (double)MIB) : json_null());
    json_object_set_new(
        object, "estimator", job && *job->estimator ? json_string(job->estimator) : json_null());
    json_object_set_new(
        object, "subject", job && job->subject ? json_incref(job->subject) : json_null());
    json_object_set_new(
        object, "estimate_mib", job ? reading(job->estimate_bytes, (double)MIB) : json_null());
}

/* The peak may be what a framework took at its start. Its GPUs are taken to have had equal parts. */
static bool is_preallocated(
    const struct daemon *daemon, const struct task *task, const struct job *job)
{
    const struct gpu_identity *gpu = &core_view(daemon->core)->gpus[job->peak_gpu].id;
    return preallocation_explains(job->preallocation, job->peak_whole,
        job->mem_peak_bytes.value / task->request.gpus, (double)gpu->mem_total_bytes);
}

static void add_outcome(
    struct daemon *daemon, json_t *object, const struct task *task, const struct job *job)
{
    bool seen = job && job->mem_peak_bytes.valid && job->peak_gpu >= 0;
    const char *kind = seen ? core_view(daemon->core)->gpus[job->peak_gpu].id.name : NULL;
    bool preallocated = seen && is_preallocated(daemon, task, job);
    bool exited = task->attempts > 0 && !task_state_holds_gpus(task->state);
    bool failed = job && job->failure != FAILURE_NONE;
    json_object_set_new(object, "attempt_count", json_integer(task->attempts - task->unstarted));
    json_object_set_new(object, "attempts", attempts_snapshot(job));
    json_object_set_new(object, "oom_count", json_integer(task->oom_count));
    json_object_set_new(object, "requeue_count", json_integer(task->requeue_count));
    json_object_set_new(object, "exit_code",
        exited && task->exit.code >= 0 ? json_integer(task->exit.code) : json_null());
    json_object_set_new(object, "signal",
        exited && task->exit.signal ? json_integer(task->exit.signal) : json_null());
    json_object_set_new(
        object, "failure", failed ? json_string(failure_name(job->failure)) : json_null());
    json_object_set_new(
        object, "evidence", job && job->evidence ? json_string(job->evidence) : json_null());
    json_object_set_new(
        object, "mem_used_mib", job ? reading(job->mem_used_bytes, (double)MIB) : json_null());
    json_object_set_new(object, "mem_text", overrun_text(task, job));
    json_object_set_new(object, "gpu_kind", kind ? json_string(kind) : json_null());
    json_object_set_new(
        object, "mem_peak_mib", job ? reading(job->mem_peak_bytes, (double)MIB) : json_null());
    json_object_set_new(object, "preallocated", json_boolean(preallocated));
    json_object_set_new(
        object, "smact_mean", job ? reading(usage_smact(&job->usage), 1) : json_null());
    json_object_set_new(object, "energy_j", job ? reading(job->usage.energy_j, 1) : json_null());
    json_object_set_new(object, "shares_estimated", json_boolean(job && job->usage.is_estimated));
}

json_t *record_task(struct daemon *daemon, const struct task *task)
{
    int position = task->queue ? queue_ahead_of(task) + 1 : 0;
    const struct job *job = job_find(daemon, task->id);
    json_t *object = json_object();
    if (!object)
        return NULL;
    json_object_set_new(object, "id", json_integer((json_int_t)task->id));
    json_object_set_new(object, "name", json_string(job ? job->name : ""));
    json_object_set_new(
        object, "command", job && *job->command ? json_string(job->command) : json_null());
    json_object_set_new(object, "user", json_string(job ? job->user : ""));
    json_object_set_new(object, "uid", json_integer(task->uid));
    json_object_set_new(object, "state", json_string(record_state(daemon, task)));
    add_reason(daemon, object, task, job, task->state == TASK_QUEUED ? position : 0);
    add_times(daemon, object, task, job);
    add_gpus(daemon, object, task);
    add_request(daemon, object, task, job);
    add_outcome(daemon, object, task, job);
    json_object_set_new(object, "position", position ? json_integer(position) : json_null());
    return object;
}

/* ---- GPUs ---- */

static const char *hold_off(const struct gpu_view *gpu, char *text, size_t size)
{
    const struct resident *newest = gpu_view_unsettled(gpu);
    if (gpu->drained_for)
        snprintf(text, size, "drained for task %llu, which recovers",
            (unsigned long long)gpu->drained_for);
    else if (gpu->exclusive_for)
        snprintf(text, size, "task %llu has it to itself", (unsigned long long)gpu->exclusive_for);
    else if (newest)
        snprintf(
            text, size, "task %llu is still taking its memory", (unsigned long long)newest->task);
    else
        return NULL;
    return text;
}

static struct share share_of(const struct gpu_state *state, uint64_t task)
{
    for (size_t i = 0; i < state->n_shares; i++)
        if (state->shares[i].task == task)
            return state->shares[i];
    return (struct share){0};
}

static json_t *resident_task(
    const struct daemon *daemon, const struct gpu_state *state, const struct resident *resident)
{
    struct reading unused = unused_us(daemon, state, resident);
    struct share share = share_of(state, resident->task);
    return json_pack("{s:I, s:o, s:o, s:o, s:b, s:o, s:b}", "id", (json_int_t)resident->task,
        "mem_used_mib", reading(resident->mem_used_bytes, (double)MIB), "smact",
        reading(share.smact, 1), "power_w", reading(share.power_w, 1), "settled",
        residence_has_settled(resident->residence), "unused_s", reading(unused, 1e6),
        "unused_for_long", unused_for_long(daemon, unused));
}

static json_t *resident_tasks(
    const struct daemon *daemon, const struct gpu_state *state, const struct gpu_view *gpu)
{
    json_t *tasks = json_array();
    for (int i = 0; i < gpu->n_residents; i++)
        json_array_append_new(tasks, resident_task(daemon, state, &gpu->residents[i]));
    return tasks;
}

/* What those that are not ours did together. */
static void add_foreign_shares(json_t *object, const struct gpu_state *state)
{
    struct reading smact = reading_of(0), power_w = reading_of(0);
    for (size_t i = 0; i < state->n_shares; i++) {
        const struct share *share = &state->shares[i];
        if (share->task)
            continue;
        smact = (struct reading){
            smact.value + share->smact.value, smact.valid && share->smact.valid};
        power_w = (struct reading){
            power_w.value + share->power_w.value, power_w.valid && share->power_w.valid};
    }
    bool known = state->sample.processes.valid;
    json_object_set_new(object, "foreign_smact", known ? reading(smact, 1) : json_null());
    json_object_set_new(object, "foreign_power_w", known ? reading(power_w, 1) : json_null());
    json_object_set_new(object, "shares_estimated", json_boolean(state->shares_estimated));
}

/* The pid may be another process's by now: one that is younger than the sample. */
static json_t *foreign_process(const struct gpu_state *state, const struct gpu_process *process)
{
    struct process_facts facts;
    int64_t since_sample_us = clock_monotonic_us() - state->sample.at_us;
    json_t *object = json_pack("{s:i, s:o, s:n, s:n, s:n}", "pid", (int)process->pid,
        "mem_used_mib", reading(process->used_bytes, (double)MIB), "uid", "name", "started_at");
    if (process_read(process->pid, &facts) < 0 || facts.age_us < since_sample_us)
        return object;
    json_object_set_new(object, "uid", json_integer((json_int_t)facts.uid));
    json_object_set_new(object, "name", json_string(facts.name));
    json_object_set_new(object, "started_at", seconds(clock_wall_us() - facts.age_us));
    return object;
}

static json_t *foreign_processes(const struct gpu_state *state)
{
    if (!state->sample.processes.valid)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < state->n_foreign; i++)
        json_array_append_new(list, foreign_process(state, &state->foreign[i]));
    return list;
}

const char *record_gpu_health(struct daemon *daemon, size_t i, const char **ret_text)
{
    const struct gpu_info *info = &daemon->gpus->gpu[i];
    const struct gpu_state *state = &daemon->gpu_states[i];
    const struct gpu_view *gpu = &core_view(daemon->core)->gpus[state->view];
    int64_t age_us = driver_now_us(daemon->driver) - gpu->sampled_us;
    *ret_text = "";
    if (gpu->health == VIEW_LOST) {
        *ret_text = state->sample.health_reason;
        return "lost";
    }
    *ret_text = state->sample.trouble.text;
    if (gpu->health == VIEW_FAULTY)
        return "faulty";
    if (!info->is_place) {
        *ret_text = info->why_not;
        return info->mig_mode == GPU_MIG_ON && !info->is_mig ? "mig-parent" : "unusable";
    }
    if (gpu->health == VIEW_UNSEEN ||
        age_us > core_get_settings(daemon->core)->conditions.sample_valid_us) {
        *ret_text = *state->sample.health_reason ? state->sample.health_reason
                                                 : "no recent reading";
        return "stale";
    }
    return "ok";
}

static void add_activity_source(json_t *object, const struct gpu_sample *seen)
{
    static const char *const names[] = {[GPU_ACTIVITY_GPM] = "gpm", [GPU_ACTIVITY_DCGM] = "dcgm"};
    const char *name = names[seen->activity.source];
    int64_t age_us = clock_monotonic_us() - seen->activity.at_us;
    json_object_set_new(object, "activity_source", name ? json_string(name) : json_null());
    json_object_set_new(object, "activity_age_s", name ? seconds(age_us) : json_null());
    json_object_set_new(object, "activity_text", json_string(seen->activity.reason));
}

static void add_window(json_t *object, const struct window *window)
{
    json_t *figures = json_object();
    for (int how = 0; how < WINDOW_STATISTICS; how++)
        json_object_set_new(figures, window_statistic_name((enum window_statistic)how),
            reading(window_level(window, (enum window_statistic)how, INT64_MIN, 1), 1));
    json_object_set_new(figures, "slope_per_s", reading(window_slope_per_s(window), 1));
    json_object_set_new(object, "smact_statistics", figures);
}

static json_t *record_gpu(struct daemon *daemon, size_t i)
{
    const struct gpu_info *info = &daemon->gpus->gpu[i];
    const struct gpu_state *state = &daemon->gpu_states[i];
    const struct gpu_view *gpu = &core_view(daemon->core)->gpus[state->view];
    const struct gpu_sample *seen = &state->sample;
    char text[128];
    const char *held = hold_off(gpu, text, sizeof text), *health_text;
    json_t *object = json_object();
    json_object_set_new(object, "index", json_string(info->index));
    json_object_set_new(object, "uuid", json_string(info->uuid));
    json_object_set_new(object, "name", json_string(info->name));
    json_object_set_new(
        object, "mig_profile", info->is_mig ? json_string(info->profile) : json_null());
    json_object_set_new(object, "parent_uuid",
        info->is_mig ? json_string(daemon->gpus->gpu[info->parent].uuid) : json_null());
    json_object_set_new(object, "health", json_string(record_gpu_health(daemon, i, &health_text)));
    json_object_set_new(object, "health_text", json_string(health_text));
    json_object_set_new(object, "mem_total_mib", reading(info->mem_total_bytes, (double)MIB));
    json_object_set_new(object, "mem_used_mib", reading(seen->mem_used_bytes, (double)MIB));
    json_object_set_new(object, "mem_free_mib", reading(seen->mem_free_bytes, (double)MIB));
    json_object_set_new(object, "utilisation", reading(seen->utilisation, 1));
    json_object_set_new(object, "smact", reading(seen->smact, 1));
    json_object_set_new(object, "smact_window", reading(gpu->smact_level, 1));
    add_window(object, &gpu->smact);
    add_activity_source(object, seen);
    json_object_set_new(object, "smocc", reading(seen->smocc, 1));
    json_object_set_new(object, "dram_active", reading(seen->dram_active, 1));
    json_object_set_new(object, "power_w", reading(seen->power_w, 1));
    json_object_set_new(object, "energy_mj", reading(seen->energy_j, 1e6));
    json_object_set_new(object, "temperature_c", reading(seen->temperature_c, 1));
    json_object_set_new(object, "tasks", resident_tasks(daemon, state, gpu));
    json_object_set_new(object, "foreign_processes", foreign_processes(state));
    add_foreign_shares(object, state);
    json_object_set_new(object, "hold_off", held ? json_string(held) : json_null());
    return object;
}

json_t *record_gpus(struct daemon *daemon)
{
    json_t *gpus = json_array();
    int64_t sampled_us = 0;
    for (size_t i = 0; daemon->gpus && i < daemon->gpus->count; i++) {
        int view = daemon->gpu_states[i].view;
        if (view < 0)
            continue;
        json_array_append_new(gpus, record_gpu(daemon, i));
        int64_t at_us = core_view(daemon->core)->gpus[view].sampled_us;
        sampled_us = at_us > sampled_us ? at_us : sampled_us;
    }
    json_t *object = json_pack("{s:o, s:o, s:s, s:s}", "gpus", gpus, "sampled_at",
        moment(daemon, sampled_us, sampled_us > 0), "policy",
        core_get_settings(daemon->core)->policy->name, "sharing",
        sharing_name(daemon->config.sharing));
    if (*daemon->gpus_why)
        json_object_set_new(object, "why_none", json_string(daemon->gpus_why));
    return object;
}

/* ---- the daemon ---- */

static json_t *record_settings(const struct config *config)
{
    const struct conditions *conditions = &config->core.conditions;
    return json_pack("{s:f, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:i}", "smact_max",
        conditions->smact_max, "smact_statistic", window_statistic_name(config->core.statistic),
        "min_free_mib", (double)conditions->min_free_bytes / (double)MIB, "margin_mib",
        (double)conditions->margin_bytes / (double)MIB, "window_s",
        (double)config->core.window_us / 1e6, "sample_period_s",
        (double)config->sample_period_us / 1e6, "settle_s", (double)config->core.settle_us / 1e6,
        "settle_max_s", (double)config->core.settle_max_us / 1e6, "recoveries",
        config->core.recoveries_max, "tasks_per_gpu", conditions->tasks_per_gpu_max);
}

/* Kinds of GPUs of which the estimators know nothing: what they assume is in the note of each
 * estimate. */
static json_t *kinds_not_known(const struct daemon *daemon)
{
    json_t *kinds = json_object();
    for (size_t i = 0; daemon->gpus && i < daemon->gpus->count; i++) {
        const char *name = daemon->gpus->gpu[i].name;
        if (*name && !gpu_traits_find(name))
            json_object_set_new(
                kinds, name, json_sprintf("estimated as an %s", gpu_traits_assumed()->match));
    }
    return kinds;
}

json_t *record_info(struct daemon *daemon)
{
    int queued = core_main_queue(daemon->core)->count + core_recovery_queue(daemon->core)->count,
        running = 0;
    for (const struct task *task = core_next_task(daemon->core, 0); task;
         task = core_next_task(daemon->core, task->id))
        running += task_state_holds_gpus(task->state);
    const char *loss = store_get_loss(daemon->store);
    return json_pack("{s:s, s:i, s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:i, s:i, s:o}", "version",
        COLLOC_VERSION, "api", 1, "pid", (int)getpid(), "policy", daemon->config.core.policy->name,
        "sharing", sharing_name(daemon->config.sharing), "estimator", daemon->config.estimator,
        "state_dir", daemon->config.state_dir, "settings", record_settings(&daemon->config),
        "gpu_kinds_not_known", kinds_not_known(daemon), "queued", queued, "running", running,
        "log_loss", *loss ? json_string(loss) : json_null());
}
