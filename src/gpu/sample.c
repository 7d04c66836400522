/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "gpu/cost.h"
#include "gpu/source.h"

/* One look at one device. */
struct look {
    struct gpu_source *source;
    struct gpu_device *device;
    const struct gpu_info *info;
    struct gpu_sample *sample;
    unsigned answers; /* queries that were answered */
    int error;        /* of the first that was not */
    int lost;         /* the result that says the GPU is lost; 0: none did */
};

static bool looks_all_day(const struct look *look)
{
    return look->source->gpm_share > 0;
}

static bool answered(struct look *look, int result)
{
    if (result == NVML_OK) {
        look->answers++;
        return true;
    }
    if (look->error == NVML_OK)
        look->error = result;
    if (nvml_says_lost(result))
        look->lost = result;
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

/* Version 2 keeps the reserve out of `used`, as nvidia-smi does; older drivers only have version 1.
 */
static void look_memory(struct look *look)
{
    const struct nvml *nvml = &look->source->nvml;
    struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2_VERSION};
    struct nvml_memory v1 = {0};

    int r = nvml_call(nvml, memory_v2, look->device->handle, &v2);
    if (r == NVML_OK || nvml_says_lost(r)) {
        if (answered(look, r))
            set_memory(look->sample, v2.total, v2.used, v2.free);
    } else if (answered(look, nvml_call(nvml, memory, look->device->handle, &v1))) {
        set_memory(look->sample, v1.total, v1.used, v1.free);
    }
}

static struct reading fraction(unsigned per_cent)
{
    return per_cent <= 100 ? reading_of(per_cent / 100.0) : READING_NONE;
}

static void ask_utilisation(struct look *look, struct slow *slow)
{
    struct nvml_utilization utilization = {0};
    bool told = answered(
        look, nvml_call(&look->source->nvml, utilization, look->device->handle, &utilization));

    slow->utilisation = told ? fraction(utilization.gpu) : READING_NONE;
    slow->mem_utilisation = told ? fraction(utilization.memory) : READING_NONE;
}

static void ask_power(struct look *look, struct slow *slow)
{
    unsigned milliwatt = 0;
    bool told = answered(
        look, nvml_call(&look->source->nvml, power, look->device->handle, &milliwatt));

    slow->power_w = told ? reading_of(milliwatt / 1e3) : READING_NONE;
}

static void look_activity(struct look *look)
{
    struct slow *slow = &look->device->slow;
    bool seldom = looks_all_day(look) && look->device->gpm.device &&
                  look->sample->mem_used_bytes.valid;

    if (!seldom || look->sample->at_us >= slow->ask_activity_again_us) {
        ask_utilisation(look, slow);
        ask_power(look, slow);
        slow->ask_activity_again_us = look->sample->at_us + SLOW_LEAST_US;
    }
    look->sample->utilisation = slow->utilisation;
    look->sample->mem_utilisation = slow->mem_utilisation;
    look->sample->power_w = slow->power_w;
}

/* False when the counter went back: the time of the restart is not known, so this look has no
 * total. */
static bool total_advance(struct total *total, uint64_t now)
{
    bool back = total->seen && now < total->last;

    if (back)
        total->lost += total->last - now;
    total->seen = true;
    total->last = now;
    return !back;
}

/* A counter that costs less is asked each time; in between power fills in. */
#define ENERGY_DEAR_US 500

static void ask_energy(struct look *look, struct energy *energy)
{
    unsigned long long millijoule = 0;
    int64_t began_us = cost_processor_us();
    int r = nvml_call(&look->source->nvml, energy, look->device->handle, &millijoule);

    int64_t cost_us = cost_processor_us() - began_us;

    energy->ask_again_us = look->sample->at_us;
    if (cost_us > ENERGY_DEAR_US)
        energy->ask_again_us += cost_rest_us(cost_us, 0);
    if (!answered(look, r) || !total_advance(&energy->counter_mj, millijoule)) {
        energy->total_j = READING_NONE;
        energy->ask_again_us = look->sample->at_us;
        return;
    }
    double total_j = (double)(energy->counter_mj.lost + millijoule) / 1e3;
    energy->total_j = reading_of(fmax(total_j, reading_or(energy->total_j, 0)));
}

