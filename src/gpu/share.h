/*
 * Whose work a GPU's activity is, and whose energy. Pure. Everything adds up: the weights of all who hold a GPU sum to
 * 1 (to 0 when none of them has a process there), and their energies and nobody's to what the GPU drew.
 */
#ifndef COLLOC_GPU_SHARE_H
#define COLLOC_GPU_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/reading.h"

/* Somebody who holds a GPU: a task, or a process of others. Start with {0}. */
struct gpu_holder {
    unsigned processes;            /* there, that can compute */
    bool is_mps;                   /* one of them is an MPS client */
    struct reading sm_utilisation; /* the driver's word for the time they had kernels; unknown unless told of all */
    double weight;                 /* the answer: its part of the activity */
};

/*
 * One who is alone with processes has all of it. Several by streams take turns, so each has the part of the time that
 * the driver tells. MPS clients run at the same time and the driver tells nothing of each: then, or when it told
 * nothing, each process counts the same. True when it had to be estimated so.
 */
bool share_weigh(struct gpu_holder *holders, size_t count);

/*
 * Of what the GPU drew in a while: the idle power's part is divided among all who hold the GPU, whether they use it or
 * not, and what is beyond by weight. The rest, which is nobody's, is the difference to the whole.
 */
double share_energy_j(double weight, size_t count, double drawn_j, double idle_j);

#endif
