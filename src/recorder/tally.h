/* SPDX-License-Identifier: Apache-2.0 */
/* What a command did on one GPU, added up look by look. Pure. */
#ifndef COLLOC_RECORDER_TALLY_H
#define COLLOC_RECORDER_TALLY_H

#include "gpu/attribution.h"

/* Who was there at one look, the command's processes apart from all others. */
struct presence {
    unsigned ours, others; /* processes that can compute */
    bool is_mps;
    struct reading our_memory_bytes; /* of all our processes together; unknown when the driver does
                                        not tell of one */
    struct reading our_sm_utilisation, other_sm_utilisation;
};

/* A mean over time. */
struct mean {
    double sum, span_s;
};

struct tally {
    bool used;         /* the command had a process there */
    bool with_others;  /* and at some time others had, too */
    bool is_estimated; /* parts of the activity: the driver did not tell whose it was */
    bool has_grown;    /* its memory in use went up by more than a bare CUDA context takes */
    bool lists_nobody; /* the driver does not list processes */
    struct reading our_peak_bytes, peak_bytes; /* the command's memory; the GPU's in use */
    struct mean smact, smocc, dram_active;
    struct mean our_smact; /* the command's part of the GPU's SMACT */
    struct mean power_w;   /* energy over the time of which it is known */
    double energy_j, our_energy_j;
    struct gpu_meter meter;
    struct reading first_used_bytes;
    double weight; /* the command's part of the activity */
    size_t holders;
};

/* The first look, just before the command starts, begins the times and counters. */
void tally_take(
    struct tally *tally, const struct gpu_sample *sample, const struct presence *presence);

struct reading mean_value(const struct mean *mean);

#endif
