/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample of each GPU: its processes are divided into the command's (descendants of `root`) and
 * the others, the totals are updated, and a CSV line is printed.
 */
#include "recorder/gpu_recorder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"

/* Reading all of /proc takes milliseconds: not with each of many samples a second. Chosen. */
#define HOST_PERIOD_US (SECOND_US - 50 * MS_US)

static int select_gpus(struct gpu_recorder *recorder, const char *list, struct recording *recording,
    struct fault *fault)
{
    size_t count = recorder->set->count;
    recording->gpu = calloc(count, sizeof *recording->gpu);
    recorder->index = calloc(count, sizeof *recorder->index);
    if (!recording->gpu || !recorder->index)
        return fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        if (!gpu_info_is_listed(&recorder->set->gpu[i], list))
            continue;
        recording->gpu[recording->n_gpus].info = recorder->set->gpu[i];
        recorder->index[recording->n_gpus++] = i;
    }
    if (recording->n_gpus == 0)
        return fault_set(fault, EINVAL, "--gpus=%s: no such GPU; there are %zu", list, count);
    return 0;
}

static void print_header(FILE *csv)
{
    fputs(
        "time_s,gpu,uuid,health,mem_used_mib,command_mem_mib,utilisation,smact,command_smact,smocc,gract,dram_active,"
        "tensor_active,fp64_active,fp32_active,fp16_active,pcie_tx_mib_per_s,pcie_rx_mib_per_s,nvlink_tx_mib_per_s,"
        "nvlink_rx_mib_per_s,power_w,energy_j,command_energy_j,temperature_c,sm_clock_mhz,command_processes,"
        "other_processes,command_cpu_s,command_host_mem_mib,command_disk_read_mib,command_disk_written_mib\n",
        csv);
}