static void look_energy(struct look *look)
{
    struct energy *energy = &look->device->energy;
    int64_t now_us = look->sample->at_us;

    if (now_us >= energy->ask_again_us)
        ask_energy(look, energy);
    else if (look->sample->power_w.valid)
        energy->total_j.value += look->sample->power_w.value * (double)(now_us - energy->told_us) /
                                 1e6;
    energy->told_us = now_us;
    look->sample->energy_j = energy->total_j;
}

static struct reading ask_temperature(struct look *look)
{
    unsigned celsius = 0;
    nvml_device handle = look->device->handle;
    int r = nvml_call(&look->source->nvml, temperature, handle, NVML_TEMPERATURE_GPU, &celsius);

    return answered(look, r) ? reading_of(celsius) : READING_NONE;
}

static struct reading ask_clock(struct look *look)
{
    unsigned mhz = 0;
    int r = nvml_call(&look->source->nvml, clock, look->device->handle, NVML_CLOCK_SM, &mhz);

    return answered(look, r) ? reading_of(mhz) : READING_NONE;
}

static void look_slow(struct look *look)
{
    struct slow *slow = &look->device->slow;

    if (look->sample->at_us >= slow->ask_again_us) {
        slow->temperature_c = ask_temperature(look);
        slow->sm_clock_mhz = ask_clock(look);
        slow->ask_again_us = look->sample->at_us + SLOW_LEAST_US;
    }
    look->sample->temperature_c = slow->temperature_c;
    look->sample->sm_clock_mhz = slow->sm_clock_mhz;
}

/* Not known to be unused is in use. */
static bool is_in_use(const struct look *look)
{
    const struct gpu_sample *sample = look->sample;
    return !sample->processes.valid || sample->processes.count > 0 || !sample->utilisation.valid ||
           sample->utilisation.value > 0;
}

/* A MIG instance's activity is asked of its card, which may well answer when the instance does not.
 */
static void look_gpm(struct look *look)
{
    struct gpu_source *source = look->source;
    struct gpm *gpm = &look->device->gpm;
    int r = gpm_look(gpm, &source->nvml, &source->gpm_scratch, is_in_use(look), look->sample);

    if (r != NVML_OK) {
        answered(look, r);
        return;
    }
    look->sample->activity.source = look->sample->smact.valid ? GPU_ACTIVITY_GPM
                                                              : GPU_ACTIVITY_NONE;
    look->sample->activity.at_us = gpm->taken_us;
}

/* What NVML tells itself is newer. */
static void fill_from_dcgm(struct look *look, const struct dcgm_row *row)
{
    struct gpu_sample *sample = look->sample;
    const struct {
        struct reading *reading;
        enum dcgm_field field;
    } fills[] = {
        {&sample->utilisation, DCGM_UTILISATION},
        {&sample->power_w, DCGM_POWER},
        {&sample->smact, DCGM_SMACT},
        {&sample->smocc, DCGM_SMOCC},
        {&sample->gract, DCGM_GRACT},
        {&sample->dram_active, DCGM_DRAM},
        {&sample->tensor_active, DCGM_TENSOR},
        {&sample->fp64_active, DCGM_FP64},
        {&sample->fp32_active, DCGM_FP32},
        {&sample->fp16_active, DCGM_FP16},
        {&sample->pcie_tx_bytes_per_s, DCGM_PCIE_TX},
        {&sample->pcie_rx_bytes_per_s, DCGM_PCIE_RX},
        {&sample->nvlink_tx_bytes_per_s, DCGM_NVLINK_TX},
        {&sample->nvlink_rx_bytes_per_s, DCGM_NVLINK_RX},
    };

    for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]); i++)
        if (!fills[i].reading->valid)
            *fills[i].reading = row->field[fills[i].field];
}

/* DCGM passes NVML's counter on. */
static void fill_energy_from_dcgm(struct look *look, struct reading energy_j)
{
    struct total *total = &look->device->energy.counter_mj;

    if (look->sample->energy_j.valid || !energy_j.valid)
        return;
    uint64_t millijoule = (uint64_t)(energy_j.value * 1e3);
    if (total_advance(total, millijoule))
        look->sample->energy_j = reading_of((double)(total->lost + millijoule) / 1e3);
}

