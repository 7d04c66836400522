/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose work a GPU's activity is, and whose energy. Pure. Everything adds up: the weights of all
 * who hold a GPU sum to 1 (to 0 when none of them has a process there), and their energies and
 * nobody's to what the GPU drew.
 */
#ifndef COLLOC_GPU_SHARE_H
#define COLLOC_GPU_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/gpu.h"

/* Somebody who holds a GPU: a task, or a process of others. Start with {0}. */
struct gpu_holder {
    unsigned processes;            /* there, that can compute */
    bool is_mps;                   /* one of them is an MPS client */
    struct reading sm_utilisation; /* the driver's word for the time they had kernels; unknown
                                      unless told of all */
    double weight;                 /* the answer: its part of the activity */
};

/*
 * One who is alone with processes has all of it. Several by streams take turns, so each has the
 * part of the time that the driver tells. MPS clients run at the same time and the driver tells
 * nothing of each: then, or when it told nothing, each process counts the same. True when it had to
 * be estimated so.
 */
bool share_weigh(struct gpu_holder *holders, size_t count);

/*
 * The part that one of `count` who hold a GPU has of what it drew: of the part that the idle GPU
 * would have drawn too all have the same, whether they use it or not; what is beyond goes by
 * weight. What is left is nobody's.
 */
double share_of_energy(double weight, size_t count, double idle_part);

/* What a GPU draws from look to look. Start with {0}. */
struct gpu_meter {
    int64_t at_us; /* of the last look; 0: none yet */
    int64_t activity_at_us;
    struct reading energy_j; /* the energy counter when it was last known */
    int64_t accounted_us;    /* the time up to which energy has been accounted for */
    double by_power_j;       /* accounted for by power since energy_j */
    struct reading idle_w; /* the least power seen with nobody there; until then the least at all */
    bool was_empty;        /* idle_w is of such a time */

    /* Since the look before: */
    double span_s;          /* 0 at the first look */
    double activity_span_s; /* that the SM activity is a mean of; 0 when it is that of the look
                               before */
    struct reading drawn_j; /* by the energy counter, else by power */
    double drawn_span_s;    /* in which drawn_j was drawn: longer than span_s after looks that did
                               not know; 0 unless drawn_j is valid */
    double idle_part;       /* of drawn_j */
};

void gpu_meter_take(struct gpu_meter *meter, const struct gpu_sample *sample);

#endif