int gpu_recorder_open(struct gpu_recorder *recorder, const struct recorder_settings *settings,
    struct recording *recording, struct fault *fault)
{
    struct fault why = {0};
    int r = gpu_set_open(settings->nvml_library, &why, &recorder->set);
    recorder->recording = recording;
    recorder->csv = settings->csv;
    if (recorder->csv)
        print_header(recorder->csv);
    if (r != 0) {
        snprintf(recording->why_no_gpus, sizeof recording->why_no_gpus, "%.255s", why.text);
        return 0;
    }
    if (gpu_set_use_dcgm(recorder->set, "dcgmi", settings->period_us) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    return select_gpus(recorder, settings->gpus, recording, fault);
}

/* ---- one sample ---- */

static void add_reading(struct reading *sum, struct reading value)
{
    sum->valid &= value.valid;
    sum->value += value.value;
}

static struct gpu_occupants count_occupants(
    struct ancestry_cache *cache, const struct gpu_sample *sample, pid_t root)
{
    struct gpu_occupants occupants = {.our_memory_bytes = reading_of(0),
        .our_sm_utilisation = reading_of(0),
        .other_sm_utilisation = reading_of(0)};
    if (!sample->processes.valid)
        return (struct gpu_occupants){0};
    const struct attempt_roots roots = {.shims = &root, .count = 1};
    for (size_t i = 0; i < sample->processes.count; i++) {
        const struct gpu_process *process = &sample->processes.item[i];
        bool is_ours = root &&
                       ancestry_cache_find_root(cache, process->pid, &roots, sample->at_us) == 0;
        bool computes = (process->kinds & ~(unsigned)GPU_PROCESS_GRAPHICS) != 0;
        if (is_ours)
            add_reading(&occupants.our_memory_bytes, process->used_bytes);
        if (!computes || (!is_ours && process->is_mps_server))
            continue;
        occupants.is_mps |= (process->kinds & GPU_PROCESS_MPS) != 0;
        *(is_ours ? &occupants.ours : &occupants.others) += 1;
        add_reading(is_ours ? &occupants.our_sm_utilisation : &occupants.other_sm_utilisation,
            process->sm_utilisation);
    }
    return occupants;
}

static void print_value(FILE *csv, struct reading value, double unit)
{
    if (value.valid)
        fprintf(csv, ",%.6g", value.value / unit);
    else
        fputc(',', csv);
}

/* The command's use of the host: totals since its start, and its memory now. */
static void print_host(FILE *csv, const struct process_usage *host)
{
    print_value(csv, host->cpu_s, 1);
    print_value(csv, host->resident_bytes, (double)MIB);
    print_value(csv, host->disk_read_bytes, (double)MIB);
    print_value(csv, host->disk_written_bytes, (double)MIB);
    fputc('\n', csv);
}

static void print_line(FILE *csv, double time_s, const struct recorded_gpu *gpu,
    const struct gpu_sample *sample, const struct gpu_occupants *occupants)
{
    static const char *const healths[] = {"ok", "lost", "gone", "silent"};
    const struct reading fractions[] = {sample->smocc, sample->gract, sample->dram_active,
        sample->tensor_active, sample->fp64_active, sample->fp32_active, sample->fp16_active};
    const struct reading rates[] = {sample->pcie_tx_bytes_per_s, sample->pcie_rx_bytes_per_s,
        sample->nvlink_tx_bytes_per_s, sample->nvlink_rx_bytes_per_s};
    struct reading our_smact = sample->smact;
    our_smact.value *= gpu->totals.weight;
    fprintf(csv, "%.3f,%s,%s,%s", time_s, gpu->info.index, gpu->info.uuid, healths[sample->health]);
    print_value(csv, sample->mem_used_bytes, (double)MIB);
    print_value(csv, occupants->our_memory_bytes, (double)MIB);
    print_value(csv, sample->utilisation, 1);
    print_value(csv, sample->smact, 1);
    print_value(csv, our_smact, 1);
    for (size_t i = 0; i < ARRAY_SIZE(fractions); i++)
        print_value(csv, fractions[i], 1);
    for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
        print_value(csv, rates[i], (double)MIB);
    print_value(csv, sample->power_w, 1);
    fprintf(csv, ",%.3f,%.3f", gpu->totals.energy_j, gpu->totals.our_energy_j);
    print_value(csv, sample->temperature_c, 1);
    print_value(csv, sample->sm_clock_mhz, 1);
    fprintf(csv, ",%u,%u", occupants->ours, occupants->others);
}

/* In between the host's values are not known. */
static void sample_host(struct gpu_recorder *recorder)
{
    int64_t now_us = clock_monotonic_us();
    recorder->host = (struct process_usage){0};
    if (!recorder->csv || !recorder->command || now_us - recorder->host_us < HOST_PERIOD_US)
        return;
    recorder->host_us = now_us;
    if (process_usage_read(&recorder->command, 1, &recorder->host) < 0)
        recorder->host = (struct process_usage){0};
}

void gpu_recorder_sample(struct gpu_recorder *recorder, pid_t root)
{
    struct recording *recording = recorder->recording;
    sample_host(recorder);
    for (size_t i = 0; i < recording->n_gpus; i++) {
        struct recorded_gpu *gpu = &recording->gpu[i];
        gpu_set_sample(recorder->set, recorder->index[i], &recorder->sample);
        struct gpu_occupants occupants = count_occupants(
            &recorder->ancestry, &recorder->sample, root);
        if (!recorder->began_us)
            recorder->began_us = recorder->sample.at_us;
        gpu_totals_add(&gpu->totals, &recorder->sample, &occupants);
        if (!recorder->csv)
            continue;
        print_line(recorder->csv,
            (double)(recorder->sample.at_us - recorder->began_us) / (double)SECOND_US, gpu,
            &recorder->sample, &occupants);
        print_host(recorder->csv, &recorder->host);
    }
    recording->samples++;
}

void gpu_recorder_query_all(struct gpu_recorder *recorder)
{
    if (recorder->set)
        gpu_set_query_all_next(recorder->set);
}

void gpu_recorder_close(struct gpu_recorder *recorder)
{
    gpu_sample_fini(&recorder->sample);
    gpu_set_close(recorder->set);
    free(recorder->index);
}
