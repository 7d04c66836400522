/* SPDX-License-Identifier: Apache-2.0 */
/* A task's metrics over time as lines of text. */
#ifndef COLLOC_CLI_TASK_PLOT_H
#define COLLOC_CLI_TASK_PLOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Prints the answer of GET /v1/tasks/ID/series.
 *
 * width:  of the terminal, in columns; 0: of 80
 * blocks: block characters can be shown
 * out:    where to
 */
void task_plot_print(const json_t *answer, int width, bool blocks, FILE *out);

#endif
