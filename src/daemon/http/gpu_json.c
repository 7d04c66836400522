/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs as the GPU objects of docs/protocol.md: the last sample, the core's view, and the shares. */
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/units.h"
#include "core/questions.h"
#include "core/sharing_choice.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/public_json.h"

static struct share find_share(const struct gpu_report *gpu, uint64_t task)
{
    for (size_t i = 0; i < gpu->n_shares; i++)
        if (gpu->shares[i].task == task)
            return gpu->shares[i];
    return (struct share){0};
}

static json_t *resident_task(const struct http *http, size_t i, const struct gpu_report *gpu,
    const struct resident *resident)
{
    bool is_long;
    struct reading idle_us = gpus_idle_us(http->parts.gpus, i, resident, &is_long);
    struct share share = find_share(gpu, resident->task);
    return json_pack("{s:I, s:o, s:o, s:o, s:b, s:o, s:b}", "id", (json_int_t)resident->task,
        "mem_used_mib", json_reading(resident->mem_used_bytes, (double)MIB), "smact",
        json_reading(share.smact, 1), "power_w", json_reading(share.power_w, 1), "settled",
        residence_has_settled(resident->residence), "unused_s", json_reading(idle_us, 1e6),
        "unused_for_long", is_long);
}

/* By rising ids. */
static json_t *resident_tasks(
    const struct http *http, size_t i, const struct gpu_report *gpu, const struct gpu_view *view)
{
    json_t *tasks = json_array();
    for (int k = 0; k < view->n_residents; k++) {
        size_t before = 0;
        for (int other = 0; other < view->n_residents; other++)
            before += other < k && view->residents[other].task < view->residents[k].task;
        json_array_insert_new(tasks, before, resident_task(http, i, gpu, &view->residents[k]));
    }
    return tasks;
}

/* The suspended tasks whose contexts have stayed there. */
static json_t *contexts_of_suspended(const struct gpu_view *view)
{
    json_t *tasks = json_array();
    for (int i = 0; i < view->n_absent; i++)
        json_array_append_new(tasks, json_integer((json_int_t)view->absent[i].task));
    return tasks;
}

/* How people name tasks of arrays: {"4": "3_0"}. Others are named by their ids. */
static void add_label(const struct http *http, json_t *labels, uint64_t id)
{
    const struct task *task = core_task(http->parts.core, id);
    if (task && task->array.id)
        json_object_set_new(labels, task_label_of_id(id).text, json_string(task_label(task).text));
}

static json_t *task_labels(
    const struct http *http, const struct gpu_report *gpu, const struct gpu_view *view)
{
    json_t *labels = json_object();
    for (int i = 0; i < view->n_residents; i++)
        add_label(http, labels, view->residents[i].task);
    for (int i = 0; i < view->n_absent; i++)
        add_label(http, labels, view->absent[i].task);
    for (size_t i = 0; i < gpu->n_misplaced; i++)
        add_label(http, labels, gpu->misplaced[i].task);
    return labels;
}

/* What all external processes did together. */
static void add_external_shares(json_t *object, const struct gpu_report *gpu)
{
    struct reading smact = reading_of(0), power_w = reading_of(0);
    for (size_t i = 0; i < gpu->n_shares; i++) {
        const struct share *share = &gpu->shares[i];
        if (share->task)
            continue;
        smact = (struct reading){
            smact.value + share->smact.value, smact.valid && share->smact.valid};
        power_w = (struct reading){
            power_w.value + share->power_w.value, power_w.valid && share->power_w.valid};
    }
    bool known = gpu->sample->processes.valid;
    json_object_set_new(object, "foreign_smact", known ? json_reading(smact, 1) : json_null());
    json_object_set_new(object, "foreign_power_w", known ? json_reading(power_w, 1) : json_null());
    json_object_set_new(object, "shares_estimated", json_boolean(gpu->shares_estimated));
}

/* Adds what the kernel shows of the process; null, if it has ended or is younger than `since_us`
 * ago: then it is another one. */
static void add_facts(json_t *object, struct names *names, pid_t pid, int64_t since_us)
{
    struct process_facts facts;
    bool is_known = process_read(pid, &facts) == 0 && facts.age_us >= since_us;
    json_object_set_new(object, "uid", is_known ? json_integer(facts.uid) : json_null());
    json_object_set_new(
        object, "user", is_known ? json_string(names_of_uid(names, facts.uid)->name) : json_null());
    json_object_set_new(object, "name", is_known ? json_string(facts.name) : json_null());
    json_object_set_new(object, "started_at",
        is_known ? json_seconds(clock_wall_us() - facts.age_us) : json_null());
}

