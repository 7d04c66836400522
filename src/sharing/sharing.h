/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sharing a GPU does to the tasks on it: how fast each still is, and what the GPU then does
 * and draws. Pure; the formulae are in sharing.c, how well they hold is in
 * docs/measured/sharing.md.
 *
 * All fractions are of a whole GPU, also on a MIG instance, which is a GPU with fewer SMs and less
 * bandwidth.
 */
#ifndef COLLOC_SHARING_SHARING_H
#define COLLOC_SHARING_SHARING_H

#include <stdbool.h>

/* What a task does to each of its GPUs while it has them to itself: fractions of the whole GPU, and
 * watts. */
struct demand {
    double gract;   /* time with any kernel resident */
    double smact;   /* SM-time with a warp resident */
    double smocc;   /* resident warps of those possible */
    double dram;    /* memory bandwidth */
    double power_w; /* above that of a GPU that is awake */
};

/* The constants of the laws: data/sharing/laws.txt says what each means. */
struct sharing_laws {
    double switch_cost, cold_cost;   /* streams */
    double launch_cost, grip;        /* MPS */
    double cache_cost, traffic_cost; /* of kernels that run at the same time */
};

/* As they were fitted to measurements. */
extern const struct sharing_laws sharing_laws_measured;

/* The constant that data/sharing/laws.txt calls `name`, to be read or set; NULL when there is none.
 */
double *sharing_law(struct sharing_laws *laws, const char *name);

struct sharer {
    struct demand demand; /* complete: see demand_complete */
    bool mps;     /* a client of MPS; otherwise a process that takes turns with the others */
    double cap;   /* of the SMs, which a client of MPS is held to (0..1); 0: all */
    double speed; /* 1 is as alone on a whole GPU without MPS; a task then takes 1 / speed times as
                     long */
    struct turn {
        double work, rest, floor, grip, pull, stay;
    } turn; /* scratch of sharing_solve */
};

/*
 * Sets the speed of each of `n` sharers of a GPU, or of a MIG instance that has the fractions `sms`
 * and `bandwidth` of one (1 and 1: a whole GPU).
 */
void sharing_solve(
    const struct sharing_laws *laws, double sms, double bandwidth, struct sharer *sharers, int n);

/* What the GPU or instance does, and draws above a GPU that is awake, while its sharers go at the
 * speeds they have. */
struct demand sharing_activity(const struct sharing_laws *laws, double sms, double bandwidth,
    const struct sharer *sharers, int n);

/* What is not known of a demand (NAN) follows from its SMACT; `work_w` is what full activity adds
 * to the power. */
void demand_complete(struct demand *demand, double work_w);

#endif
