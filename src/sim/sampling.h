/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the simulated GPUs are sampled. The daemon samples each GPU once a second. The simulator
 * samples at the same whole seconds, but leaves out samples that cannot change a decision: the head
 * of sampling.c says which, simulate.h what that approximates.
 */
#ifndef COLLOC_SIM_SAMPLING_H
#define COLLOC_SIM_SAMPLING_H

#include "sim/sim_driver.h"
#include "sim/simulated_gpus.h"

struct sampling {
    /* Set by the caller before sampling_init; borrowed. */
    struct sim *sim;
    const struct simulated_gpus *gpus;
    const struct core_settings *settings;
    bool every_second; /* leave out no sample: sampling_sample_all samples, the others do nothing */
    int wakeup_kind;   /* the kind of the wake-ups for sampling_on_wakeup; their subject is the
                        * place */

    struct place_sampling {
        int64_t next_us; /* when the planned sample is due; TIME_NEVER: none is planned */
        int64_t last_us; /* of the last sample that the core has seen */
    } * places;
    int current;                /* the place whose sample the core is deciding on; -1: none */
    struct task_memory *memory; /* scratch: the tasks of a sample */
    size_t memory_capacity;
};

/* Plans a first sample of each place at time 0. Returns 0 or -ENOMEM; sampling_fini must follow in
 * both cases. */
int sampling_init(struct sampling *sampling);
void sampling_fini(struct sampling *sampling);

/*
 * Something changes on the place now: plans a sample at the next whole second, which may be now.
 *
 * Returns 0 or -ENOMEM.
 */
int sampling_plan(struct sampling *sampling, int place);

/*
 * The activity of the place is about to change: gives the core the samples that were left out
 * while it was constant, one of three.
 *
 * Returns 0 or -ENOMEM.
 */
int sampling_catch_up(struct sampling *sampling, int place);

/* Takes the planned sample of the place, if that is due now. Returns 0 or -ENOMEM. */
int sampling_on_wakeup(struct sampling *sampling, int place);

/* Samples all places now, in order. Returns 0 or -ENOMEM. */
int sampling_sample_all(struct sampling *sampling);

#endif
