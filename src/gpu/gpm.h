/* SPDX-License-Identifier: Apache-2.0 */
/* GPM: NVML's SM activity counters (Hopper and newer). A value is computed from two NVML samples
 * and is the mean over the time between them. */
#ifndef COLLOC_GPU_GPM_H
#define COLLOC_GPU_GPM_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "gpu/nvml.h"

enum { GPM_METRIC_COUNT = 12 };

/* NVML requires more than 100 ms between two samples of a real GPU (nvml.h). */
#define GPM_INTERVAL_MIN_US ((int64_t)100000)

struct gpm {
    nvml_device device; /* NULL: no GPM here */
    bool is_mig;        /* then `device` is the card */
    unsigned gpu_instance;
    nvml_sample samples[2];
    int newest;
    bool primed;     /* samples[newest] holds counters, taken at taken_us */
    bool was_in_use; /* a process was on the GPU then, or was seen there since */
    int64_t taken_us;
    int64_t interval_min_us; /* an update before it repeats the last values */
    double share;            /* of a processor that computing them may take; 0: no limit */
    int64_t rest_us;         /* computes no value before it, to stay below `share` */
    struct reading last[GPM_METRIC_COUNT]; /* of the latest interval that was long enough */
};

/* Leaves `gpm` without a device if the driver or the GPU has no GPM. `gpu_instance` is used only
 * when is_mig. */
void gpm_init(struct gpm *gpm, const struct nvml *nvml, nvml_device device, bool is_mig,
    unsigned gpu_instance);

/* Releases the driver's samples. */
void gpm_fini(struct gpm *gpm, const struct nvml *nvml);

/*
 * Fills the GPM readings of `sample`; unavailable ones are invalid.
 *
 * in_use:  false when the GPU is known to have no process and no activity now. An interval that
 *          begins and ends so, with no process seen in between, is reported as idle without
 *          computing it, where `gpm->share` limits the cost. A process that ended within the
 *          interval did its work there, so then it is computed.
 * scratch: any memory.
 * sample:  holds the time on entry.
 *
 * Returns NVML's result, NVML_NOT_SUPPORTED without GPM.
 */
int gpm_update(struct gpm *gpm, const struct nvml *nvml, struct nvml_gpm_metrics *scratch,
    bool in_use, struct gpu_sample *sample);

/* The next gpm_update computes its values, whatever they cost, even on an idle GPU. */
void gpm_force_next(struct gpm *gpm);

#endif
