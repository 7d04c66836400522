/* SPDX-License-Identifier: Apache-2.0 */
/* A user's description of a task, from a command line, a script or a .rad file. */
#ifndef COLLOC_TASKFILE_DESCRIPTION_H
#define COLLOC_TASKFILE_DESCRIPTION_H

#include <stddef.h>

#include "taskfile/option.h"

/* The options of a task by the rows of task_options.def: TASK_NAME, TASK_GPUS and so on. */
enum task_option {
#define TASK_OPTION(id, ...) id,
#include "taskfile/task_options.def"
#undef TASK_OPTION
    TASK_OPTION_MAX = 64 /* room for the options of a program with more rows (tests/unit/extend) */
};

/* The table of the rows, and how many it has: at most TASK_OPTION_MAX. */
extern const struct option_spec task_options[];
extern const size_t task_option_count;

/* What a script's #SBATCH lines contain besides the options of a task. */
struct slurm_facts {
    bool is_slurm;                                      /* it has such lines */
    int cpus_per_gpu;                                   /* 0: not given */
    int64_t memory_per_cpu_bytes, memory_per_gpu_bytes; /* 0: not given */
    char *folder;    /* to run in, relative to the current one; NULL: that */
    char *exported;  /* "A=1,B=2": for the environment; or NULL */
    char *mail_user; /* the address for mails, if the script asks for any; or NULL */
    char *warnings;  /* lines; or NULL */
};

struct task_description {
    struct option_value values[TASK_OPTION_MAX]; /* by enum task_option */
    char *file;   /* the name of its task file in messages; NULL: of none */
    char *script; /* the text to run: valid UTF-8 without NUL */
    struct slurm_facts slurm;
    char *summary; /* content of the file that TASK_SUMMARY names; NULL: not read */
};

/* Frees what the description holds; zeroes it. */
void task_description_fini(struct task_description *description);

#endif
