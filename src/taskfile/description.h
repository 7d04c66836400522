/* SPDX-License-Identifier: Apache-2.0 */
/* A user's description of a task, from a command line, a script or a .rad file. */
#ifndef COLLOC_TASKFILE_DESCRIPTION_H
#define COLLOC_TASKFILE_DESCRIPTION_H

#include <stddef.h>

#include "taskfile/option.h"

enum task_option {
    TASK_NAME,
    TASK_GPUS,
    TASK_POLICY,
    TASK_EXCLUSIVE,
    TASK_SHARING,
    TASK_THREADS,
    TASK_TIME,
    TASK_EXPECT,
    TASK_MEMORY,
    TASK_HOST_MEMORY,
    TASK_SMACT,
    TASK_ESTIMATOR,
    TASK_SUMMARY,
    TASK_BATCH,
    TASK_OPTIMIZER,
    TASK_PRECISION,
    TASK_SEQ,
    TASK_HOLD,
    TASK_OUTPUT,
    TASK_ERROR,
    TASK_GRACE,
    TASK_OPTIONS
};

/* The option table of script lines, command line, help, man page and completion. */
extern const struct option_spec task_options[TASK_OPTIONS];

struct task_description {
    struct option_value values[TASK_OPTIONS]; /* by enum task_option */
    char *script;                             /* the text to run: valid UTF-8 without NUL */
    char *summary; /* content of the file that TASK_SUMMARY names; NULL: not read */
};

/* Frees what the description holds; zeroes it. */
void task_description_fini(struct task_description *description);

#endif
