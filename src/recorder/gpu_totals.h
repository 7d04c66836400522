/* SPDX-License-Identifier: Apache-2.0 */
/* Totals of what a command did on one GPU, updated sample by sample. Pure. */
#ifndef COLLOC_RECORDER_GPU_TOTALS_H
#define COLLOC_RECORDER_GPU_TOTALS_H

#include "gpu/attribution.h"

/* The processes on a GPU at one sample: the command's (`ours`) and all others. */
struct gpu_occupants {
    unsigned ours, others; /* processes that can compute */
    bool is_mps;
    struct reading our_memory_bytes; /* sum; invalid when that of one is not reported */
    struct reading our_sm_utilisation, other_sm_utilisation;
};

/* A mean over time. */
struct mean {
    double sum, span_s;
};

struct gpu_totals {
    bool used;            /* the command had a process on the GPU */
    bool with_others;     /* and at the same time others had */
    bool is_estimated;    /* activity was divided by number of processes, see gpu/attribution.h */
    bool has_grown;       /* memory in use rose by more than a bare CUDA context needs */
    bool no_process_list; /* the driver does not report processes */
    struct reading our_peak_bytes, peak_bytes; /* the command's memory; the GPU's in use */
    struct mean smact, smocc, dram_active;
    struct mean our_smact; /* the command's part of the GPU's SMACT */
    struct mean power_w;   /* energy over the time for which it is known */
    double energy_j, our_energy_j;
    struct gpu_meter meter;
    struct reading first_used_bytes;
    double weight; /* the command's part of the activity */
    size_t holders;
};

/* Adds a sample. The first, taken just before the command starts, sets where totals begin. */
void gpu_totals_add(struct gpu_totals *totals, const struct gpu_sample *sample,
    const struct gpu_occupants *occupants);

/* Returns the mean over the time added so far; invalid without any. */
struct reading mean_value(const struct mean *mean);

#endif
