/* SPDX-License-Identifier: Apache-2.0 */
/* The laws of sharing: how fast tasks run beside each other on one GPU or MIG instance. Pure; the
 * formulae are in sharing.c. */
#ifndef COLLOC_EMULATOR_SHARING_H
#define COLLOC_EMULATOR_SHARING_H

#include <stdbool.h>

/*
 * What a GPU does, as fractions 0..1 of the whole GPU, and watts. The same struct holds a task's
 * demand when it has a GPU to itself (power above that of an awake GPU), a GPU's present rates, and
 * their integrals over emulated time.
 */
struct activity {
    double gract; /* time with any kernel resident */
    double smact; /* SM-time with a warp resident */
    double smocc; /* resident warps of those possible */
    double dram;  /* memory bandwidth */
    double power_w;
    double pcie_rx_mib; /* per second, to the GPU */
};

struct member {
    struct activity demand;
    bool mps;     /* shares through MPS; otherwise in turns (streams) */
    double share; /* of the SMs it may use: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE / 100 */
    double speed; /* the answer of sharing_solve: 1 is as alone on a whole GPU */
};

/* Fills in each member's speed. `capacity` is the fraction of the GPU's SMs and bandwidth they
 * share: 1, or a MIG slice. */
void sharing_solve(double capacity, struct member *members, int count);

/* A whole demand where only SMACT is known; negative fields of `demand` are filled in, `peak_w` is
 * TDP minus idle power. */
void sharing_complete(struct activity *demand, double peak_w);

/* total += rate * factor, field by field. */
void activity_add(struct activity *total, const struct activity *rate, double factor);

#endif
