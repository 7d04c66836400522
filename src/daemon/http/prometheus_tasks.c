/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks as metrics. Those that have GPUs have lines with their id, user and name; of the others
 * only sums are written, so that a long queue does not make thousands of series.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/prometheus.h"
#include "daemon/http/public_json.h"

static const struct metric_family task_count = {
    "colloc_tasks", "gauge", "Tasks that have not ended, by state."};
static const struct metric_family task_seconds = {
    "colloc_task_execution_seconds", "gauge", "Time in execution, all attempts together."};
static const struct metric_family task_used = {
    "colloc_task_memory_used_bytes", "gauge", "GPU memory of the task, on all its GPUs together."};
static const struct metric_family task_peak = {
    "colloc_task_memory_peak_bytes", "gauge", "The most of that so far."};
static const struct metric_family task_on_gpu = {
    "colloc_task_gpu_memory_used_bytes", "gauge", "Memory of the task on one GPU."};
static const struct metric_family task_energy = {"colloc_task_energy_joules_total", "counter",
    "Its part of its GPUs' energy, all attempts together."};
static const struct metric_family task_active = {"colloc_task_gpu_sm_active_ratio", "gauge",
    "Its part of the GPU's SMACT, since the last sample."};
static const struct metric_family task_steps_now = {"colloc_task_steps_per_second", "gauge",
    "Steps of its training a second, now; no line: unknown."};
static const struct metric_family task_room = {"colloc_task_carrier_pool_bytes", "gauge",
    "Host memory for the copies of the task's GPU memory."};
static const struct metric_family task_unused = {"colloc_task_gpu_unused_seconds", "gauge",
    "For how long the task has held the GPU without using it; 0: it uses it."};
static const struct metric_family longest_wait = {"colloc_queue_longest_wait_seconds", "gauge",
    "For how long the task that waits longest has waited; held tasks do not count."};
static const struct metric_family tasks_ended = {
    "colloc_tasks_ended_total", "counter", "Tasks that ended since the daemon was started."};
static const struct metric_family memory_crashes = {"colloc_task_memory_crashes_total", "counter",
    "GPU memory crashes of the tasks that ended since the daemon was started."};

static void put_task(const struct exposition *to, const char *metric, const struct job *job)
{
    char id[24];
    snprintf(id, sizeof id, "%llu", (unsigned long long)job->id);
    fputs(metric, to->out);
    exposition_label(to, "{", "task", id);
    exposition_label(to, ",", "user", job->user);
    exposition_label(to, ",", "name", job->name);
}

/* What one walk over all tasks finds: of 100,000 that wait only numbers are written. */
static const char *const state_words[] = {
    "PENDING", "RUNNING", "SUSPENDED", "PAUSED", "COMPLETING"};

struct found_tasks {
    const struct task **live; /* with an attempt */
    size_t n, capacity;
    int counts[ARRAY_SIZE(state_words)];
    int64_t waits_since_us;
};

static void count_task(const struct http *http, const struct task *task, struct found_tasks *found)
{
    const char *word = public_task_state(http, task);
    for (size_t i = 0; i < ARRAY_SIZE(state_words); i++)
        found->counts[i] += strcmp(word, state_words[i]) == 0;
    if ((task->state == TASK_QUEUED || task->state == TASK_RECOVERING) &&
        task->queued_us < found->waits_since_us)
        found->waits_since_us = task->queued_us;
}

/* Returns 0 or -ENOMEM. */
static int find_tasks(const struct http *http, struct found_tasks *found)
{
    const struct core *core = http->parts.core;
    *found = (struct found_tasks){.waits_since_us = driver_now_us(http->parts.driver)};
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id)) {
        count_task(http, task, found);
        if (task_state_has_attempt(task->state) &&
            ARRAY_APPEND(found->live, found->n, found->capacity, task) < 0)
            return -ENOMEM;
    }
    return 0;
}

static void put_counts(const struct exposition *to, const struct found_tasks *found)
{
    exposition_begin(to, &task_count);
    for (size_t i = 0; i < ARRAY_SIZE(state_words); i++)
        fprintf(
            to->out, "%s{state=\"%s\"} %d\n", task_count.name, state_words[i], found->counts[i]);
}

static void put_longest_wait(
    const struct exposition *to, const struct http *http, const struct found_tasks *found)
{
    int64_t waited_us = driver_now_us(http->parts.driver) - found->waits_since_us;
    exposition_begin(to, &longest_wait);
    fprintf(to->out, "%s %.6f\n", longest_wait.name, (double)waited_us / 1e6);
}

static void put_ends(const struct exposition *to, const struct http *http)
{
    exposition_begin(to, &tasks_ended);
    for (enum task_state state = TASK_COMPLETED; state < TASK_STATES; state++)
        fprintf(to->out, "%s{state=\"%s\"} %lld\n", tasks_ended.name, task_state_word(state),
            (long long)http->ends.tasks[state]);
    exposition_begin(to, &memory_crashes);
    fprintf(to->out, "%s %lld\n", memory_crashes.name, (long long)http->ends.memory_crashes);
}

