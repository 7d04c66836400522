/* SPDX-License-Identifier: Apache-2.0 */
/* GPU performance monitoring. A sample stores the integrals of the activities over emulated time
 * (world.h); a metric is the difference of two samples divided by the time between them. So it is
 * an exact mean over that time, however far apart the samples are, as with GPM's hardware
 * counters. */
#include <stdlib.h>

#include "base/array.h"
#include "emulator/nvml_view.h"
#include "emulator/pipes.h"

enum { GPM_VERSION = 1 };

struct nvmlGpmSample_st {
    bool taken;
    int gpu, instance; /* 0: the whole GPU */
    double at_s;
    struct activity sum;
};

struct metric {
    unsigned id; /* NVML_GPM_METRIC_* */
    const char *short_name, *long_name, *unit;
    double (*value)(const struct activity *mean);
};

static double graphics_util(const struct activity *mean)
{
    return 100 * mean->gract;
}

static double sm_util(const struct activity *mean)
{
    return 100 * mean->smact;
}

static double sm_occupancy(const struct activity *mean)
{
    return 100 * mean->smocc;
}

static double dram_util(const struct activity *mean)
{
    return 100 * mean->dram;
}

static double tensor_util(const struct activity *mean)
{
    return 100 * PIPE_TENSOR * mean->smact;
}

static double fp64_util(const struct activity *mean)
{
    return 0;
}

static double fp32_util(const struct activity *mean)
{
    return 100 * PIPE_FP32 * mean->smact;
}

static double fp16_util(const struct activity *mean)
{
    return 100 * PIPE_FP16 * mean->smact;
}

static double pcie_tx(const struct activity *mean)
{
    return PCIE_TX_OF_RX * mean->pcie_rx_mib;
}

static double pcie_rx(const struct activity *mean)
{
    return mean->pcie_rx_mib;
}

static const struct metric metrics[] = {
    {1, "gract", "Graphics Utilization", "%", graphics_util},
    {2, "smutil", "SM Utilization", "%", sm_util},
    {3, "smocc", "SM Occupancy", "%", sm_occupancy},
    {5, "tensor", "Any Tensor Utilization", "%", tensor_util},
    {10, "dram", "DRAM Bandwidth Utilization", "%", dram_util},
    {11, "fp64", "FP64 Utilization", "%", fp64_util},
    {12, "fp32", "FP32 Utilization", "%", fp32_util},
    {13, "fp16", "FP16 Utilization", "%", fp16_util},
    {20, "pcitx", "PCIe TX per sec", "MiB/s", pcie_tx},
    {21, "pcirx", "PCIe RX per sec", "MiB/s", pcie_rx},
};

static const struct metric *find_metric(unsigned id)
{
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
        if (metrics[i].id == id)
            return &metrics[i];
    return NULL;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    struct view v;

    if (support && support->version != GPM_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t r = view_open(device, support, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    support->isSupportedDevice = !(v.gpu->trouble & TROUBLE_NO_GPM);
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    if (!sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    *sample = calloc(1, sizeof(**sample));
    return *sample ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    if (!sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    free(sample);
    return NVML_SUCCESS;
}

static void take_sample(const struct view *v, int instance, nvmlGpmSample_t sample)
{
    *sample = (struct nvmlGpmSample_st){.taken = true,
        .gpu = v->seat.gpu,
        .instance = instance,
        .at_s = world_now_s(v->world),
        .sum = instance ? world_instance_sum(v->world, v->seat.gpu, instance)
                        : *world_sum(v->world, v->seat)};
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, sample, TROUBLE_NO_GPM, &v);
    if (r != NVML_SUCCESS)
        return r;
    take_sample(&v, 0, sample);
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned gpu_instance, nvmlGpmSample_t sample)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, sample, TROUBLE_NO_GPM, &v);
    if (r != NVML_SUCCESS)
        return r;
    if (gpu_instance == 0 || gpu_instance >= INSTANCES_MAX ||
        !v.gpu->instances[gpu_instance].is_made)
        r = NVML_ERROR_NOT_FOUND;
    else
        take_sample(&v, (int)gpu_instance, sample);
    view_close(&v);
    return r;
}

/* Integrals divided by time: exact however far apart the samples are. */
static struct activity mean_between(
    const struct nvmlGpmSample_st *a, const struct nvmlGpmSample_st *b)
{
    struct activity mean = {0};
    double span = b->at_s - a->at_s;

    activity_add(&mean, &b->sum, 1 / span);
    activity_add(&mean, &a->sum, -1 / span);
    return mean;
}

/* A metric that GPM does not have is not supported; the others of the same call are answered. */
static void fill_metric(nvmlGpmMetric_t *metric, const struct activity *mean)
{
    const struct metric *known = find_metric(metric->metricId);

    metric->nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    if (!known)
        return;
    metric->value = known->value(mean);
    metric->metricInfo.shortName = known->short_name;
    metric->metricInfo.longName = known->long_name;
    metric->metricInfo.unit = known->unit;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
    if (!get || !get->sample1 || !get->sample2)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (get->version != GPM_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    const struct nvmlGpmSample_st *a = get->sample1, *b = get->sample2;
    if (!a->taken || !b->taken || a->gpu != b->gpu || a->instance != b->instance)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (b->at_s <= a->at_s)
        return NVML_ERROR_NO_DATA;
    struct activity mean = mean_between(a, b);
    for (unsigned i = 0; i < get->numMetrics; i++)
        fill_metric(&get->metrics[i], &mean);
    return NVML_SUCCESS;
}
