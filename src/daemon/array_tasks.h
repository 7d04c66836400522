/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of an array by their index, also those that have ended. */
#ifndef COLLOC_DAEMON_ARRAY_TASKS_H
#define COLLOC_DAEMON_ARRAY_TASKS_H

#include "core/core.h"
#include "store/store.h"

/* An array as it was submitted. */
struct array_tasks {
    uint64_t id;
    uint32_t uid;
    int limit, n;
    struct array_element *elements; /* by rising id */
    json_t *detail;
};

/*
 * Reads an array from the event log. What was submitted does not change: a request that names many
 * tasks of an array reads it once.
 *
 * array: {0}, or one that was read before, which is not read again if it has this id; for
 *        array_tasks_fini
 *
 * Returns 0; STORE_NONE: there is no array of this id; or a fault. Unless it is 0, `array` stays
 * as it was.
 */
int array_tasks_read(
    struct store *store, uint64_t id, struct fault *fault, struct array_tasks *array);

/* Releases the list of tasks. */
void array_tasks_fini(struct array_tasks *array);

/*
 * Finds a task by its index. The log is read only for tasks that have ended.
 *
 * id:    of the array
 * array: as of array_tasks_read
 *
 * Returns the task; 0: there is none.
 */
uint64_t array_tasks_find(const struct core *core, struct store *store, uint64_t id, int index,
    struct array_tasks *array);

#endif
