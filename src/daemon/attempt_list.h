/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of a task's attempts as docs/protocol.md shows it: where each ran, from when to when,
 * how it was interrupted, and how it ended.
 */
#ifndef COLLOC_DAEMON_ATTEMPT_LIST_H
#define COLLOC_DAEMON_ATTEMPT_LIST_H

#include <jansson.h>

#include "core/core.h"

/* Interruptions that an attempt's list holds, the last ones. Chosen: 30 KiB of JSON. */
enum { ATTEMPT_INTERRUPTIONS_MAX = 200 };

/*
 * Notes the beginning or end of an attempt, or of an interruption of it. Events of other kinds are
 * ignored.
 *
 * list: of the event's task; a JSON array, which the first attempt creates; NULL before
 * core: has applied the event
 */
void attempt_list_note(json_t **list, const struct core *core, const struct event *event);

/*
 * Returns a copy of the list, which the caller releases; an empty one for NULL.
 *
 * ahead_us: wall time less the core's time: the list has the core's times, people are shown wall
 *           time
 */
json_t *attempt_list_copy(const json_t *list, int64_t ahead_us);

/* Gives a task's record that an older daemon stored, where `attempts` is a number, the keys of
 * today: `attempt_count`, and an empty list. */
void attempt_list_upgrade(json_t *record);

/* Returns "None", "OutOfMemory", ...: the reason of an end, as docs/protocol.md has them. */
const char *attempt_end_reason(enum failure_class failure);

#endif
