/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live tasks' energy, activity, memory peaks and steps are not in the event log. They are in the
 * file usage.json, written each minute and at the end, and the next daemon reads them, so a crash
 * loses at most a minute of them.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/json_value.h"
#include "base/clock.h"
#include "base/file.h"
#include "daemon/alone_time.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_state.h"

#define PERIOD_US  (60 * SECOND_US)   /* chosen: a crash may lose this much */
#define FILE_LIMIT ((size_t)64 << 20) /* chosen: 200 bytes for each of 300,000 tasks */

static void file_path(const struct gpus *gpus, char *path, size_t size)
{
    snprintf(path, size, "%s/usage.json", gpus->parts.config->state_dir);
}

static struct reading reading_from(const json_t *value)
{
    return json_is_number(value) ? reading_of(json_number_value(value)) : READING_NONE;
}

static json_t *entry_of(const struct job *job)
{
    const struct usage *usage = &job->usage;
    json_t *gpu = job->peak_gpu == JOB_GPU_UNKNOWN ? json_null() : json_integer(job->peak_gpu);
    return json_pack("{s:I, s:o, s:o, s:b, s:o, s:f, s:f, s:b, s:f, s:f, s:i, s:o, s:i, s:f, s:o}",
        "task", (json_int_t)job->id, "mem_peak_bytes", json_reading(job->mem_peak_bytes, 1),
        "peak_gpu", gpu, "peak_whole", job->peak_whole, "energy_j",
        json_reading(usage->energy_j, 1), "smact_s", usage->smact_s, "span_s", usage->span_s,
        "estimated", usage->is_estimated, "steps", job->steps.total, "steps_s", job->steps.timed_s,
        "step_source", job->steps.source, "alone_per_s",
        json_reading(job->steps.alone ? job->steps.alone->per_s : READING_NONE, 1), "alone_windows",
        job->steps.alone ? job->steps.alone->windows : 0, "alone_spread",
        job->steps.alone ? job->steps.alone->spread : 0, "alone_time", alone_time_save(job));
}

void gpus_save_usage(struct gpus *gpus)
{
    char path[600];
    json_t *list = json_array();
    for (const struct task *task = NULL;
         (task = core_next_task(gpus->parts.core, task ? task->id : 0));) {
        const struct job *job = jobs_find(gpus->parts.jobs, task->id);
        if (job && (job->mem_peak_bytes.valid || job->usage.span_s > 0 ||
                       job->usage.energy_j.valid || job->steps.total > 0 || job->alone_time))
            json_array_append_new(list, entry_of(job));
    }
    char *text = json_dumps(list, JSON_COMPACT);
    file_path(gpus, path, sizeof path);
    int r = text ? file_write_atomic(path, text, strlen(text), 0600) : -ENOMEM;
    if (r < 0)
        disk_failed(gpus->parts.disk, "what running tasks have used so far is not stored");
    free(text);
    json_decref(list);
    gpus->usage_saved_us = clock_monotonic_us();
}

void usage_save_sometimes(struct gpus *gpus)
{
    if (jobs_count(gpus->parts.jobs) > 0 &&
        clock_monotonic_us() - gpus->usage_saved_us >= PERIOD_US)
        gpus_save_usage(gpus);
}

static int gpu_from(const struct gpus *gpus, const json_t *value)
{
    json_int_t gpu = json_integer_value(value);
    bool is_known = json_is_integer(value) && gpu >= 0 && gpu < core_view(gpus->parts.core)->n_gpus;
    return is_known ? (int)gpu : JOB_GPU_UNKNOWN;
}

static void load_entry(struct gpus *gpus, const json_t *entry)
{
    struct job *job = jobs_find(
        gpus->parts.jobs, (uint64_t)json_integer_value(json_object_get(entry, "task")));
    if (!job)
        return;
    job->mem_peak_bytes = reading_from(json_object_get(entry, "mem_peak_bytes"));
    job->peak_gpu = gpu_from(gpus, json_object_get(entry, "peak_gpu"));
    job->peak_whole = json_is_true(json_object_get(entry, "peak_whole"));
    job->usage = (struct usage){
        .energy_j = reading_from(json_object_get(entry, "energy_j")),
        .smact_s = json_number_value(json_object_get(entry, "smact_s")),
        .span_s = json_number_value(json_object_get(entry, "span_s")),
        .is_estimated = json_is_true(json_object_get(entry, "estimated")),
    };
    job->steps.total = json_number_value(json_object_get(entry, "steps"));
    job->steps.timed_s = json_number_value(json_object_get(entry, "steps_s"));
    job->steps.source = (short)json_integer_value(json_object_get(entry, "step_source"));
    struct reading alone_per_s = reading_from(json_object_get(entry, "alone_per_s"));
    if (alone_per_s.valid && !job->steps.alone)
        job->steps.alone = calloc(1, sizeof *job->steps.alone);
    if (alone_per_s.valid && job->steps.alone)
        *job->steps.alone = (struct speed_alone){.per_s = alone_per_s,
            .windows = (int)json_integer_value(json_object_get(entry, "alone_windows")),
            .spread = json_number_value(json_object_get(entry, "alone_spread"))};
    alone_time_load(job, json_object_get(entry, "alone_time"));
}

void usage_load(struct gpus *gpus)
{
    char path[600], *text;
    size_t size, i;
    json_t *entry;
    gpus->usage_saved_us = clock_monotonic_us();
    file_path(gpus, path, sizeof path);
    if (file_read(path, FILE_LIMIT, NULL, &text, &size) < 0)
        return;
    json_t *list = json_loadb(text, size, 0, NULL);
    json_array_foreach(list, i, entry) {
        load_entry(gpus, entry);
    }
    json_decref(list);
    free(text);
}
