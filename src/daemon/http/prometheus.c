/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs and tasks in Prometheus' text format, after its "Exposition formats" and "Metric and label
 * naming". What is not known has no line: it never reads as zero.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "daemon/http/prometheus.h"
#include "daemon/http/public_json.h"

struct family {
    const char *name, *type, *help;
};

static void begin(FILE *out, const struct family *family)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
        family->type);
}

/* Control characters, which the format allows, become '?': a terminal would obey them. */
static void put_label(FILE *out, const char *before, const char *name, const char *value)
{
    fprintf(out, "%s%s=\"", before, name);
    unsigned number;
    for (; *value; value++) {
        size_t control = *value == '\n' ? 0 : text_control(value, &number);
        if (control) {
            fputc('?', out);
            value += control - 1;
        } else if (*value == '\n')
            fputs("\\n", out);
        else if (*value == '"' || *value == '\\')
            fprintf(out, "\\%c", *value);
        else
            fputc(*value, out);
    }
    fputc('"', out);
}

static void put_gpu(FILE *out, const char *metric, const struct gpu_info *info)
{
    fputs(metric, out);
    put_label(out, "{", "gpu", info->index);
    put_label(out, ",", "uuid", info->uuid);
}

static void put_task(FILE *out, const char *metric, const struct job *job)
{
    char id[24];
    snprintf(id, sizeof id, "%llu", (unsigned long long)job->id);
    fputs(metric, out);
    put_label(out, "{", "task", id);
    put_label(out, ",", "user", job->user);
    put_label(out, ",", "name", job->name);
}

static void put_reading(FILE *out, struct reading r, double unit)
{
    fprintf(out, "} %.15g\n", r.value * unit);
}

/* ---- GPUs ---- */

#define GPU(field) offsetof(struct gpu_sample, field)

static const struct {
    struct family family;
    size_t reading;
    double unit;
} gpu_readings[] = {
    {{"colloc_gpu_memory_total_bytes", "gauge", "Memory of the GPU."}, GPU(mem_total_bytes), 1},
    {{"colloc_gpu_memory_used_bytes", "gauge", "Memory in use, by all processes."},
        GPU(mem_used_bytes), 1},
    {{"colloc_gpu_memory_free_bytes", "gauge", "Memory free."}, GPU(mem_free_bytes), 1},
    {{"colloc_gpu_utilisation_ratio", "gauge",
         "Share of time with a kernel; misleads, see colloc_gpu_sm_active_ratio."},
        GPU(utilisation), 1},
    {{"colloc_gpu_sm_active_ratio", "gauge",
         "SMACT: share of SMs with a warp, mean since the last sample."},
        GPU(smact), 1},
    {{"colloc_gpu_sm_occupancy_ratio", "gauge", "SMOCC: resident warps of those possible."},
        GPU(smocc), 1},
    {{"colloc_gpu_engine_active_ratio", "gauge", "GRACT: share of time with any engine at work."},
        GPU(gract), 1},
    {{"colloc_gpu_dram_active_ratio", "gauge", "Share of memory bandwidth."}, GPU(dram_active), 1},
    {{"colloc_gpu_tensor_active_ratio", "gauge", "Share of time with the tensor pipe at work."},
        GPU(tensor_active), 1},
    {{"colloc_gpu_fp64_active_ratio", "gauge", "Share of time with the FP64 pipe at work."},
        GPU(fp64_active), 1},
    {{"colloc_gpu_fp32_active_ratio", "gauge", "Share of time with the FP32 pipe at work."},
        GPU(fp32_active), 1},
    {{"colloc_gpu_fp16_active_ratio", "gauge", "Share of time with the FP16 pipe at work."},
        GPU(fp16_active), 1},
    {{"colloc_gpu_pcie_transmit_bytes_per_second", "gauge", "PCIe traffic from the GPU."},
        GPU(pcie_tx_bytes_per_s), 1},
    {{"colloc_gpu_pcie_receive_bytes_per_second", "gauge", "PCIe traffic to the GPU."},
        GPU(pcie_rx_bytes_per_s), 1},
    {{"colloc_gpu_nvlink_transmit_bytes_per_second", "gauge", "NVLink traffic from the GPU."},
        GPU(nvlink_tx_bytes_per_s), 1},
    {{"colloc_gpu_nvlink_receive_bytes_per_second", "gauge", "NVLink traffic to the GPU."},
        GPU(nvlink_rx_bytes_per_s), 1},
    {{"colloc_gpu_power_watts", "gauge", "Power drawn."}, GPU(power_w), 1},
    {{"colloc_gpu_energy_joules_total", "counter", "Energy drawn since the driver was loaded."},
        GPU(energy_j), 1},
    {{"colloc_gpu_temperature_celsius", "gauge", "Temperature."}, GPU(temperature_c), 1},
    {{"colloc_gpu_sm_clock_hertz", "gauge", "Clock of the SMs."}, GPU(sm_clock_mhz), 1e6},
};

