/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs there are: kinds from a text (data/gpu-kinds.txt has the form), and machines in the
 * words of --gpus. */
#ifndef COLLOC_SIM_CLUSTER_H
#define COLLOC_SIM_CLUSTER_H

#include "base/fault.h"
#include "base/text.h"
#include "core/view.h"
#include "sim/gpu_model.h"

enum { KINDS_MAX = 64, PROFILES_MAX = 16, CLUSTER_GPUS_MAX = 100000 };

struct gpu_kind {
    char name[32];
    int64_t total_bytes, reserved_bytes;
    int sms;
    double limit_w, idle_w, awake_w, work_w;
    struct mig_profile {
        char name[16];
        int64_t total_bytes;
        int sms, memory_slices;
    } profiles[PROFILES_MAX];
    int n_profiles;
};

struct gpu_kinds {
    struct gpu_laws laws;
    struct gpu_kind kinds[KINDS_MAX];
    int n;
};

/* Adds the kinds and constants of the text; what it names again replaces what was there. 0 or
 * -EINVAL with the line. */
int gpu_kinds_read(
    struct gpu_kinds *kinds, struct span text, const char *name, struct fault *fault);

/* Those of data/gpu-kinds.txt, which is built in, and the measured laws of sharing. 0 or -errno
 * with a fault. */
int gpu_kinds_init(struct gpu_kinds *kinds, struct fault *fault);

/* A place is a whole GPU, or one of the MIG instances that a GPU is parted into. */
struct cluster {
    const struct gpu_kind **gpus;
    int n_gpus;
    struct place_shape {
        int gpu;
        double sms, bandwidth;  /* fractions of its GPU */
        int64_t capacity_bytes; /* what processes can have */
    } * places;
    struct gpu_identity *identities; /* of the places */
    int n_places;
    int place_room; /* of the arrays */
};

/*
 * "4xA100-40GB", "2xA100-80GB,H100", "A100-40GB:3g.20gb+2g.10gb". The kinds are borrowed. 0 or
 * -errno with a fault. Ended by cluster_fini either way.
 */
int cluster_parse(const struct gpu_kinds *kinds, const char *text, struct fault *fault,
    struct cluster *ret_cluster);
void cluster_fini(struct cluster *cluster);

#endif
