/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FAKE_OLD leaves out what drivers before 2021 lack; FAKE_535 has the longer process entries of
 * drivers 535.43 to .86.
 */
#include "fake_nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/nvml_abi.h"

/* The library's interface has no header of ours; each function is declared by being defined. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct fake_nvml fake_nvml;

typedef struct fake_gpu *device;

struct nvml_gpm_sample_opaque {
    device gpu;
    double time_us, busy_us;
};

static int first(int own, int common)
{
    return own ? own : common;
}

int nvmlInit_v2(void)
{
    fake_nvml.inits += fake_nvml.init_result == 0;
    return fake_nvml.init_result;
}

int nvmlShutdown(void)
{
    fake_nvml.inits--;
    return 0;
}

const char *nvmlErrorString(int result)
{
    return result == NVML_GPU_IS_LOST ? "GPU is lost" : "some error";
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "550.1");
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = fake_nvml.cards;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *ret)
{
    *ret = &fake_nvml.gpu[index];
    return fake_nvml.gpu[index].handle_result;
}

int nvmlDeviceGetUUID(device gpu, char *text, unsigned size)
{
    snprintf(text, size, "%s", gpu->uuid);
    return gpu->result;
}

int nvmlDeviceGetName(device gpu, char *text, unsigned size)
{
    snprintf(text, size, "%s", gpu->name);
    return gpu->result;
}

int nvmlDeviceGetPciInfo_v3(device gpu, struct nvml_pci *pci)
{
    snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0",
        (unsigned)(gpu - fake_nvml.gpu) + 7);
    return gpu->result;
}

int nvmlDeviceGetComputeMode(device gpu, int *mode)
{
    *mode = (int)gpu->compute_mode;
    return gpu->result;
}

int nvmlDeviceGetCudaComputeCapability(device gpu, int *major, int *minor)
{
    *major = 8;
    *minor = 0;
    return gpu->result;
}

int nvmlDeviceGetNumGpuCores(device gpu, unsigned *cores)
{
    *cores = 6912;
    return gpu->result;
}

int nvmlDeviceGetMemoryInfo(device gpu, struct nvml_memory *memory)
{
    *memory = (struct nvml_memory){
        .total = gpu->mem_total,
        .used = gpu->mem_reserved + gpu->mem_used,
        .free = gpu->mem_total - gpu->mem_reserved - gpu->mem_used,
    };
    return first(gpu->memory_result, gpu->result);
}

int nvmlDeviceGetUtilizationRates(device gpu, struct nvml_utilization *utilization)
{
    *utilization = (struct nvml_utilization){gpu->utilisation, 5};
    gpu->utilisation_asked++;
    return gpu->is_instance ? NVML_NOT_SUPPORTED : gpu->result;
}

int nvmlDeviceGetEnforcedPowerLimit(device gpu, unsigned *milliwatt)
{
    *milliwatt = 350000;
    return gpu->is_instance ? NVML_NOT_SUPPORTED : gpu->result;
}

int nvmlDeviceGetPowerUsage(device gpu, unsigned *milliwatt)
{
    *milliwatt = gpu->milliwatt;
    gpu->power_asked++;
    return first(gpu->power_result, gpu->result);
}

/* Uses up processor time, whatever else the machine is doing. */
static void burn(unsigned us)
{
    struct timespec began, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - began.tv_sec) * 1000000 + (now.tv_nsec - began.tv_nsec) / 1000 < us);
}

int nvmlDeviceGetTotalEnergyConsumption(device gpu, unsigned long long *millijoule)
{
    *millijoule = gpu->millijoule;
    gpu->energy_asked++;
    burn(gpu->energy_cost_us);
    return first(gpu->energy_result, gpu->result);
}

int nvmlDeviceGetTemperature(device gpu, int sensor, unsigned *celsius)
{
    *celsius = 40 + gpu->temperature_asked++;
    return first(gpu->temperature_result, gpu->result);
}

int nvmlDeviceGetClockInfo(device gpu, int domain, unsigned *mhz)
{
    *mhz = domain == NVML_CLOCK_SM ? 1410 : 0;
    return gpu->result;
}

static int list(
    device gpu, struct fake_processes *from, size_t stride, unsigned *count, char *infos)
{
    unsigned room = *count;

    from->asked++;
    if (first(from->result, gpu->result))
        return first(from->result, gpu->result);
    *count = from->count;
    if (room < from->count) {
        for (unsigned i = 0; i < fake_nvml.grow_between && from->count < FAKE_PROCESSES_MAX;
             i++, from->count++) {
            from->item[from->count].pid = 1000 + from->count;
            from->item[from->count].used_bytes = 1 << 20;
        }
        return NVML_INSUFFICIENT_SIZE;
    }
    for (unsigned i = 0; i < from->count; i++) {
        struct nvml_process head = {from->item[i].pid, from->item[i].used_bytes};
        memset(infos + i * stride, 0xee, stride);
        memcpy(infos + i * stride, &head, sizeof(head));
    }
    return 0;
}

#ifdef FAKE_OLD

int nvmlDeviceGetComputeRunningProcesses(device gpu, unsigned *count, void *infos)
{
    return list(gpu, &gpu->compute, NVML_PROCESS_V1_SIZE, count, infos);
}

#else

#ifdef FAKE_535
#define STRIDE NVML_PROCESS_PROTECTED_SIZE
int nvmlDeviceGetConfComputeMemSizeInfo(void)
{
    return NVML_NOT_SUPPORTED;
}
#else
#define STRIDE NVML_PROCESS_V2_SIZE
#endif

