/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks as a table for people, and as CSV. */
#ifndef COLLOC_CLI_TASK_TABLE_H
#define COLLOC_CLI_TASK_TABLE_H

#include "cli/task_fields.h"

/*
 * Finds the columns of a table. Those that the user chose are shown whatever the width of the
 * terminal.
 *
 * chosen: of --output; NULL: `usual`
 *
 * Returns as task_names_parse.
 */
int task_table_columns(const char *chosen, const char *usual, struct fault *fault,
    struct task_name ret_names[TASK_NAMES_MAX]);

/*
 * Prints a table of tasks to stdout, a column for each name.
 *
 * names: `count` of them, TASK_NAMES_MAX at most; their flags are those of the columns
 * none:  printed if there is no task
 */
void task_table_print(
    const struct task_name *names, int count, const json_t *tasks, const char *none);

/* Prints a line of names, then a line for each task of the array. Units are those of the JSON: MiB,
 * seconds (since 1970), joules. An unknown value is an empty cell. */
void task_table_print_csv(const struct task_name *names, int count, const json_t *tasks);

#endif
