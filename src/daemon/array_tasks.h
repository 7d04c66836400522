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
 * Reads an array from the event log.
 *
 * ret_array: for array_tasks_fini
 *
 * Returns 0; STORE_NONE: there is no array of this id; or a fault.
 */
int array_tasks_read(
    struct store *store, uint64_t id, struct fault *fault, struct array_tasks *ret_array);

/* Releases the list of tasks. */
void array_tasks_fini(struct array_tasks *array);

/* Returns the task with this index; 0: there is none. */
uint64_t array_tasks_find(const struct core *core, struct store *store, uint64_t array, int index);

#endif
