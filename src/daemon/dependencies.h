/* SPDX-License-Identifier: Apache-2.0 */
/* Dependencies of a submission, and those on tasks that the core does not know any more: the event
 * log has how they ended. */
#ifndef COLLOC_DAEMON_DEPENDENCIES_H
#define COLLOC_DAEMON_DEPENDENCIES_H

#include "daemon/driver.h"

/*
 * Finds the tasks that a submission's dependencies name, and leaves out what holds already.
 *
 * terms, n_terms: as dependency_parse gave them
 * array:          the tasks of the submission, for "each"
 * ret_list:       of DEPENDENCIES_MAX: what waits for tasks that have not ended
 *
 * Returns 0; -EINVAL with a fault for a task that does not exist, or that has ended so that the
 * dependency can never hold; or -errno of the log with a fault.
 */
int dependencies_resolve(const struct core *core, struct store *store,
    const struct dependency_term *terms, int n_terms, const struct array_element *array,
    int n_array, struct dependency *ret_list, int *ret_n, struct fault *fault);

/* Feeds DEPENDENCY for each open dependency of the tasks from `first` to `last` on tasks that have
 * ended since it was resolved, and that the core has forgotten. */
void dependencies_catch_up(const struct core *core, struct store *store, struct driver *driver,
    uint64_t first, uint64_t last);

#endif
