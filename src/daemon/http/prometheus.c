/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon and its GPUs as metrics, named after Prometheus' "Metric and label naming"; tasks are
 * in prometheus_tasks.c. An unknown value has no line: it never reads as zero.
 */
#include "daemon/http/prometheus.h"

#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/public_json.h"

static void put_gpu(const struct exposition *to, const char *metric, const struct gpu_info *info)
{
    fputs(metric, to->out);
    exposition_label(to, "{", "gpu", info->index);
    exposition_label(to, ",", "uuid", info->uuid);
}

/* ---- GPUs ---- */

#define GPU(field) offsetof(struct gpu_sample, field)

static const struct {
    struct metric_family family;
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

static const struct metric_family gpu_info_family = {
    "colloc_gpu_info", "info", "The GPU's name and health; always 1."};
static const struct metric_family gpu_tasks = {
    "colloc_gpu_tasks", "gauge", "Tasks of colloc on the GPU."};
static const struct metric_family gpu_foreign = {
    "colloc_gpu_foreign_processes", "gauge", "Processes on the GPU that are not of a task."};

static void put_gpu_infos(const struct exposition *to, const struct http *http)
{
    struct gpu_report gpu;
    exposition_begin(to, &gpu_info_family);
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++) {
        const char *text;
        if (gpu.view < 0)
            continue;
        put_gpu(to, gpu_info_family.name, gpu.info);
        exposition_label(to, ",", "name", gpu.info->name);
        exposition_label(to, ",", "health", public_gpu_health(http, &gpu, &text));
        fputs("} 1\n", to->out);
    }
}

static void put_gpu_readings(const struct exposition *to, const struct http *http,
    const struct metric_family *family, size_t at, double unit)
{
    struct gpu_report gpu;
    exposition_begin(to, family);
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++) {
        struct reading r = *(const struct reading *)((const char *)gpu.sample + at);
        if (gpu.view < 0 || !r.valid || !public_gpu_is_current(http, &gpu))
            continue;
        put_gpu(to, family->name, gpu.info);
        exposition_reading(to, r, unit);
    }
}

static void put_gpu_counts(const struct exposition *to, const struct http *http)
{
    struct gpu_report gpu;
    exposition_begin(to, &gpu_tasks);
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++) {
        if (gpu.view < 0)
            continue;
        put_gpu(to, gpu_tasks.name, gpu.info);
        fprintf(to->out, "} %d\n", core_view(http->parts.core)->gpus[gpu.view].n_residents);
    }
    exposition_begin(to, &gpu_foreign);
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++) {
        if (gpu.view < 0 || !gpu.sample->processes.valid || !public_gpu_is_current(http, &gpu))
            continue;
        put_gpu(to, gpu_foreign.name, gpu.info);
        fprintf(to->out, "} %zu\n", gpu.n_external);
    }
}

static void put_gpus(const struct exposition *to, const struct http *http)
{
    put_gpu_infos(to, http);
    for (size_t i = 0; i < ARRAY_SIZE(gpu_readings); i++)
        put_gpu_readings(
            to, http, &gpu_readings[i].family, gpu_readings[i].reading, gpu_readings[i].unit);
    put_gpu_counts(to, http);
}

/* ---- the daemon ---- */

static void put_daemon(const struct exposition *to, const struct http *http)
{
    static const struct metric_family info = {
        "colloc_info", "info", "The daemon's version and default policy; always 1."};
    static const struct metric_family writable = {"colloc_event_log_writable", "gauge",
        "1: the event log can be written; 0: its disk is full or broken, nothing is accepted."};
    const struct driver *driver = http->parts.driver;
    bool is_writable = !driver_log_is_broken(driver) && !driver_reserve_is_in_use(driver);
    exposition_begin(to, &info);
    fputs(info.name, to->out);
    exposition_label(to, "{", "version", COLLOC_VERSION);
    exposition_label(to, ",", "policy", http->parts.config->core.policy->name);
    fputs("} 1\n", to->out);
    exposition_begin(to, &writable);
    fprintf(to->out, "%s %d\n", writable.name, is_writable);
}

static void put_disk(const struct exposition *to, const struct http *http)
{
    static const struct metric_family size = {"colloc_state_disk_size_bytes", "gauge",
                                          "Size of the file system of the setting state-dir."},
                                      available = {"colloc_state_disk_available_bytes", "gauge",
                                          "Of that, what colloc may still write."};
    struct disk_space space = disk_get_space(http->parts.disk);
    const struct reading readings[] = {space.total_bytes, space.available_bytes};
    const struct metric_family *const families[] = {&size, &available};
    for (size_t i = 0; i < ARRAY_SIZE(readings); i++) {
        exposition_begin(to, families[i]);
        if (readings[i].valid)
            fprintf(to->out, "%s %.15g\n", families[i]->name, readings[i].value);
    }
}

/* Host memory that is ready for copies of GPU memory, or has some in it. */
static void put_pool(const struct exposition *to, const struct http *http)
{
    static const struct metric_family size = {"colloc_carrier_pool_size_bytes", "gauge",
                                          "The setting carrier-pool, or its default."},
                                      made = {"colloc_carrier_pool_bytes", "gauge",
                                          "Host memory for copies of GPU memory, by state."};
    const struct room_totals rooms = preload_manager_rooms(http->parts.preload);
    exposition_begin(to, &size);
    fprintf(to->out, "%s %llu\n", size.name, (unsigned long long)rooms.max_bytes);
    exposition_begin(to, &made);
    fprintf(to->out, "%s{state=\"ready\"} %llu\n%s{state=\"used\"} %llu\n", made.name,
        (unsigned long long)(rooms.bytes - rooms.used_bytes), made.name,
        (unsigned long long)rooms.used_bytes);
}

char *prometheus_text(const struct http *http, bool is_openmetrics)
{
    struct gpu_report first;
    char *text = NULL;
    size_t size;
    const struct exposition to = {open_memstream(&text, &size), is_openmetrics};
    if (!to.out)
        return NULL;
    put_daemon(&to, http);
    put_disk(&to, http);
    put_pool(&to, http);
    if (gpus_report(http->parts.gpus, 0, &first))
        put_gpus(&to, http);
    int r = prometheus_put_tasks(&to, http);
    exposition_end(&to);
    if (fclose(to.out) == 0 && r == 0)
        return text;
    free(text);
    return NULL;
}

/* Chosen. A text that takes less than a millisecond is always made anew. */
#define METRICS_PART     0.05
#define METRICS_SHORT_US MS_US

/* Processor time: beside other programs the text does not get older. */
static int64_t thread_cpu_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * SECOND_US + time.tv_nsec / 1000;
}

const char *prometheus_shared_text(struct http *http, bool is_openmetrics)
{
    struct shared_text *shared = &http->metrics[is_openmetrics];
    if (shared->text && clock_monotonic_us() < shared->until_us)
        return shared->text;
    int64_t before_us = thread_cpu_us();
    free(shared->text);
    shared->text = prometheus_text(http, is_openmetrics);
    int64_t took_us = thread_cpu_us() - before_us;
    int64_t reused_us = took_us < METRICS_SHORT_US ? 0 : (int64_t)((double)took_us / METRICS_PART);
    shared->until_us = clock_monotonic_us() + reused_us;
    return shared->text;
}
