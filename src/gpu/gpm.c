/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPM values by two alternating NVML samples: each update takes a new sample into the older buffer
 * and computes the metrics between the two. The computation costs about 1 ms of processor time, so
 * that it pauses where its share of a processor is limited. Nothing is lost by that: the next value
 * is the mean since the last one.
 */
#include "gpu/gpm.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

enum unit { PER_CENT, MIB_PER_S };

static const struct {
    enum nvml_gpm_metric_id id;
    enum unit unit;
    size_t offset; /* in struct gpu_sample */
} metrics[GPM_METRIC_COUNT] = {
    {NVML_GPM_SM_UTIL, PER_CENT, offsetof(struct gpu_sample, smact)},
    {NVML_GPM_SM_OCCUPANCY, PER_CENT, offsetof(struct gpu_sample, smocc)},
    {NVML_GPM_GRAPHICS_UTIL, PER_CENT, offsetof(struct gpu_sample, gract)},
    {NVML_GPM_DRAM_BW_UTIL, PER_CENT, offsetof(struct gpu_sample, dram_active)},
    {NVML_GPM_ANY_TENSOR_UTIL, PER_CENT, offsetof(struct gpu_sample, tensor_active)},
    {NVML_GPM_FP64_UTIL, PER_CENT, offsetof(struct gpu_sample, fp64_active)},
    {NVML_GPM_FP32_UTIL, PER_CENT, offsetof(struct gpu_sample, fp32_active)},
    {NVML_GPM_FP16_UTIL, PER_CENT, offsetof(struct gpu_sample, fp16_active)},
    {NVML_GPM_PCIE_TX_PER_SEC, MIB_PER_S, offsetof(struct gpu_sample, pcie_tx_bytes_per_s)},
    {NVML_GPM_PCIE_RX_PER_SEC, MIB_PER_S, offsetof(struct gpu_sample, pcie_rx_bytes_per_s)},
    {NVML_GPM_NVLINK_TX_PER_SEC, MIB_PER_S, offsetof(struct gpu_sample, nvlink_tx_bytes_per_s)},
    {NVML_GPM_NVLINK_RX_PER_SEC, MIB_PER_S, offsetof(struct gpu_sample, nvlink_rx_bytes_per_s)},
};

void gpm_init(struct gpm *gpm, const struct nvml *nvml, nvml_device device, bool is_mig,
    unsigned gpu_instance)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_SUPPORT_VERSION};
    *gpm = (struct gpm){
        .is_mig = is_mig, .gpu_instance = gpu_instance, .interval_min_us = GPM_INTERVAL_MIN_US};
    if (nvml_call(nvml, gpm_support, device, &support) != NVML_OK || !support.supported)
        return;
    for (int i = 0; i < 2; i++) {
        if (nvml_call(nvml, gpm_sample_alloc, &gpm->samples[i]) != NVML_OK) {
            gpm->samples[i] = NULL;
            gpm_fini(gpm, nvml);
            return;
        }
    }
    gpm->device = device;
}

void gpm_fini(struct gpm *gpm, const struct nvml *nvml)
{
    for (int i = 0; i < 2; i++) {
        if (gpm->samples[i])
            nvml_call(nvml, gpm_sample_free, gpm->samples[i]);
    }
    *gpm = (struct gpm){0};
}

static int take_sample(struct gpm *gpm, const struct nvml *nvml, nvml_sample into)
{
    if (gpm->is_mig)
        return nvml_call(nvml, gpm_mig_sample_get, gpm->device, gpm->gpu_instance, into);
    return nvml_call(nvml, gpm_sample_get, gpm->device, into);
}

/* After a counter reset NVML computes negative, impossible or NaN values: no reading. */
static struct reading convert_metric(const struct nvml_gpm_metric *metric, enum unit unit)
{
    if (metric->result != NVML_OK || !isfinite(metric->value) || metric->value < 0)
        return READING_NONE;
    if (unit == MIB_PER_S)
        return reading_of(metric->value * (double)MIB);
    const double rounding = 0.5;
    if (metric->value > 100 + rounding)
        return READING_NONE;
    return reading_of(fmin(metric->value / 100, 1));
}

static int compute_metrics(
    struct gpm *gpm, const struct nvml *nvml, struct nvml_gpm_metrics *scratch)
{
    scratch->version = NVML_GPM_METRICS_VERSION;
    scratch->count = GPM_METRIC_COUNT;
    scratch->before = gpm->samples[!gpm->newest];
    scratch->after = gpm->samples[gpm->newest];
    for (int i = 0; i < GPM_METRIC_COUNT; i++)
        scratch->metrics[i] = (struct nvml_gpm_metric){.id = metrics[i].id, .result = NVML_UNKNOWN};

    int r = nvml_call(nvml, gpm_metrics_get, scratch);
    if (r != NVML_OK)
        return r;
    for (int i = 0; i < GPM_METRIC_COUNT; i++)
        gpm->last[i] = convert_metric(&scratch->metrics[i], metrics[i].unit);
    return NVML_OK;
}

static void set_idle(struct gpm *gpm)
{
    for (int i = 0; i < GPM_METRIC_COUNT; i++)
        gpm->last[i] = metrics[i].unit == PER_CENT ? reading_of(0) : READING_NONE;
}

static int compute_in_share(
    struct gpm *gpm, const struct nvml *nvml, struct nvml_gpm_metrics *scratch)
{
    int64_t began_us = clock_thread_us();
    int r = compute_metrics(gpm, nvml, scratch);
    if (gpm->share > 0)
        gpm->rest_us = (int64_t)((double)(clock_thread_us() - began_us) / gpm->share);
    return r;
}

static int advance_interval(struct gpm *gpm, const struct nvml *nvml,
    struct nvml_gpm_metrics *scratch, bool in_use, int64_t now_us)
{
    int next = !gpm->newest;
    bool was_primed = gpm->primed;
    bool idle = gpm->share > 0 && !gpm->was_in_use && !in_use;
    int r = take_sample(gpm, nvml, gpm->samples[next]);
    memset(gpm->last, 0, sizeof gpm->last);
    gpm->primed = r == NVML_OK;
    if (r != NVML_OK)
        return r;
    gpm->newest = next;
    gpm->taken_us = now_us;
    gpm->was_in_use = in_use;
    if (was_primed && idle)
        set_idle(gpm);
    gpm->rest_us = 0;
    return was_primed && !idle ? compute_in_share(gpm, nvml, scratch) : NVML_OK;
}

void gpm_force_next(struct gpm *gpm)
{
    gpm->rest_us = 0;
    gpm->was_in_use = true;
}

int gpm_update(struct gpm *gpm, const struct nvml *nvml, struct nvml_gpm_metrics *scratch,
    bool in_use, struct gpu_sample *sample)
{
    int64_t now_us = sample->at_us;
    int r = NVML_OK;
    if (!gpm->device)
        return NVML_NOT_SUPPORTED;
    int64_t interval_us = gpm->rest_us > gpm->interval_min_us ? gpm->rest_us : gpm->interval_min_us;
    if (!gpm->primed || now_us - gpm->taken_us > interval_us)
        r = advance_interval(gpm, nvml, scratch, in_use, now_us);
    else
        gpm->was_in_use |= in_use;
    for (int i = 0; i < GPM_METRIC_COUNT; i++)
        *(struct reading *)((char *)sample + metrics[i].offset) = gpm->last[i];
    return r;
}
