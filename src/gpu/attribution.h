/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attribution: divides a GPU's activity and energy among the tasks and external processes on it.
 * Pure.
 *
 * Contract:
 *   1. The weights of all holders of a GPU sum to 1, or to 0 when none has a process on it.
 *   2. The holders' energies and the unattributed rest sum to the energy that the GPU drew.
 */
#ifndef COLLOC_GPU_SHARE_H
#define COLLOC_GPU_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/gpu.h"

/* A task or an external process on a GPU. Start with {0}. */
struct gpu_holder {
    unsigned processes;            /* on the GPU, that can compute */
    bool is_mps;                   /* one of them is an MPS client */
    struct reading sm_utilisation; /* part of the time in which they had kernels, by the driver;
                                      invalid unless known of all */
    double weight;                 /* the result: its part of the activity */
};

/*
 * Computes the weights. A single holder with processes has all of the activity. Time-sliced holders
 * have the part of the time that the driver reports. MPS clients run at the same time and the
 * driver reports nothing of each: then, or when it reports nothing, each process counts the same.
 *
 * Returns true when the weights are such an estimate.
 */
bool attribution_weigh(struct gpu_holder *holders, size_t count);

/*
 * Returns the part of the GPU's energy that one of its `count` holders is charged: an equal part of
 * `idle_part`, which the idle GPU would have drawn too, and of the rest its weight.
 */
double attribution_energy_share(double weight, size_t count, double idle_part);

/* The energy of a GPU between two samples. Start with {0}. */
struct gpu_meter {
    int64_t at_us; /* of the last sample; 0: none yet */
    int64_t activity_at_us;
    struct reading energy_j; /* the energy counter when it was last known */
    int64_t accounted_us;    /* the time up to which energy has been accounted for */
    double by_power_j;       /* accounted for by power since energy_j */
    struct reading idle_w;   /* least power seen without processes; before that, least power seen */
    bool was_empty;          /* idle_w was seen without processes */

    /* Since the previous sample: */
    double span_s;          /* 0 at the first sample */
    double activity_span_s; /* that the SM activity is a mean of; 0 when it repeats the previous
                               value */
    struct reading drawn_j; /* by the energy counter, else by power */
    double drawn_span_s;    /* in which drawn_j was drawn: longer than span_s after samples
                               without energy; 0 unless drawn_j is valid */
    double idle_part;       /* of drawn_j */
};

/* Updates the meter with the next sample. */
void gpu_meter_take(struct gpu_meter *meter, const struct gpu_sample *sample);

#endif
