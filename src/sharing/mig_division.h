/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a GPU is divided by MIG: GPU instances, which have their own memory, and in each of them
 * compute instances, which have their own SMs and share that memory. Pure.
 */
#ifndef COLLOC_SHARING_MIG_DIVISION_H
#define COLLOC_SHARING_MIG_DIVISION_H

#include "sharing/gpu_kind.h"

struct mig_division {
    int profiles[MIG_COMPUTE_SLICES_MAX]; /* of the GPU instances: places in kind->profiles */
    int n_instances;
    int first_open; /* GPU instances before it get no further compute instances */
    struct mig_compute {
        int instance; /* the GPU instance that it is in: a place in `profiles` */
        int slices;   /* of those of the GPU instance */
    } computes[MIG_COMPUTE_SLICES_MAX];
    int n_computes;
};

enum { MIG_COMPUTE_NAME_SIZE = 24 };

/*
 * Reads "3g.20gb+2g.10gb" or "1c.3g.20gb+2c.3g.20gb+4g.20gb". "1c.3g.20gb" is a compute instance of
 * one slice. It is put into the first GPU instance 3g.20gb of the text that was begun by such a
 * compute instance and has a slice left; else it begins another one. "++" instead of "+" begins
 * another one in any case: "1c.3g.20gb++2c.3g.20gb" are two. "3g.20gb" is a GPU instance with one
 * compute instance that has all its slices. "" is a division without instances.
 *
 * Returns 0, or -EINVAL with a fault: no such profile, no such compute instance in it, or more
 * instances than a GPU can have. Whether the GPU instances fit together is not tested.
 */
int mig_division_parse(const struct gpu_kind *kind, struct span text, struct fault *fault,
    struct mig_division *ret_division);

/* Returns the part of its GPU instance that a compute instance with these slices has. */
double mig_compute_part(const struct mig_profile *profile, int slices);

/* Writes "1c.3g.20gb", or "3g.20gb" where the compute instance has all slices. Returns `buffer`. */
const char *mig_compute_name(
    const struct mig_profile *profile, int slices, char buffer[MIG_COMPUTE_NAME_SIZE]);

#endif
