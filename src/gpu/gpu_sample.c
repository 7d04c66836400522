/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a sample of one GPU in steps: memory, activity, energy, slow values, processes, GPM, DCGM,
 * trouble. Each step queries NVML, or repeats the last value where a query is not due. The order
 * matters: processes need the memory in use, GPM needs the processes (is the GPU in use?), and DCGM
 * fills in what the others left invalid.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "gpu/query_cost.h"
#include "gpu/source.h"
#include "gpu/xid_events.h"

/* One sample being taken. */
struct sampling {
    struct gpu_source *source;
    struct gpu_device *device;
    const struct gpu_info *info;
    struct gpu_sample *sample;
    unsigned answers; /* queries that succeeded */
    int error;        /* result of the first that failed */
    int lost;         /* result that says that the GPU is lost; 0: none */
};

static bool is_low_overhead(const struct sampling *sampling)
{
    return sampling->source->gpm_share > 0;
}

static bool note_result(struct sampling *sampling, int result)
{
    if (result == NVML_OK) {
        sampling->answers++;
        return true;
    }
    if (sampling->error == NVML_OK)
        sampling->error = result;
    if (nvml_is_lost(result))
        sampling->lost = result;
    return false;
}

static void set_memory(struct gpu_sample *sample, uint64_t total, uint64_t used, uint64_t free_)
{
    if (total == 0)
        return;
    sample->mem_total_bytes = reading_of((double)total);
    sample->mem_used_bytes = reading_of((double)used);
    sample->mem_free_bytes = reading_of((double)free_);
}

/* Version 2 keeps reserved memory out of `used`, as nvidia-smi does; old drivers have version 1
 * only. */
static void sample_memory(struct sampling *sampling)
{
    const struct nvml *nvml = &sampling->source->nvml;
    struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2_VERSION};
    struct nvml_memory v1 = {0};
    int r = nvml_call(nvml, memory_v2, sampling->device->handle, &v2);
    if (r == NVML_OK || nvml_is_lost(r)) {
        if (note_result(sampling, r))
            set_memory(sampling->sample, v2.total, v2.used, v2.free);
    } else if (note_result(sampling, nvml_call(nvml, memory, sampling->device->handle, &v1))) {
        set_memory(sampling->sample, v1.total, v1.used, v1.free);
    }
}

static struct reading fraction_of(unsigned per_cent)
{
    return per_cent <= 100 ? reading_of(per_cent / 100.0) : READING_NONE;
}

static void query_utilisation(struct sampling *sampling, struct slow *slow)
{
    struct nvml_utilization utilization = {0};
    bool known = note_result(sampling,
        nvml_call(&sampling->source->nvml, utilization, sampling->device->handle, &utilization));
    slow->utilisation = known ? fraction_of(utilization.gpu) : READING_NONE;
    slow->mem_utilisation = known ? fraction_of(utilization.memory) : READING_NONE;
}

static void query_power(struct sampling *sampling, struct slow *slow)
{
    unsigned milliwatt = 0;
    bool known = note_result(
        sampling, nvml_call(&sampling->source->nvml, power, sampling->device->handle, &milliwatt));
    slow->power_w = known ? reading_of(milliwatt / 1e3) : READING_NONE;
}

static void sample_activity(struct sampling *sampling)
{
    struct slow *slow = &sampling->device->slow;
    bool is_rare = is_low_overhead(sampling) && sampling->device->gpm.device &&
                   sampling->sample->mem_used_bytes.valid;
    if (!is_rare || sampling->sample->at_us >= slow->next_activity_query_us) {
        query_utilisation(sampling, slow);
        query_power(sampling, slow);
        slow->next_activity_query_us = sampling->sample->at_us + SLOW_INTERVAL_US;
    }
    sampling->sample->utilisation = slow->utilisation;
    sampling->sample->mem_utilisation = slow->mem_utilisation;
    sampling->sample->power_w = slow->power_w;
}

/* False when the counter was reset: the time of the reset is unknown, so this sample has no
 * total. */