static const struct family gpu_info_family = {
    "colloc_gpu_info", "gauge", "The GPU's name and health; always 1."};
static const struct family gpu_tasks = {"colloc_gpu_tasks", "gauge", "Tasks of colloc on the GPU."};
static const struct family gpu_foreign = {
    "colloc_gpu_foreign_processes", "gauge", "Processes on the GPU that are not of a task."};

/* The last reading of a lost GPU, or of one that has not answered for long, is not one of now. */
static bool is_current(const struct http *http, const struct gpu_report *gpu)
{
    const char *text, *health = public_gpu_health(http, gpu, &text);
    return strcmp(health, "lost") != 0 && strcmp(health, "stale") != 0;
}

static void put_gpu_infos(FILE *out, const struct http *http)
{
    struct gpu_report gpu;
    begin(out, &gpu_info_family);
    for (size_t i = 0; http_report_gpu(http, i, &gpu); i++) {
        const char *text;
        if (gpu.view < 0)
            continue;
        put_gpu(out, gpu_info_family.name, gpu.info);
        put_label(out, ",", "name", gpu.info->name);
        put_label(out, ",", "health", public_gpu_health(http, &gpu, &text));
        fputs("} 1\n", out);
    }
}

static void put_gpu_readings(
    FILE *out, const struct http *http, const struct family *family, size_t at, double unit)
{
    struct gpu_report gpu;
    begin(out, family);
    for (size_t i = 0; http_report_gpu(http, i, &gpu); i++) {
        struct reading r = *(const struct reading *)((const char *)gpu.sample + at);
        if (gpu.view < 0 || !r.valid || !is_current(http, &gpu))
            continue;
        put_gpu(out, family->name, gpu.info);
        put_reading(out, r, unit);
    }
}

static void put_gpu_counts(FILE *out, const struct http *http)
{
    struct gpu_report gpu;
    begin(out, &gpu_tasks);
    for (size_t i = 0; http_report_gpu(http, i, &gpu); i++) {
        if (gpu.view < 0)
            continue;
        put_gpu(out, gpu_tasks.name, gpu.info);
        fprintf(out, "} %d\n", core_view(http->parts.core)->gpus[gpu.view].n_residents);
    }
    begin(out, &gpu_foreign);
    for (size_t i = 0; http_report_gpu(http, i, &gpu); i++) {
        if (gpu.view < 0 || !gpu.sample->processes.valid || !is_current(http, &gpu))
            continue;
        put_gpu(out, gpu_foreign.name, gpu.info);
        fprintf(out, "} %zu\n", gpu.n_external);
    }
}

static void put_gpus(FILE *out, const struct http *http)
{
    put_gpu_infos(out, http);
    for (size_t i = 0; i < sizeof gpu_readings / sizeof *gpu_readings; i++)
        put_gpu_readings(
            out, http, &gpu_readings[i].family, gpu_readings[i].reading, gpu_readings[i].unit);
    put_gpu_counts(out, http);
}

/* ---- tasks: those that have GPUs ---- */

static const struct family task_count = {
    "colloc_tasks", "gauge", "Tasks that have not ended, by state."};
static const struct family task_seconds = {
    "colloc_task_execution_seconds", "gauge", "Time in execution, all attempts together."};
static const struct family task_used = {
    "colloc_task_memory_used_bytes", "gauge", "GPU memory of the task, on all its GPUs together."};
static const struct family task_peak = {
    "colloc_task_memory_peak_bytes", "gauge", "The most of that so far."};
static const struct family task_on_gpu = {
    "colloc_task_gpu_memory_used_bytes", "gauge", "Memory of the task on one GPU."};

static const struct family task_energy = {"colloc_task_energy_joules_total", "counter",
    "Its part of its GPUs' energy, all attempts together."};