static void put_times(
    const struct exposition *to, const struct http *http, const struct found_tasks *found)
{
    int64_t now_us = driver_now_us(http->parts.driver);
    exposition_begin(to, &task_seconds);
    for (size_t i = 0; i < found->n; i++) {
        const struct task *task = found->live[i];
        const struct job *job = jobs_find(http->parts.jobs, task->id);
        if (!job || !task_state_holds_gpus(task->state))
            continue;
        put_task(to, task_seconds.name, job);
        fprintf(to->out, "} %.6f\n", (double)(task->executed_us + now_us - task->started_us) / 1e6);
    }
}

static void put_readings(const struct exposition *to, const struct http *http,
    const struct found_tasks *found, const struct metric_family *family, size_t at)
{
    exposition_begin(to, family);
    for (size_t i = 0; i < found->n; i++) {
        const struct task *task = found->live[i];
        const struct job *job = jobs_find(http->parts.jobs, task->id);
        if (!job || !task_state_holds_gpus(task->state))
            continue;
        struct reading r = *(const struct reading *)((const char *)job + at);
        if (!r.valid)
            continue;
        put_task(to, family->name, job);
        exposition_reading(to, r, 1);
    }
}

static void put_rooms(
    const struct exposition *to, const struct http *http, const struct found_tasks *found)
{
    struct room_of_task rooms;
    exposition_begin(to, &task_room);
    for (size_t i = 0; i < found->n; i++) {
        const struct task *task = found->live[i];
        const struct job *job = jobs_find(http->parts.jobs, task->id);
        if (!job || !preload_manager_rooms_of_task(http->parts.preload, task->id, &rooms))
            continue;
        put_task(to, task_room.name, job);
        fprintf(to->out, "} %llu\n", (unsigned long long)rooms.bytes);
    }
}

/* ---- of tasks on GPUs ---- */

/* A value of one task on one GPU; an unknown one has no line. */
static void put_on_gpu(const struct exposition *to, const struct http *http,
    const struct metric_family *family, uint64_t task, const struct gpu_info *info,
    struct reading reading)
{
    const struct job *job = jobs_find(http->parts.jobs, task);
    if (!job || !reading.valid)
        return;
    put_task(to, family->name, job);
    exposition_label(to, ",", "gpu", info->index);
    exposition_label(to, ",", "uuid", info->uuid);
    exposition_reading(to, reading, 1);
}

static void put_activities(const struct exposition *to, const struct http *http)
{
    struct gpu_report gpu;
    exposition_begin(to, &task_active);
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++) {
        if (gpu.view < 0 || !public_gpu_is_current(http, &gpu))
            continue;
        for (size_t k = 0; k < gpu.n_shares; k++)
            put_on_gpu(to, http, &task_active, gpu.shares[k].task, gpu.info, gpu.shares[k].smact);
    }
}

static struct reading memory_of(const struct http *http, size_t i, const struct resident *resident)
{
    return resident->mem_used_bytes;
}

static struct reading unused_s_of(
    const struct http *http, size_t i, const struct resident *resident)
{
    bool is_long;
    struct reading us = gpus_idle_us(http->parts.gpus, i, resident, &is_long);
    return (struct reading){us.value / 1e6, us.valid};
}

/* `get`: the value of a resident of GPU `i` */
static void put_residents(const struct exposition *to, const struct http *http,
    const struct metric_family *family,
    struct reading (*get)(const struct http *http, size_t i, const struct resident *resident))
{
    const struct cluster_view *view = core_view(http->parts.core);
    struct gpu_report gpu;
    exposition_begin(to, family);
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++) {
        if (gpu.view < 0)
            continue;
        const struct gpu_view *seen = &view->gpus[gpu.view];
        for (int k = 0; k < seen->n_residents; k++)
            put_on_gpu(to, http, family, seen->residents[k].task, gpu.info,
                get(http, i, &seen->residents[k]));
    }
}

int prometheus_put_tasks(const struct exposition *to, const struct http *http)
{
    struct found_tasks found;
    int r = find_tasks(http, &found);
    if (r == 0) {
        put_counts(to, &found);
        put_longest_wait(to, http, &found);
        put_ends(to, http);
        put_times(to, http, &found);
        put_readings(to, http, &found, &task_used, offsetof(struct job, mem_used_bytes));
        put_readings(to, http, &found, &task_peak, offsetof(struct job, mem_peak_bytes));
        put_readings(to, http, &found, &task_energy, offsetof(struct job, usage.energy_j));
        put_readings(to, http, &found, &task_steps_now, offsetof(struct job, steps.per_s));
        put_rooms(to, http, &found);
        put_residents(to, http, &task_on_gpu, memory_of);
        put_activities(to, http);
        put_residents(to, http, &task_unused, unused_s_of);
    }
    free(found.live);
    return r;
}
