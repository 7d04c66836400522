/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a task and all their names: columns of `colloc queue` and `colloc history`, letters
 * (-o) and names (-O) of squeue, fields of sacct. One table has them, task_fields.c.
 */
#ifndef COLLOC_CLI_TASK_FIELDS_H
#define COLLOC_CLI_TASK_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/fault.h"
#include "cli/task_forms.h"

/* How a value is written under one of its names. */
struct task_form {
    format_value *format;  /* of the member `key` */
    write_value *write;    /* instead of `format`; may be NULL */
    const char *otherwise; /* for an unknown value; without a function: what is always written */
};

/* Of colloc. CSV has the member itself where the form has a `format`. */
struct task_column {
    const char *name; /* for --output; NULL: none */
    const char *header;
    int flags; /* enum table_flags, in the default table */
    struct task_form form;
};

/* Of squeue. */
struct queue_field {
    char letter;        /* 0: none */
    const char *header; /* NULL: no such field */
    const char *names;  /* of -O, with blanks between; NULL: none */
    struct task_form form;
};

/* Of sacct. */
struct account_field {
    const char *name; /* NULL: none */
    int width;        /* negative: flush left */
    struct task_form form;
    bool is_of_job; /* empty in the line of a step */
};

/* A value. */
struct task_field {
    const char *key;                     /* a member of the TASK object; NULL: none has it */
    bool needs_start;                    /* Slurm's programs: unknown before the task has started */
    double (*order)(const json_t *task); /* squeue -S; NULL: by the text */
    struct task_column columns[2];       /* of colloc */
    struct queue_field queue[2];         /* of squeue */
    struct account_field account[3];     /* of sacct */
};

/* A value under one of its names. */
struct task_name {
    const struct task_field *field; /* NULL: there is none of that name */
    const struct task_form *form;
    const char *name;   /* NULL: a letter */
    const char *header; /* what stands above its column */
    int width;          /* of sacct */
    int flags;          /* of colloc */
    bool needs_start, is_of_job;
};

enum { TASK_NAMES_MAX = 32 };

/* Of the option --output: all columns of the table. */
#define TASK_COLUMNS_HELP                                                                          \
    "comma-separated list of the columns to show: id, name, user, state, submitted, started, "     \
    "ended, time, wait, run, total, gpus, gpu, place, short-place, start, attempts, oom, memory, " \
    "peak, smact, steps, energy, policy, sharing, estimator, exit, reason, command"

/*
 * Finds the columns of a comma-separated list of colloc's names.
 *
 * ret_names: room for TASK_NAMES_MAX; filled in the order of the list.
 *
 * Returns how many; or -EINVAL with a fault: an unknown name (the fault lists all), or too many.
 */
int task_names_parse(
    const char *text, struct fault *fault, struct task_name ret_names[TASK_NAMES_MAX]);

/* Find a value by its letter of squeue, its name of squeue -O and of sacct, in any case. The name
 * has `size` bytes. The result has no `field`: unknown. */
struct task_name task_name_of_letter(char letter);
struct task_name task_name_of_queue(const char *name, size_t size);
struct task_name task_name_of_account(const char *name, size_t size);

/* Calls on_name for each field of sacct, in alphabetical order. */
void task_names_of_account(void (*on_name)(const char *name, void *context), void *context);

/* Writes the value; what stands for an unknown one is the form's. */
void task_name_write(const struct task_name *name, const json_t *task, FILE *out);

/* Returns it as one line: a control character, which a task's name may have, is a '?'. The caller
 * frees it. NULL: no memory. */
char *task_name_text(const struct task_name *name, const json_t *task);

#endif