static bool total_advance(struct total *total, uint64_t now)
{
    bool was_reset = total->seen && now < total->last;
    if (was_reset)
        total->lost += total->last - now;
    total->seen = true;
    total->last = now;
    return !was_reset;
}

/* A counter that costs more is not queried for every sample; power times time is added in between.
 * Chosen. */
#define ENERGY_EXPENSIVE_US 500

static void query_energy(struct sampling *sampling, struct energy *energy)
{
    unsigned long long millijoule = 0;
    int64_t began_us = clock_thread_us();
    int r = nvml_call(&sampling->source->nvml, energy, sampling->device->handle, &millijoule);
    int64_t cost_us = clock_thread_us() - began_us;

    energy->next_query_us = sampling->sample->at_us;
    if (cost_us > ENERGY_EXPENSIVE_US)
        energy->next_query_us += query_cost_pause_us(cost_us, 0);
    if (!note_result(sampling, r) || !total_advance(&energy->counter_mj, millijoule)) {
        energy->total_j = READING_NONE;
        energy->next_query_us = sampling->sample->at_us;
        return;
    }
    double total_j = (double)(energy->counter_mj.lost + millijoule) / 1e3;
    energy->total_j = reading_of(fmax(total_j, reading_or(energy->total_j, 0)));
}

static void sample_energy(struct sampling *sampling)
{
    struct energy *energy = &sampling->device->energy;
    int64_t now_us = sampling->sample->at_us;
    if (now_us >= energy->next_query_us)
        query_energy(sampling, energy);
    else if (sampling->sample->power_w.valid)
        energy->total_j.value += sampling->sample->power_w.value *
                                 (double)(now_us - energy->updated_us) / 1e6;
    energy->updated_us = now_us;
    sampling->sample->energy_j = energy->total_j;
}

static struct reading query_temperature(struct sampling *sampling)
{
    unsigned celsius = 0;
    nvml_device handle = sampling->device->handle;
    int r = nvml_call(&sampling->source->nvml, temperature, handle, NVML_TEMPERATURE_GPU, &celsius);
    return note_result(sampling, r) ? reading_of(celsius) : READING_NONE;
}

static struct reading query_clock(struct sampling *sampling)
{
    unsigned mhz = 0;
    int r = nvml_call(
        &sampling->source->nvml, clock, sampling->device->handle, NVML_CLOCK_SM, &mhz);
    return note_result(sampling, r) ? reading_of(mhz) : READING_NONE;
}

static void sample_slow(struct sampling *sampling)
{
    struct slow *slow = &sampling->device->slow;
    if (sampling->sample->at_us >= slow->next_query_us) {
        slow->temperature_c = query_temperature(sampling);
        slow->sm_clock_mhz = query_clock(sampling);
        slow->next_query_us = sampling->sample->at_us + SLOW_INTERVAL_US;
    }
    sampling->sample->temperature_c = slow->temperature_c;
    sampling->sample->sm_clock_mhz = slow->sm_clock_mhz;
}

/* A GPU counts as in use unless it is known to be idle. */
static bool is_in_use(const struct sampling *sampling)
{
    const struct gpu_sample *sample = sampling->sample;
    return !sample->processes.valid || sample->processes.count > 0 || !sample->utilisation.valid ||
           sample->utilisation.value > 0;
}

/*
 * A MIG instance's activity is queried from its card, which may answer when the instance does not.
 */
static void sample_gpm(struct sampling *sampling)
{
    struct gpu_source *source = sampling->source;
    struct gpm *gpm = &sampling->device->gpm;
    int r = gpm_update(
        gpm, &source->nvml, &sampling->device->gpm_scratch, is_in_use(sampling), sampling->sample);
    if (r != NVML_OK) {
        note_result(sampling, r);
        return;
    }
    sampling->sample->activity.source = sampling->sample->smact.valid ? GPU_ACTIVITY_GPM
                                                                      : GPU_ACTIVITY_NONE;
    sampling->sample->activity.at_us = gpm->taken_us;
}

