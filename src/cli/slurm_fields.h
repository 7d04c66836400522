/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of tasks as squeue, sacct and scontrol print them. task_fields.h has what they name. */
#ifndef COLLOC_CLI_SLURM_FIELDS_H
#define COLLOC_CLI_SLURM_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* How the fields of a line are separated. */
struct slurm_layout {
    const char *between; /* of the fields of sacct: "|"; NULL: columns of a table */
    bool ends_so;        /* also behind the last one, as --parsable does */
};

/*
 * Prints a line of squeue by its format, "%.18i %T".
 *
 * task: NULL: the line of headers
 *
 * Returns 0, or -EINVAL for a letter that is no field, having printed nothing.
 */
int slurm_print_queue_line(const char *format, const json_t *task, FILE *out);

/*
 * The same by a list of names, "JobID:10,State:.20", as squeue's -O has it: 20 columns where no
 * width is given.
 *
 * ret_unknown: after -EINVAL the field that is none
 */
int slurm_print_named_line(const char *fields, const json_t *task, FILE *out, char ret_unknown[64]);

/*
 * Orders two tasks by squeue's -S: "t,-V". An earlier letter counts first; '-' reverses it.
 *
 * Returns less than, equal to or more than 0.
 */
int slurm_compare(const char *keys, const json_t *a, const json_t *b);

/* Are these keys of -S? */
bool slurm_sort_is_known(const char *keys);

/*
 * Prints a line of sacct by its list of fields, "JobID%20,State".
 *
 * task: NULL: the line of headers; with a STEP_MEMBER the line of that step, whose id is 12.batch
 *
 * Returns 0, or -EINVAL for an unknown field, which `ret_unknown` then has.
 */
int slurm_print_account_line(const char *fields, const struct slurm_layout *layout,
    const json_t *task, FILE *out, char ret_unknown[64]);

/* Prints all names of sacct's fields, as `sacct --helpformat`. */
void slurm_print_account_fields(FILE *out);

/* Prints a job as `scontrol show job` does; `is_one_line`: with -o. */
void slurm_print_job(const json_t *task, bool is_one_line, FILE *out);

#endif
