/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a task: what `srun` has run in its script, as docs/protocol.md shows it. They are
 * those of one attempt: the next one begins again with step 0.
 */
#ifndef COLLOC_DAEMON_STEP_LIST_H
#define COLLOC_DAEMON_STEP_LIST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Of an attempt. Chosen: 100 kB of JSON; a script that runs more is a case for an array. */
enum { STEPS_MAX = 1000, STEP_NAME_MAX = 128 };

/* Returns the detail of a STEP event that begins a step; NULL when memory is out. */
json_t *step_list_begin(int attempt, int step, const char *name, int processes);

/* Returns the detail of one that ends it. signal: 0: it ended with the exit code. */
json_t *step_list_end(int attempt, int step, int exit_code, int signal);

/*
 * Notes a STEP event. An end of a step that is not open, or not of the last attempt, is ignored.
 *
 * list:    of the event's task; a JSON array, which the first step creates; NULL before
 * time_us: of the event
 * detail:  of the event; borrowed, may be NULL
 */
void step_list_note(json_t **list, int64_t time_us, const json_t *detail);

/* The number of the attempt's next step, from 0; STEPS_MAX: it may have no more. */
int step_list_next(const json_t *list, int attempt);

/* Is there such a step that has not ended? */
bool step_list_is_open(const json_t *list, int attempt, int step);

/*
 * Returns the steps of the attempt as docs/protocol.md has them; the caller releases it. A step
 * without an end has that of the task.
 *
 * list:     NULL: none
 * task:     the TASK object: its state, ended_at, exit_code and signal
 * ahead_us: wall time less the core's time
 */
json_t *step_list_json(const json_t *list, int attempt, const json_t *task, int64_t ahead_us);

#endif
