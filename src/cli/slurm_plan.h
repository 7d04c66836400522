/* SPDX-License-Identifier: Apache-2.0 */
/* What `colloc slurm setup` makes of the files in the folder of slurm.conf. */
#ifndef COLLOC_CLI_SLURM_PLAN_H
#define COLLOC_CLI_SLURM_PLAN_H

#include <stdint.h>

#include "cli/slurm_folder.h"

#define WAKE_FILE_USUAL "/run/colloc-slurm/wake" /* as slurm/slurm_config.c */

/* The options of `colloc slurm`; texts are borrowed. */
struct slurm_choices {
    const char *intake, *run; /* partitions */
    char wake_file[4096];     /* that slurmctld writes, and colloc-slurm watches */
    const char *spank;        /* NULL: the installed plugin, if there is one */
    bool takes_partition, estimates_only;
    int shards;
    int64_t gpu_memory_bytes;    /* with estimates_only */
    const char *login;           /* "HOST:PORT" for login nodes; NULL: none */
    const char *controller_user; /* that colloc-slurm runs as */
};

/* Fills the new texts of the files; prints notes for the administrator. Returns 0 or -errno with a
 * fault. */
int slurm_plan_setup(
    const struct slurm_choices *choices, struct slurm_folder *folder, struct fault *fault);

/* Fills the new texts with the texts before any setup. Returns 0, or -ENOMEM with a fault. */
int slurm_plan_remove(struct slurm_folder *folder, struct fault *fault);

/* Returns the text of a Lua script on the heap; NULL when memory is out or the name is unknown. */
char *slurm_plan_script(
    const struct slurm_choices *choices, const struct slurm_folder *folder, const char *name);

/*
 * Without colloc-slurm no job of the intake would ever start.
 *
 * Returns 0 when it is installed or not needed, or -ENOENT with a fault.
 */
int slurm_plan_require_controller(const struct slurm_choices *choices, struct fault *fault);

#endif
