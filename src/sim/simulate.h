/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace of arrivals through the scheduler itself, over pretend GPUs. The core and the policies
 * are those of the daemon; the laws of the GPUs are those of src/sharing and gpu_model.c.
 *
 * Samples: the daemon looks at every GPU once a second. So does the simulator, at the same whole
 * seconds, but only when the look can tell something new: after memory was taken or somebody came
 * or went; three times after a change of who is there, since the core then trusts the mean of those
 * alone; as long as its mean over the window is not yet near the present activity; and when a
 * hold-off is due to end. Looks that were left out are made up for, one in three, before the
 * activity changes. What is approximated is thus the weight of samples in the mean over the window,
 * within a window after a change. `every_second` looks every second, and approximates nothing.
 */
#ifndef COLLOC_SIM_SIMULATE_H
#define COLLOC_SIM_SIMULATE_H

#include <stdatomic.h>
#include <stdio.h>

#include "core/core.h"
#include "sim/catalogue.h"
#include "sim/cluster.h"

struct simulation {
    const char *trace; /* path */
    const struct catalogue *catalogue;
    const struct cluster *cluster;
    const struct gpu_laws *laws;
    struct core_settings settings;
    enum sharing
        sharing;   /* under the policy "exclusive", tasks are plain processes whatever this says */
    uint64_t seed; /* 0: every task takes what the catalogue says; otherwise times are spread
                      (gpu_laws.spread) */
    uint64_t resample; /* 0: the trace as it is; otherwise the seed of another like it
                          (arrivals_resample) */
    double need_error; /* standard deviation of the logarithm of what tasks are said to need over
                          what they do; 0: none */
    bool knows_activity, knows_time; /* what tasks say of themselves, besides memory */
    bool every_second;
    FILE *trace_out;                /* a line per event (sim/trace.h), or NULL */
    FILE *timeline_out, *tasks_out; /* CSV (sim/records.h), or NULL */
    FILE *remarks;                  /* what was left out, and why; or NULL */
    const atomic_bool *cancelled;   /* once true, the run ends with -ECANCELED; or NULL */
};

/* Means are over the tasks that ended. */
struct simulation_result {
    double total_s; /* from the first submission to the last end */
    double avg_wait_s, avg_exec_s, avg_jct_s;
    int64_t oom; /* crashes */
    int64_t submitted, completed, failed, left_out;
    double energy_mj, mean_smact; /* over all GPUs, within total_s */
    double lower_bound_s;         /* of total_s */
};

/* 0 or -errno with a fault. */
int simulate(
    const struct simulation *simulation, struct fault *fault, struct simulation_result *ret_result);

#endif
