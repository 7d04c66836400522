/* SPDX-License-Identifier: Apache-2.0 */
/* Dependencies on tasks that the core does not know any more: the event log has how they ended. */
#ifndef COLLOC_DAEMON_DEPENDENCIES_H
#define COLLOC_DAEMON_DEPENDENCIES_H

#include "daemon/driver.h"

/*
 * Removes from a submission's dependencies those that hold already.
 *
 * list, n: as dependency_parse gave them; what is left waits for tasks that have not ended
 *
 * Returns 0; -EINVAL with a fault for a task that does not exist, or that has ended so that the
 * dependency can never hold; or -errno of the log with a fault.
 */
int dependencies_resolve(const struct core *core, struct store *store, struct dependency *list,
    int *n, struct fault *fault);

/* Feeds DEPENDENCY for each open dependency of the task on tasks that have ended since it was
 * resolved, and that the core has forgotten. */
void dependencies_catch_up(
    const struct core *core, struct store *store, struct driver *driver, uint64_t id);

/* The same for all tasks, after a restart. */
void dependencies_catch_up_all(const struct core *core, struct store *store, struct driver *driver);

#endif