static const struct left_memory *find_left(const struct gpu_report *gpu, pid_t pid)
{
    for (size_t i = 0; i < gpu->n_left; i++)
        if (gpu->left[i].pid == pid)
            return &gpu->left[i];
    return NULL;
}

/* Of which task the process was that has left memory behind, and its holder. */
static json_t *left_behind(struct names *names, const struct left_memory *left)
{
    json_t *holder = left->holder ? json_pack("{s:i}", "pid", (int)left->holder) : json_null();
    if (left->holder)
        add_facts(holder, names, left->holder, 0);
    return json_pack("{s:o, s:o}", "task",
        left->task ? json_integer((json_int_t)left->task) : json_null(), "holder", holder);
}

/* Of a process that has ended, the pid may belong to another one by now. */
static json_t *external_process(
    struct names *names, const struct gpu_report *gpu, const struct gpu_process *process)
{
    const struct left_memory *left = find_left(gpu, process->pid);
    int64_t since_sample_us = clock_monotonic_us() - gpu->sample->at_us;
    json_t *object = json_pack("{s:i, s:o}", "pid", (int)process->pid, "mem_used_mib",
        json_reading(process->used_bytes, (double)MIB));
    add_facts(object, names, process->pid, left ? INT64_MAX : since_sample_us);
    json_object_set_new(object, "left_behind", left ? left_behind(names, left) : json_null());
    return object;
}

static json_t *external_processes(const struct http *http, const struct gpu_report *gpu)
{
    if (!gpu->sample->processes.valid)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < gpu->n_external; i++)
        json_array_append_new(list, external_process(http->parts.names, gpu, &gpu->external[i]));
    return list;
}

/* Of tasks that were not given the GPU. */
static json_t *misplaced_processes(const struct gpu_report *gpu)
{
    if (!gpu->sample->processes.valid)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < gpu->n_misplaced; i++)
        json_array_append_new(
            list, json_pack("{s:I, s:i, s:o}", "task", (json_int_t)gpu->misplaced[i].task, "pid",
                      (int)gpu->misplaced[i].pid, "mem_used_mib",
                      json_reading(gpu->misplaced[i].used_bytes, (double)MIB)));
    return list;
}

static bool is_stale(const struct http *http, const struct gpu_view *view)
{
    const struct core_settings *settings = core_get_settings(http->parts.core);
    int64_t age_us = driver_now_us(http->parts.driver) - view->sampled_us;
    return view->health == VIEW_UNSEEN || age_us > settings->conditions.sample_valid_us;
}