static void explain_no_activity(struct look *look)
{
    struct gpu_sample *sample = look->sample;
    bool has_gpm = look->device->gpm.device != NULL;

    if (has_gpm || sample->smact.valid)
        return;
    snprintf(sample->activity.reason, sizeof(sample->activity.reason), "%s",
        look->info->is_mig ? "only GPM tells the activity of MIG instances, and this GPU has none"
                           : "this GPU has no GPM, and dcgmi is not asked");
}

static void look_dcgm(struct look *look)
{
    struct gpu_source *source = look->source;
    size_t gpu = look->device->dcgm_number;
    struct gpu_sample *sample = look->sample;
    const char *why = "dcgmi tells no SM activity of this GPU";

    if (!look->device->in_dcgm) {
        explain_no_activity(look);
        return;
    }
    dcgm_turn(source->dcgm, sample->at_us);
    const struct dcgm_row *row = dcgm_latest(
        source->dcgm, gpu, sample->at_us, &sample->activity.at_us);
    if (row) {
        fill_from_dcgm(look, row);
        fill_energy_from_dcgm(look, row->field[DCGM_ENERGY]);
    } else {
        why = dcgm_why_not(source->dcgm);
    }
    if (sample->smact.valid)
        sample->activity.source = GPU_ACTIVITY_DCGM;
    else
        snprintf(sample->activity.reason, sizeof(sample->activity.reason), "%s", why);
}

/* Of a processor, on each GPU: 2.7 ms a question on an H200. */
#define PROCESS_TIME_SHARE 1e-3

static void look_processes(struct look *look)
{
    if (look->info->mig_mode == GPU_MIG_ON && !look->info->is_mig)
        return;
    answered(look, processes_look(&look->source->nvml, look->device->handle, &look->source->room,
                       looks_all_day(look), &look->device->processes, look->sample));
    process_time_look(&look->source->nvml, look->device->handle, &look->source->time_room,
        looks_all_day(look) ? PROCESS_TIME_SHARE : 0, &look->device->process_time, look->sample);
    processes_told_note(&look->device->processes, look->sample);
}

/* A MIG instance has the troubles of its card, which is asked before it. */
static void look_trouble(struct look *look)
{
    struct gpu_source *source = look->source;
    size_t card = look->info->is_mig ? look->info->parent : (size_t)(look->device - source->device);

    if (!look->info->is_mig)
        trouble_look(
            &look->device->trouble, &source->nvml, look->device->handle, look->sample->at_us);
    trouble_tell(&source->device[card].trouble, look->sample);
}

/* A lost GPU may make every query slow, so the first that says so ends the look. */
static void look_all(struct look *look)
{
    static void (*const looks[])(struct look *) = {
        look_memory,
        look_activity,
        look_energy,
        look_slow,
        look_processes,
        look_gpm,
        look_dcgm,
        look_trouble,
    };

    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]) && !look->lost; i++)
        looks[i](look);
}

static void reset(struct gpu_sample *sample, int64_t now_us)
{
    struct gpu_process *item = sample->processes.item;
    size_t capacity = sample->processes.capacity;

    *sample = (struct gpu_sample){.at_us = now_us};
    sample->processes.item = item;
    sample->processes.capacity = capacity;
}

static void set_health(struct look *look, enum gpu_health health, const char *words)
{
    reset(look->sample, look->sample->at_us);
    look->sample->health = health;
    snprintf(look->sample->health_reason, sizeof(look->sample->health_reason), "%s", words);
}

static void judge_health(struct look *look)
{
    const char *words = nvml_words(&look->source->nvml, look->lost ? look->lost : look->error);

    if (look->lost)
        set_health(look, GPU_HEALTH_LOST, words);
    else if (look->answers == 0 && look->info->is_mig)
        set_health(look, GPU_HEALTH_GONE, "the MIG instance is not there any more");
    else if (look->answers == 0)
        set_health(look, GPU_HEALTH_SILENT, words);
}

void gpu_set_sample_at(struct gpu_set *set, size_t i, int64_t now_us, struct gpu_sample *ret_sample)
{
    struct gpu_source *source = set->source;
    struct look look = {
        .source = source,
        .device = &source->device[i],
        .info = &source->info[i],
        .sample = ret_sample,
    };

    reset(ret_sample, now_us);
    xid_events_take(source, now_us);
    if (look.device->handle)
        look_all(&look);
    else
        answered(&look, look.device->open_result);
    judge_health(&look);
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
