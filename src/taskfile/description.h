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

/* The programs of Slurm that take options: bits. */
enum slurm_program { SLURM_SBATCH = 1, SLURM_SRUN = 2, SLURM_SALLOC = 4 };

/* What Slurm's options say besides the options of a task. 0 and NULL: not given. */
struct slurm_facts {
    bool is_slurm; /* a script with #SBATCH lines, or one of Slurm's commands */
    int tasks, tasks_per_node, tasks_per_gpu; /* processes that srun starts */
    int cpus_per_task, cpus_per_gpu, gpus_per_task;
    int64_t memory_per_cpu_bytes, memory_per_gpu_bytes;
    bool is_count_of_command; /* one of these is from a command line */
    char *folder;             /* to run in, relative to the current one; NULL: that */
    char *exported;           /* "A=1,B": for the environment; B is a variable of the current one */
    bool is_export_only;      /* the task gets those and nothing else of the environment */
    char *constraint;         /* kinds of GPUs: "a100,h100" */
    char *mail_types;         /* of all options together: "BEGIN,END" */
    char *mail_user;          /* the address for mails, if the script asks for any */
    char *partition, *account, *qos; /* for its environment only */
    bool is_labelled;                /* of a step: lines begin with the number of their process */
    bool kills_on_exit;              /* of a step: a failed process ends the others */
    char *input;                     /* of a step: the file for its standard input */
    char *warnings;                  /* lines */
};

/* Slurm's options of a command line (slurm_options.h), which replace those of #SBATCH lines. */
struct slurm_command {
    bool is_slurm;     /* the command itself is Slurm's */
    bool starts_tasks; /* it is srun, which starts all processes itself */
    const struct slurm_given *options;
    size_t count;
};

struct task_description {
    struct option_value values[TASK_OPTION_MAX]; /* by enum task_option */
    char *file;   /* the name of its task file in messages; NULL: of none */
    char *script; /* the text to run: valid UTF-8 without NUL */
    struct slurm_facts slurm;
    struct option_value slurm_values[TASK_OPTION_MAX]; /* of Slurm's options, while they are read */
    struct slurm_command slurm_command; /* of the command line: set by the caller, borrowed */
    char *summary; /* content of the file that TASK_SUMMARY names; NULL: not read */
};

/* Frees what the description holds; zeroes it. */
void task_description_fini(struct task_description *description);

#endif
