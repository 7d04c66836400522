/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting tasks learn what the first run of their command took: the first task of an array of
 * hundreds ends, and the memory requirement of the others is known.
 */
#ifndef COLLOC_DAEMON_COMMAND_ESTIMATES_H
#define COLLOC_DAEMON_COMMAND_ESTIMATES_H

#include <jansson.h>

#include "core/core.h"
#include "daemon/command_history.h"
#include "daemon/driver.h"
#include "daemon/jobs.h"

enum { COMMAND_ESTIMATES_AT_ONCE = 64 }; /* chosen: a write of the log each */

/*
 * Feeds an ESTIMATE for waiting tasks of the record's user and command whose memory requirement is
 * unknown: the first COMMAND_ESTIMATES_AT_ONCE of them. The next end of such a task has the next.
 *
 * record: of a task that has ended, and that the history has taken
 */
void command_estimates_update(struct driver *driver, const struct core *core,
    const struct jobs *jobs, const struct command_history *history, const json_t *record);

#endif
