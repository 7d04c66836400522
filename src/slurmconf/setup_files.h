/* SPDX-License-Identifier: Apache-2.0 */
/* What `colloc slurm setup` is asked for, and the files of Slurm that it changes. */
#ifndef COLLOC_SLURMCONF_SETUP_FILES_H
#define COLLOC_SLURMCONF_SETUP_FILES_H

#include <stdbool.h>

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

#endif