static const struct family task_active = {"colloc_task_gpu_sm_active_ratio", "gauge",
    "Its part of the GPU's SMACT, since the last sample."};

static const struct task *next_task(const struct http *http, const struct task *task)
{
    return core_next_task(http->parts.core, task ? task->id : 0);
}

static void put_task_counts(FILE *out, const struct http *http)
{
    static const char *const words[] = {"PENDING", "RUNNING", "COMPLETING"};
    int counts[sizeof words / sizeof *words] = {0};
    for (const struct task *task = NULL; (task = next_task(http, task));)
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            counts[i] += strcmp(public_task_state(http, task), words[i]) == 0;
    begin(out, &task_count);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        fprintf(out, "%s{state=\"%s\"} %d\n", task_count.name, words[i], counts[i]);
}

static void put_task_times(FILE *out, const struct http *http)
{
    int64_t now_us = driver_now_us(http->parts.driver);
    begin(out, &task_seconds);
    for (const struct task *task = NULL; (task = next_task(http, task));) {
        const struct job *job = jobs_find(http->parts.jobs, task->id);
        if (!job || !task_state_holds_gpus(task->state))
            continue;
        put_task(out, task_seconds.name, job);
        fprintf(out, "} %.6f\n", (double)(task->executed_us + now_us - task->started_us) / 1e6);
    }
}

static void put_task_readings(
    FILE *out, const struct http *http, const struct family *family, size_t at)
{
    begin(out, family);
    for (const struct task *task = NULL; (task = next_task(http, task));) {
        const struct job *job = jobs_find(http->parts.jobs, task->id);
        if (!job || !task_state_holds_gpus(task->state))
            continue;
        struct reading r = *(const struct reading *)((const char *)job + at);
        if (!r.valid)
            continue;
        put_task(out, family->name, job);
        put_reading(out, r, 1);
    }
}

static void put_activities(FILE *out, const struct http *http)
{
    struct gpu_report gpu;
    begin(out, &task_active);
    for (size_t i = 0; http_report_gpu(http, i, &gpu); i++) {
        for (size_t k = 0; gpu.view >= 0 && is_current(http, &gpu) && k < gpu.n_shares; k++) {
            const struct job *job = jobs_find(http->parts.jobs, gpu.shares[k].task);
            if (!job || !gpu.shares[k].smact.valid)
                continue;
            put_task(out, task_active.name, job);
            put_label(out, ",", "gpu", gpu.info->index);
            put_label(out, ",", "uuid", gpu.info->uuid);
            put_reading(out, gpu.shares[k].smact, 1);
        }
    }
}

static void put_resident(
    FILE *out, const struct http *http, const struct gpu_view *gpu, const struct resident *resident)
{
    const struct job *job = jobs_find(http->parts.jobs, resident->task);
    if (!job || !resident->mem_used_bytes.valid)
        return;
    put_task(out, task_on_gpu.name, job);
    put_label(out, ",", "gpu", gpu->id.label);
    put_label(out, ",", "uuid", gpu->id.uuid);
    put_reading(out, resident->mem_used_bytes, 1);
}

static void put_residents(FILE *out, const struct http *http)
{
    const struct cluster_view *view = core_view(http->parts.core);
    struct gpu_report gpu;
    begin(out, &task_on_gpu);
    for (size_t i = 0; http_report_gpu(http, i, &gpu); i++)
        for (int k = 0; gpu.view >= 0 && k < view->gpus[gpu.view].n_residents; k++)
            put_resident(out, http, &view->gpus[gpu.view], &view->gpus[gpu.view].residents[k]);
}

char *prometheus_text(const struct http *http)
{
    static const struct family info = {
        "colloc_info", "gauge", "The daemon's version and default policy; always 1."};
    struct gpu_report first;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    begin(out, &info);
    fputs(info.name, out);
    put_label(out, "{", "version", COLLOC_VERSION);
    put_label(out, ",", "policy", http->parts.config->core.policy->name);
    fputs("} 1\n", out);
    if (http_report_gpu(http, 0, &first))
        put_gpus(out, http);
    put_task_counts(out, http);
    put_task_times(out, http);
    put_task_readings(out, http, &task_used, offsetof(struct job, mem_used_bytes));
    put_task_readings(out, http, &task_peak, offsetof(struct job, mem_peak_bytes));
    put_task_readings(out, http, &task_energy, offsetof(struct job, usage.energy_j));
    put_residents(out, http);
    put_activities(out, http);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
