/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a task that `colloc history` can show, in tables and as CSV. */
#ifndef COLLOC_CLI_TASK_FIELDS_H
#define COLLOC_CLI_TASK_FIELDS_H

#include <jansson.h>
#include <stdio.h>

#include "base/fault.h"
#include "cli/task_view.h"

struct task_field {
    const char *name;   /* for --output */
    const char *header; /* of the table's column */
    int flags;          /* enum table_flags, in the default table */
    const char *key;    /* of the TASK object: CSV has its value; NULL: CSV has the table's text */
    const char *(*format)(const json_t *value, char cell[CELL_SIZE]);
    void (*write)(const json_t *task, FILE *out); /* instead of `format`; may be NULL */
};

enum { TASK_FIELDS_MAX = 32 };

/*
 * Finds the fields of a comma-separated list of names.
 *
 * ret_fields: room for TASK_FIELDS_MAX; filled in the order of the list.
 *
 * Returns how many; or -EINVAL with a fault: an unknown name (the fault lists all), or too many.
 */
int task_fields_parse(
    const char *text, struct fault *fault, const struct task_field *ret_fields[TASK_FIELDS_MAX]);

/* Prints the field as a table shows it; "-": unknown. */
void task_field_write(const struct task_field *field, const json_t *task, FILE *out);

/* Prints a line of names, then a line for each task of the array. Units are those of the JSON: MiB,
 * seconds (since 1970), joules. An unknown value is an empty cell. */
void task_fields_print_csv(const struct task_field *const *fields, int count, const json_t *tasks);

#endif
