/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs a simulated machine, or cluster of machines, has: the value of --gpus. */
#ifndef COLLOC_SIM_CLUSTER_H
#define COLLOC_SIM_CLUSTER_H

#include "base/fault.h"
#include "base/text.h"
#include "core/view.h"
#include "sim/gpu_model.h"

enum { CLUSTER_GPUS_MAX = 100000 };

/* A place is a whole GPU, or one of the MIG compute instances that a GPU is divided into. */
struct cluster {
    const struct gpu_kind **gpus;
    size_t gpus_capacity;
    int n_gpus;
    struct place_shape {
        int gpu;
        double sms, bandwidth; /* fractions of its GPU's */
        double speed;          /* of its GPU's kind; of all 1 where kinds are not compared */
        int memory_place;      /* the first of the places that share its memory, or itself */
    } * places;
    struct gpu_identity *identities; /* of the places */
    size_t places_capacity, identities_capacity;
    int n_places;
    double speed_max;  /* of all places */
    int n_nodes, node; /* those in braces, from 1 on; and the one being read, 0: outside */
};

/*
 * Reads "4xA100-40GB", "2xA100-80GB,H100", "A100-40GB:3g.20gb+2g.10gb", "A100-40GB:1c.3g.20gb+
 * 2c.3g.20gb" (compute instances that share the memory of a GPU instance), and nodes of such lists:
 * "300x{8xA30},20x{2xT4,2xH100}".
 *
 * kinds: borrowed until cluster_fini.
 *
 * Returns 0, or -errno with a fault; cluster_fini must follow in both cases.
 */
int cluster_parse(const struct gpu_kinds *kinds, const char *text, struct fault *fault,
    struct cluster *ret_cluster);
void cluster_fini(struct cluster *cluster);

/* Returns the speed of the fastest place of these kinds (core/kind_match.h); 0: there is none. */
double cluster_fastest(const struct cluster *cluster, const char *kinds);

#endif