struct fill {
    struct reading *reading;
    enum dcgm_field field;
};

/* Only readings that NVML did not give, since NVML's are newer. */
static void fill_readings(const struct fill *fills, size_t n, const struct dcgm_row *row)
{
    for (size_t i = 0; i < n; i++)
        if (!fills[i].reading->valid)
            *fills[i].reading = row->field[fills[i].field];
}

/* What DCGM measures of MIG instances, too. */
static void fill_activity_from_dcgm(struct gpu_sample *sample, const struct dcgm_row *row)
{
    const struct fill fills[] = {
        {&sample->smact, DCGM_SMACT},
        {&sample->smocc, DCGM_SMOCC},
        {&sample->gract, DCGM_GRACT},
        {&sample->dram_active, DCGM_DRAM},
        {&sample->tensor_active, DCGM_TENSOR},
        {&sample->fp64_active, DCGM_FP64},
        {&sample->fp32_active, DCGM_FP32},
        {&sample->fp16_active, DCGM_FP16},
    };
    fill_readings(fills, ARRAY_SIZE(fills), row);
}

/* Of a MIG instance these would be its card's. */
static void fill_card_from_dcgm(struct gpu_sample *sample, const struct dcgm_row *row)
{
    const struct fill fills[] = {
        {&sample->utilisation, DCGM_UTILISATION},
        {&sample->power_w, DCGM_POWER},
        {&sample->pcie_tx_bytes_per_s, DCGM_PCIE_TX},
        {&sample->pcie_rx_bytes_per_s, DCGM_PCIE_RX},
        {&sample->nvlink_tx_bytes_per_s, DCGM_NVLINK_TX},
        {&sample->nvlink_rx_bytes_per_s, DCGM_NVLINK_RX},
    };
    fill_readings(fills, ARRAY_SIZE(fills), row);
}

/* DCGM reports NVML's counter. */
static void fill_energy_from_dcgm(struct sampling *sampling, struct reading energy_j)
{
    struct total *total = &sampling->device->energy.counter_mj;
    if (sampling->sample->energy_j.valid || !energy_j.valid)
        return;
    uint64_t millijoule = (uint64_t)(energy_j.value * 1e3);
    if (total_advance(total, millijoule))
        sampling->sample->energy_j = reading_of((double)(total->lost + millijoule) / 1e3);
}

static void explain_no_activity(struct sampling *sampling)
{
    struct gpu_sample *sample = sampling->sample;
    bool has_gpm = sampling->device->gpm.device != NULL;
    if (has_gpm || sample->smact.valid)
        return;
    snprintf(sample->activity.reason, sizeof sample->activity.reason, "%s",
        *sampling->source->dcgmi ? "this GPU has no GPM, and DCGM cannot be asked about it"
                                 : "this GPU has no GPM, and DCGM is not used");
}

static void sample_dcgm(struct sampling *sampling)
{
    struct gpu_source *source = sampling->source;
    size_t i = (size_t)(sampling->device - source->device);
    struct gpu_sample *sample = sampling->sample;
    const char *why = "DCGM reports no SM activity of this GPU";
    if (!sampling->device->in_dcgm) {
        explain_no_activity(sampling);
        return;
    }
    if (atomic_exchange(&source->dcgm_is_read, true))
        return;
    dcgm_poll(source->dcgm, sample->at_us);
    const struct dcgm_row *row = dcgm_latest(
        source->dcgm, i, sample->at_us, &sample->activity.at_us);
    if (row) {
        fill_activity_from_dcgm(sample, row);
        if (!row->entity.is_instance) {
            fill_card_from_dcgm(sample, row);
            fill_energy_from_dcgm(sampling, row->field[DCGM_ENERGY]);
        }
    } else {
        why = dcgm_missing_reason(source->dcgm, i);
    }
    if (sample->smact.valid)
        sample->activity.source = GPU_ACTIVITY_DCGM;
    else
        snprintf(sample->activity.reason, sizeof sample->activity.reason, "%s", why);
    atomic_store(&source->dcgm_is_read, false);
}

