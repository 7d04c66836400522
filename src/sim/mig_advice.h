/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How to divide GPUs by MIG for the tasks that wait: the division under which the simulator has all
 * of them done first, and what whole GPUs would give.
 */
#ifndef COLLOC_SIM_MIG_ADVICE_H
#define COLLOC_SIM_MIG_ADVICE_H

#include "base/fault.h"
#include "core/policy.h"
#include "core/task.h"
#include "sim/catalogue.h"
#include "sim/mig_layouts.h"

enum { MIG_ADVICE_GPUS_MAX = 64 };

struct mig_advice_gpu {
    const struct gpu_kind *kind;
    bool can_change;       /* otherwise it is not divided */
    struct mig_layout now; /* its instances; "": whole, or MIG without instances */
};

/* The GPUs, all without tasks, and the queue. */
struct mig_question {
    const struct gpu_kinds *kinds;
    const struct mig_advice_gpu *gpus;
    int n_gpus;                    /* 1 to MIG_ADVICE_GPUS_MAX */
    const struct catalogue *queue; /* each of its tasks is submitted once, in this order */
    const struct policy *policy;   /* the daemon's */
    enum sharing sharing;          /* of tasks on a whole GPU */
};

/* The queue simulated on one division of the GPUs. */
struct mig_outcome {
    bool is_known;    /* it could be simulated */
    int64_t left_out; /* tasks that fit no place */
    double total_s, avg_jct_s;
};

struct mig_advice {
    struct mig_layout layouts[MIG_ADVICE_GPUS_MAX]; /* the best division found, by GPU */
    struct mig_outcome best, now;
    struct mig_outcome exclusive, mps; /* on whole GPUs: one task each; clients of MPS */
    bool is_worth_it;                  /* to change from `now` to `best` */
};

/*
 * Answers the question.
 *
 * Returns 0, or -errno with a fault.
 */
int mig_advise(
    const struct mig_question *question, struct fault *fault, struct mig_advice *ret_advice);

#endif
