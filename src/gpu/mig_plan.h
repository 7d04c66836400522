/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing MIG instances on a GPU, by the placements that the driver allows. Pure.
 *
 * A GPU instance has memory and SMs; compute instances share out its SMs and have its memory
 * together. Mostly there is one, with all SMs.
 */
#ifndef COLLOC_GPU_MIG_PLAN_H
#define COLLOC_GPU_MIG_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

enum {
    MIG_PROFILES_MAX = 32,
    MIG_PLACEMENTS_MAX = 16,
    MIG_INSTANCES_MAX = 16,
    MIG_COMPUTES_MAX = MIG_INSTANCES_MAX, /* in a GPU instance */
    MIG_NAME_SIZE = 48,
};

struct mig_placement {
    unsigned start, size; /* in memory slices */
};

struct mig_profile {
    unsigned id;   /* NVML's */
    char name[32]; /* "3g.40gb" */
    int slices;    /* of compute; of an A100 seven, of an A30 four */
    int64_t mem_bytes;
    struct mig_placement placements[MIG_PLACEMENTS_MAX];
    size_t n_placements;
};

/* A GPU instance. */
struct mig_instance {
    size_t profile; /* index into the profiles */
    struct mig_placement at;
    int computes[MIG_COMPUTES_MAX]; /* the slices of each compute instance in it */
    size_t n_computes;
};

struct mig_plan {
    struct mig_instance instances[MIG_INSTANCES_MAX];
    size_t count;
};

/*
 * Finds a placement for one instance of each of `names`.
 *
 * profiles: `count` profiles of the GPU with their placements
 * names:    "3g.40gb", or "3g" or "3" for the profile of 3 slices with the least memory. With "1c."
 *           before it, it is a compute instance of one slice: in the first GPU instance of the
 *           profile that such a name has begun and that has slices left, else in another one.
 * ret_plan: the instances in the order of their starts
 *
 * Returns 0, or -EINVAL with a fault: an unknown profile, no such compute instance, or the
 * instances do not fit together.
 */
int mig_plan_make(const struct mig_profile *profiles, size_t count, const char *const *names,
    size_t n_names, struct fault *fault, struct mig_plan *ret_plan);

/* Writes nvidia-smi's name of a compute instance: "1c.3g.20gb", or "3g.20gb" where it has all slices
 * of its GPU instance. Returns `buffer`. */
const char *mig_plan_name(
    const struct mig_profile *profile, int slices, char buffer[MIG_NAME_SIZE]);

/* Sorts the instances by their starts. */
void mig_plan_sort(struct mig_plan *plan);

#endif
