/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of the values of Slurm's options that have another form than colloc's; for
 * slurm_options.c. Each is a slurm_read. */
#ifndef COLLOC_TASKFILE_SLURM_VALUES_H
#define COLLOC_TASKFILE_SLURM_VALUES_H

#include "taskfile/slurm_context.h"

/* Adds "--name is ignored: words" to the warnings. */
void slurm_warn(struct slurm_context *context, const char *name, const char *words);

/* Returns -ENOTSUP with the fault "--name=value: words". */
int slurm_refuse(
    struct slurm_context *context, const char *name, const char *value, const char *words);

/* Sets an option of the task from text as colloc writes it. Returns 0, or -errno with a fault. */
int slurm_set(struct slurm_context *context, int option, const char *name, const char *value);

slurm_read slurm_read_flag;         /* hold, exclusive, requeue, no-requeue, label ... */
slurm_read slurm_read_gpus;         /* "2", "a100:2", "a100" */
slurm_read slurm_read_gres;         /* "gpu", "gpu:2", "gpu:a100:2" */
slurm_read slurm_read_constraint;   /* "a100", "a100|h100" */
slurm_read slurm_read_nodes;        /* "1", "1-1", "1-4" */
slurm_read slurm_read_count;        /* ntasks, cpus-per-task ... */
slurm_read slurm_read_time;         /* also UNLIMITED, INFINITE, 0, -1 */
slurm_read slurm_read_memory;       /* "32G", "32GB": both 2^30; 0: all of the node */
slurm_read slurm_read_nice;         /* "", "100", "-5" */
slurm_read slurm_read_priority;     /* a number, or a class of colloc */
slurm_read slurm_read_dependency;   /* "afterok:12:13,afterany:7" */
slurm_read slurm_read_signal;       /* "B:USR1@120" */
slurm_read slurm_read_export;       /* "ALL", "NONE", "ALL,A=1", "A,B=2" */
slurm_read slurm_read_output;       /* a path with %j and the like */
slurm_read slurm_read_mail_type;    /* "END,FAIL"; several options add up */
slurm_read slurm_read_text;         /* chdir, mail-user, partition, account, qos */
slurm_read slurm_read_input;        /* of a step: a file; of a job: /dev/null only */
slurm_read slurm_read_kill_on_exit; /* "", "1", "0" */
slurm_read slurm_read_job;          /* of srun in a task: the task's own id */

#endif
