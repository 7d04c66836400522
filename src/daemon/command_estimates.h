/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting tasks learn what the first run of their command takes: the first task of an array of
 * hundreds has made its second step, and the memory requirement of the others is known; it has made
 * steps for some samples, and so is their SM activity. Its end says both once more.
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
 * unknown, or estimated lower: the first COMMAND_ESTIMATES_AT_ONCE of them. The next end of such a
 * task has the next.
 *
 * record: of a task that has ended, and that the history has taken
 */
void command_estimates_update(struct driver *driver, const struct core *core,
    const struct jobs *jobs, const struct command_history *history, const json_t *record);

/*
 * Takes the peaks of running trainings that have made their second step (docs/steps.md), and the
 * activity of those that share their GPUs only with trainings of the same command; feeds the same
 * for tasks of their commands. To be called after each poll of the GPUs.
 */
void command_estimates_note_steps(struct driver *driver, const struct core *core,
    const struct jobs *jobs, struct command_history *history);

#endif
