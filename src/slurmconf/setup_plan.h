/* SPDX-License-Identifier: Apache-2.0 */
/* What slurm_setup.c and gres_setup.c share. */
#ifndef COLLOC_SLURMCONF_SETUP_PLAN_H
#define COLLOC_SLURMCONF_SETUP_PLAN_H

#include <stdio.h>

#include "base/fault.h"
#include "slurmconf/conf_text.h"
#include "slurmconf/setup_files.h"

/* The nodes of one NodeName line that have GPUs. */
struct gpu_nodes {
    char *names; /* as slurm.conf writes them: "gpu[01-04]" */
    int gpus;    /* of each */
};

/* The device files of gres.conf (gres_setup.c). */
struct gres_devices;

struct setup_plan {
    const struct setup_options *options;
    struct fault *fault;
    FILE *notes;
    struct gpu_nodes *nodes;
    size_t n_nodes, nodes_capacity;
    struct gres_devices *devices;
};

/* Reads gres.conf into `plan->devices`, and plans the removal of its lines of GPUs. Returns 0 or
 * -errno with a fault. */
int gres_setup_read(struct setup_plan *plan, struct setup_file *file);

/*
 * The numbers of the device files of the nodes of a line.
 *
 * ret_indices: a bit for each of `nodes->gpus`: the types of its GPUs
 *
 * Returns 0, or -errno with a fault.
 */
int gres_setup_indices(
    const struct setup_plan *plan, const struct gpu_nodes *nodes, uint64_t *ret_indices);

/* Plans the lines of gres.conf: the devices of `plan->nodes`, typed by index, with their shards.
 * Returns 0 or -ENOMEM. */
int gres_setup_plan(struct setup_plan *plan, struct setup_file *file);

/* Releases `plan->devices`. */
void gres_setup_fini(struct setup_plan *plan);

#endif
