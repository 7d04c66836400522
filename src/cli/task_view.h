/* SPDX-License-Identifier: Apache-2.0 */
/* A TASK object of docs/protocol.md as people read it. Values that are not known show as "-". */
#ifndef COLLOC_CLI_TASK_VIEW_H
#define COLLOC_CLI_TASK_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { CELL_SIZE = 128 };

/* A member as text; `otherwise` when it is missing or null. */
const char *member_text(const json_t *object, const char *key, const char *otherwise);

/* A number, or `otherwise`. */
double member_number(const json_t *object, const char *key, double otherwise);

/* "12:34" from seconds, "9.1 GiB" from MiB, "2026-11-20 16:02:11" from a moment, "83 %" from a
 * fraction; or "-". */
const char *seconds_text(const json_t *seconds, char cell[CELL_SIZE]);
const char *mib_text(const json_t *mib, char cell[CELL_SIZE]);
const char *moment_text(const json_t *moment, char cell[CELL_SIZE]);
const char *joules_text(const json_t *joules, char cell[CELL_SIZE]); /* "12.3 Wh", "1.25 kWh" */
const char *fraction_text(const json_t *fraction, char cell[CELL_SIZE]);

/* Members of an array of text or numbers with commas between. */
const char *list_text(const json_t *array, char cell[CELL_SIZE]);

/* The array of its GPUs; of a task that has none now, those of its last attempt. May be NULL. */
const json_t *task_gpus(const json_t *task);

bool task_has_ended(const json_t *task);

/* Name of the colour its state is shown in, or NULL. */
const char *task_colour(const json_t *task);

/* Its GPUs, or why it has none, in Slurm's NODELIST(REASON) manner: one word in brackets and, if
 * `with_words`, the rest of the reason. The caller frees. */
char *task_place_text(const json_t *task, bool with_words);

#endif
