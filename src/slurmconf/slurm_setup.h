/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Slurm's configuration needs so that colloc can share its GPUs: the changes of `colloc slurm
 * setup`, as texts. Reading and writing the files is the caller's.
 */
#ifndef COLLOC_SLURMCONF_SLURM_SETUP_H
#define COLLOC_SLURMCONF_SLURM_SETUP_H

#include "base/fault.h"
#include "slurmconf/setup_files.h"

/*
 * Plans the changes of all files.
 *
 * files:     their edits are filled
 * ret_notes: notes for the administrator, a line each, on the heap; may be ""
 * ret_nodes: how many lines of slurm.conf have nodes with GPUs
 *
 * Returns 0, or -errno with a fault: no node with GPUs, a name that clashes, a setting that colloc
 * cannot work with.
 */
int slurm_setup_plan(struct setup_files *files, const struct setup_options *options,
    struct fault *fault, char **ret_notes, size_t *ret_nodes);

#endif