/* Of a processor, for each GPU: a query takes 2.7 ms on an H200 (measured). Chosen. */
#define PROCESS_TIME_SHARE 1e-3

static void sample_processes(struct sampling *sampling)
{
    if (sampling->info->mig_mode == GPU_MIG_ON && !sampling->info->is_mig)
        return;
    note_result(sampling, process_list_query(&sampling->source->nvml, sampling->device->handle,
                              &sampling->device->process_buffer, is_low_overhead(sampling),
                              &sampling->device->processes, sampling->sample));
    process_time_query(&sampling->source->nvml, sampling->device->handle,
        &sampling->device->time_buffer, is_low_overhead(sampling) ? PROCESS_TIME_SHARE : 0,
        &sampling->device->process_time, sampling->sample);
    process_cache_store(&sampling->device->processes, sampling->sample);
}

/* A MIG instance has the trouble of its card, which is sampled before it. */
static void sample_trouble(struct sampling *sampling)
{
    struct gpu_source *source = sampling->source;
    size_t card = sampling->info->is_mig ? sampling->info->parent
                                         : (size_t)(sampling->device - source->device);
    if (!sampling->info->is_mig)
        trouble_update(&sampling->device->trouble, &source->nvml, sampling->device->handle,
            sampling->sample->at_us);
    trouble_report(&source->device[card].trouble, sampling->sample);
}

/* A lost GPU may make every query slow, so the first result that says so ends the sample. */
static void sample_all(struct sampling *sampling)
{
    static void (*const steps[])(struct sampling *) = {
        sample_memory,
        sample_activity,
        sample_energy,
        sample_slow,
        sample_processes,
        sample_gpm,
        sample_dcgm,
        sample_trouble,
    };
    for (size_t i = 0; i < ARRAY_SIZE(steps) && !sampling->lost; i++)
        steps[i](sampling);
}

static void clear_sample(struct gpu_sample *sample, int64_t now_us)
{
    struct gpu_process *item = sample->processes.item;
    size_t capacity = sample->processes.capacity;
    *sample = (struct gpu_sample){.at_us = now_us};
    sample->processes.item = item;
    sample->processes.capacity = capacity;
}

static void set_health(struct sampling *sampling, enum gpu_health health, const char *text)
{
    clear_sample(sampling->sample, sampling->sample->at_us);
    sampling->sample->health = health;
    snprintf(sampling->sample->health_reason, sizeof sampling->sample->health_reason, "%s", text);
}

static void determine_health(struct sampling *sampling)
{
    const char *text = nvml_error_text(
        &sampling->source->nvml, sampling->lost ? sampling->lost : sampling->error);
    if (sampling->lost)
        set_health(sampling, GPU_HEALTH_LOST, text);
    else if (sampling->answers == 0 && sampling->info->is_mig)
        set_health(sampling, GPU_HEALTH_GONE, "the MIG instance is not there any more");
    else if (sampling->answers == 0)
        set_health(sampling, GPU_HEALTH_SILENT, text);
}

void gpu_set_sample_at(struct gpu_set *set, size_t i, int64_t now_us, struct gpu_sample *ret_sample)
{
    struct gpu_source *source = set->source;
    struct sampling sampling = {
        .source = source,
        .device = &source->device[i],
        .info = &source->info[i],
        .sample = ret_sample,
    };
    clear_sample(ret_sample, now_us);
    xid_events_read(source, now_us);
    if (sampling.device->handle)
        sample_all(&sampling);
    else
        note_result(&sampling, sampling.device->open_result);
    determine_health(&sampling);
}

void gpu_set_sample(struct gpu_set *set, size_t i, struct gpu_sample *ret_sample)
{
    gpu_set_sample_at(set, i, clock_monotonic_us(), ret_sample);
}

void gpu_sample_fini(struct gpu_sample *sample)
{
    free(sample->processes.item);
    *sample = (struct gpu_sample){0};
}
