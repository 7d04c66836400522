/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Slurm's configuration needs so that colloc can share its GPUs: the changes of `colloc slurm
 * setup`, as texts. Reading and writing the files is the caller's.
 */
#ifndef COLLOC_SLURMCONF_SLURM_SETUP_H
#define COLLOC_SLURMCONF_SLURM_SETUP_H

#include <stdbool.h>

#include "base/fault.h"
#include "slurmconf/marked_text.h"

struct setup_options {
    const char *intake, *run; /* names of the two partitions */
    bool takes_partition;     /* an existing partition `intake` becomes colloc's */
    int shards;               /* of each GPU */
    bool without_controller;  /* the first tier: shards and cli_filter.lua only */
};

/* One file of the configuration. */
struct setup_file {
    const char *name;        /* for messages */
    const char *comment;     /* what begins a comment there: "#" or "--" */
    struct span text;        /* without what setup wrote before; borrowed */
    struct text_edits edits; /* set by slurm_setup_plan; for text_edits_fini */
};

/* The files: slurm.conf and those that it includes, in the order of their inclusion, and
 * gres.conf. */
struct setup_files {
    struct setup_file *confs;
    size_t n_confs; /* at least 1: slurm.conf */
    struct setup_file *gres;
};

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
