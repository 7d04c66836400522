/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interference model: the speed of each task on a GPU beside the others, and the GPU's activity
 * and power. The simulator, the emulator and the predictive policy use it. Pure; the formulae are
 * in interference.c, how well they hold is in docs/measured/sharing.md.
 *
 * All fractions are of a whole GPU, also on a MIG instance, which is a GPU with fewer SMs and less
 * bandwidth.
 */
#ifndef COLLOC_SHARING_INTERFERENCE_H
#define COLLOC_SHARING_INTERFERENCE_H

#include <stdbool.h>

#include "sharing/interference_constants.h"

/* A task's demand on each of its GPUs when it runs there alone: fractions of the whole GPU, and
 * watts. */
struct demand {
    double gract;   /* time with any kernel resident */
    double smact;   /* SM-time with a warp resident */
    double smocc;   /* resident warps of those possible */
    double dram;    /* memory bandwidth */
    double power_w; /* above that of a GPU that is awake */
};

/* A task on the GPU. */
struct sharer {
    struct demand demand; /* complete: see demand_complete */
    bool mps;           /* a client of MPS; otherwise a process that takes turns with the others */
    double cap;         /* the fraction of the SMs that a client of MPS may use; 0: all */
    double speed;       /* 1: as alone on a whole GPU without MPS; a task takes 1 / speed times as
                             long */
    struct customer {   /* scratch of interference_solve: times are fractions of that alone */
        double service; /* at the server, when no other task is there */
        double think;   /* elsewhere */
        double floor;   /* of service and think time together */
        double weight;  /* of its claim to the server, relative to the others' claims */
        double service_per_weight;
        double residence; /* at the server, with the others */
    } customer;
};

/*
 * Sets the speed of each sharer of a GPU.
 *
 * sms, bandwidth: the fractions that a MIG instance has of its GPU; 1 and 1 for a whole GPU.
 * sharers, n:     all but `speed` and `customer` set.
 */
void interference_solve(const struct interference_constants *constants, double sms,
    double bandwidth, struct sharer *sharers, int n);

/* Returns how many times as long the sharer takes if no other is there: as interference_solve, 1
 * for a plain process on a whole GPU. `speed` and `customer` need not be set. */
double interference_alone(const struct interference_constants *constants, double sms,
    double bandwidth, const struct sharer *sharer);

/*
 * Returns the SMACT that a client of MPS would have alone as a plain process, if it has `seen`
 * alone on a whole GPU: launched by the server it is slower, and so less active.
 *
 * known: its fractions as a plain process; NAN: follows from SMACT. Its SMACT is not read.
 * cap:   as in struct sharer
 */
double interference_plain_smact(const struct interference_constants *constants,
    const struct demand *known, double cap, double seen);

/*
 * Computes what the GPU or instance does while its sharers run at the speeds that they have.
 *
 * Returns fractions of the whole GPU, at most `sms` and `bandwidth`, and the power above that of a
 * GPU that is awake.
 */
struct demand interference_activity(const struct interference_constants *constants, double sms,
    double bandwidth, const struct sharer *sharers, int n);

/*
 * Derives the unknown values (NAN) of a demand from its SMACT.
 *
 * work_w: the power that full activity adds to that of a GPU that is awake.
 */
void demand_complete(struct demand *demand, double work_w);

#endif
