/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a TASK object (docs/protocol.md) as text for people. Unknown values show as "-". */
#ifndef COLLOC_CLI_TASK_VIEW_H
#define COLLOC_CLI_TASK_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/json_member.h"

enum { CELL_SIZE = 128 };

/* Returns a text, "yes" or "no", a number written into `cell`, or "-" for anything else. */
const char *scalar_text(const json_t *value, char cell[CELL_SIZE]);

/* Write a number into `cell` and return it: "12:34" from seconds, "9.1 GiB" from MiB, "2026-11-20
 * 16:02:11" from seconds since 1970, "83 %" from a fraction; "-" for anything but a number. */
const char *seconds_text(const json_t *seconds, char cell[CELL_SIZE]);
const char *mib_text(const json_t *mib, char cell[CELL_SIZE]);
const char *moment_text(const json_t *moment, char cell[CELL_SIZE]);
const char *joules_text(const json_t *joules, char cell[CELL_SIZE]); /* "12.3 Wh", "1.25 kWh" */
/* "0.83", "8.31", "83.1" and "831". */
const char *rate_text(const json_t *rate, char cell[CELL_SIZE]);
const char *fraction_text(const json_t *fraction, char cell[CELL_SIZE]);

/* Writes the texts and numbers of an array with commas between. Returns `cell`. */
const char *list_text(const json_t *array, char cell[CELL_SIZE]);

/* Writes the GPUs that the task has: "0,2", "-", or "no GPU" of one that needs none. Returns the
 * text. */
const char *task_gpus_text(const json_t *task, char cell[CELL_SIZE]);

/* Returns the array of the task's GPUs; those of its last attempt if it has none now; or NULL. */
const json_t *task_gpus(const json_t *task);

/* Writes a member of `attempts`: "GPU 2, 2026-11-20 16:02:11 to 2026-11-20 16:07:45: OutOfMemory".
 * Returns `text`. */
const char *attempt_text(const json_t *attempt, char *text, size_t size);

/* Returns whether the state of a TASK object is one of those in which a task stays. */
bool task_has_ended(const json_t *task);

/* Returns the name of the colour for the task's state, or NULL. */
const char *task_colour(const json_t *task);

/* Returns the task's GPUs, or why it has none, like Slurm's column NODELIST(REASON): the reason's
 * name in parentheses and, if `with_words`, its text. For the caller to free. */
char *task_place_text(const json_t *task, bool with_words);

#endif