const char *public_gpu_health(
    const struct http *http, const struct gpu_report *gpu, const char **ret_text)
{
    const struct gpu_info *info = gpu->info;
    const struct gpu_sample *sample = gpu->sample;
    const struct gpu_view *view = &core_view(http->parts.core)->gpus[gpu->view];
    *ret_text = "";
    if (view->health == VIEW_LOST) {
        *ret_text = sample->health_reason;
        return "lost";
    }
    *ret_text = sample->trouble.text;
    if (view->health == VIEW_FAULTY)
        return "faulty";
    if (view->health == VIEW_OUT_OF_USE) {
        if (!**ret_text)
            *ret_text = "no further task starts on it (setting drain)";
        return "drained";
    }
    if (!info->is_place) {
        *ret_text = info->why_not;
        return info->mig_mode == GPU_MIG_ON && !info->is_mig ? "mig-parent" : "unusable";
    }
    if (is_stale(http, view)) {
        *ret_text = *sample->health_reason ? sample->health_reason : "no recent reading";
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
    json_object_set_new(object, "activity_age_s", name ? json_seconds(age_us) : json_null());
    json_object_set_new(object, "activity_text", json_string(seen->activity.reason));
}

static void add_window(json_t *object, const struct window *window)
{
    json_t *figures = json_object();
    for (int how = 0; how < WINDOW_STATISTICS; how++)
        json_object_set_new(figures, window_statistic_name((enum window_statistic)how),
            json_reading(window_level(window, (enum window_statistic)how, INT64_MIN, 1), 1));
    json_object_set_new(figures, "slope_per_s", json_reading(window_slope_per_s(window), 1));
    json_object_set_new(object, "smact_statistics", figures);
}

static json_t *gpu_json(const struct http *http, size_t i, const struct gpu_report *gpu)
{
    const struct gpu_info *info = gpu->info;
    const struct gpu_view *view = &core_view(http->parts.core)->gpus[gpu->view];
    const struct gpu_sample *seen = gpu->sample;
    char text[128];
    const char *held = core_explain_hold(http->parts.core, view, text, sizeof text);
    const char *health_text;
    json_t *object = json_object();
    json_object_set_new(object, "index", json_string(info->index));
    json_object_set_new(object, "uuid", json_string(info->uuid));
    json_object_set_new(object, "name", json_string(info->name));
    json_object_set_new(
        object, "mig_profile", info->is_mig ? json_string(info->profile) : json_null());
    json_object_set_new(object, "gpu_instance",
        info->gpu_instance.valid ? json_integer((json_int_t)info->gpu_instance.value)
                                 : json_null());
    json_object_set_new(
        object, "parent_uuid", gpu->parent ? json_string(gpu->parent->uuid) : json_null());
    json_object_set_new(object, "health", json_string(public_gpu_health(http, gpu, &health_text)));
    json_object_set_new(object, "health_text", json_string(health_text));
    json_object_set_new(object, "mem_total_mib", json_reading(info->mem_total_bytes, (double)MIB));
    json_object_set_new(object, "mem_used_mib", json_reading(seen->mem_used_bytes, (double)MIB));
    json_object_set_new(object, "mem_free_mib", json_reading(seen->mem_free_bytes, (double)MIB));
    json_object_set_new(object, "utilisation", json_reading(seen->utilisation, 1));
    json_object_set_new(object, "smact", json_reading(seen->smact, 1));
    json_object_set_new(object, "smact_window", json_reading(view->smact_level, 1));
    add_window(object, &view->smact);
    add_activity_source(object, seen);
    json_object_set_new(object, "smocc", json_reading(seen->smocc, 1));
    json_object_set_new(object, "dram_active", json_reading(seen->dram_active, 1));
    json_object_set_new(object, "power_w", json_reading(seen->power_w, 1));
    json_object_set_new(object, "power_limit_w", json_reading(info->power_limit_w, 1));
    json_object_set_new(object, "energy_mj", json_reading(seen->energy_j, 1e6));
    json_object_set_new(object, "temperature_c", json_reading(seen->temperature_c, 1));
    json_object_set_new(object, "tasks", resident_tasks(http, i, gpu, view));
    json_object_set_new(object, "task_labels", task_labels(http, gpu, view));
    json_object_set_new(object, "contexts", contexts_of_suspended(view));
    json_object_set_new(object, "foreign_processes", external_processes(http, gpu));
    json_object_set_new(object, "misplaced_processes", misplaced_processes(gpu));
    add_external_shares(object, gpu);
    json_object_set_new(object, "hold_off", held ? json_string(held) : json_null());
    return object;
}

bool public_gpu_is_current(const struct http *http, const struct gpu_report *gpu)
{
    const char *text, *health = public_gpu_health(http, gpu, &text);
    return strcmp(health, "lost") != 0 && strcmp(health, "stale") != 0;
}

json_t *public_gpus(const struct http *http)
{
    const struct cluster_view *view = core_view(http->parts.core);
    const char *why_none = gpus_why_none(http->parts.gpus);
    json_t *gpus = json_array();
    int64_t sampled_us = 0;
    struct gpu_report gpu;
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++) {
        if (gpu.view < 0)
            continue;
        json_array_append_new(gpus, gpu_json(http, i, &gpu));
        int64_t at_us = view->gpus[gpu.view].sampled_us;
        sampled_us = at_us > sampled_us ? at_us : sampled_us;
    }
    json_t *object = json_pack("{s:o, s:o, s:s, s:s}", "gpus", gpus, "sampled_at",
        json_moment(http, sampled_us, sampled_us > 0), "policy",
        core_get_settings(http->parts.core)->policy->name, "sharing",
        sharing_name(http->parts.config->sharing));
    if (*why_none)
        json_object_set_new(object, "why_none", json_string(why_none));
    return object;
}