int nvmlDeviceGetComputeRunningProcesses_v3(device gpu, unsigned *count, void *infos)
{
    return list(gpu, &gpu->compute, STRIDE, count, infos);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(device gpu, unsigned *count, void *infos)
{
    return list(gpu, &gpu->graphics, STRIDE, count, infos);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(device gpu, unsigned *count, void *infos)
{
    return list(gpu, &gpu->mps, STRIDE, count, infos);
}

int nvmlDeviceGetProcessUtilization(device gpu, struct nvml_process_utilization *samples,
    unsigned *count, unsigned long long since_us)
{
    unsigned room = samples ? *count : 0;

    gpu->time_asked++;
    burn(gpu->time_cost_us);
    *count = 0;
    for (unsigned i = 0; i < 8 && gpu->time[i].pid; i++) {
        if (gpu->time[i].time_us <= since_us)
            continue;
        if (*count < room)
            samples[*count] = (struct nvml_process_utilization){
                .pid = gpu->time[i].pid, .time_us = gpu->time[i].time_us, .sm = gpu->time[i].sm};
        ++*count;
    }
    if (*count == 0)
        return NVML_NOT_FOUND;
    return *count > room ? NVML_INSUFFICIENT_SIZE : gpu->result;
}

int nvmlDeviceGetMemoryInfo_v2(device gpu, struct nvml_memory_v2 *memory)
{
    if (memory->version != (sizeof(*memory) | 2U << 24))
        return 25;
    memory->total = gpu->mem_total;
    memory->reserved = gpu->mem_reserved;
    memory->used = gpu->mem_used;
    memory->free = gpu->mem_total - gpu->mem_reserved - gpu->mem_used;
    return first(gpu->memory_result, gpu->result);
}

int nvmlDeviceGetMigMode(device gpu, unsigned *current, unsigned *pending)
{
    *current = *pending = gpu->mig_on;
    return gpu->mig_capable ? gpu->result : NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetMaxMigDeviceCount(device gpu, unsigned *count)
{
    *count = gpu->mig_capable ? gpu->most_instances : 0;
    return gpu->result;
}

int nvmlDeviceGetMigDeviceHandleByIndex(device gpu, unsigned index, device *ret)
{
    for (unsigned i = fake_nvml.cards; i < FAKE_GPUS_MAX; i++) {
        device instance = &fake_nvml.gpu[i];
        if (instance->is_instance && &fake_nvml.gpu[instance->parent] == gpu && index-- == 0) {
            *ret = instance;
            return 0;
        }
    }
    return NVML_NOT_FOUND;
}

int nvmlDeviceGetGpuInstanceId(device gpu, unsigned *id)
{
    *id = gpu->gpu_instance;
    return gpu->is_instance ? gpu->result : NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetAttributes_v2(device gpu, struct nvml_attributes *attributes)
{
    *attributes = (struct nvml_attributes){
        .multiprocessors = 42,
        .gpu_slices = 3,
        .compute_slices = gpu->compute_slices ? gpu->compute_slices : 3,
        .memory_mib = gpu->mem_total >> 20,
    };
    if (gpu->attributes_result)
        return gpu->attributes_result;
    return gpu->is_instance ? gpu->result : NVML_NOT_SUPPORTED;
}

int nvmlGpmQueryDeviceSupport(device gpu, struct nvml_gpm_support *support)
{
    support->supported = gpu->gpm;
    return support->version == 1 ? gpu->result : 25;
}

int nvmlGpmSampleAlloc(nvml_sample *ret)
{
    *ret = calloc(1, sizeof(**ret));
    fake_nvml.gpm_samples_alive++;
    return 0;
}

int nvmlGpmSampleFree(nvml_sample sample)
{
    free(sample);
    fake_nvml.gpm_samples_alive--;
    return 0;
}

int nvmlGpmSampleGet(device gpu, nvml_sample sample)
{
    *sample = (struct nvml_gpm_sample_opaque){gpu, fake_nvml.time_us, gpu->busy_us};
    return first(gpu->gpm_result, gpu->result);
}

int nvmlGpmMigSampleGet(device card, unsigned gpu_instance, nvml_sample sample)
{
    for (unsigned i = fake_nvml.cards; i < FAKE_GPUS_MAX; i++) {
        device gpu = &fake_nvml.gpu[i];
        if (gpu->is_instance && gpu->gpu_instance == gpu_instance &&
            &fake_nvml.gpu[gpu->parent] == card)
            return nvmlGpmSampleGet(gpu, sample);
    }
    return NVML_NOT_FOUND;
}

int nvmlGpmMetricsGet(struct nvml_gpm_metrics *metrics)
{
    double busy = metrics->after->busy_us - metrics->before->busy_us;
    double time = metrics->after->time_us - metrics->before->time_us;

    fake_nvml.gpm_computed++;
    burn(fake_nvml.gpm_cost_us);
    if (metrics->version != 1 || metrics->before->gpu != metrics->after->gpu)
        return NVML_INVALID_ARGUMENT;
    for (unsigned i = 0; i < metrics->count; i++) {
        struct nvml_gpm_metric *metric = &metrics->metrics[i];
        metric->result = metric->id == NVML_GPM_FP64_UTIL ? NVML_NOT_SUPPORTED : NVML_OK;
        metric->value = metric->id >= NVML_GPM_PCIE_TX_PER_SEC ? 3.0 : 100 * busy / time;
    }
    return 0;
}

#endif
