/* SPDX-License-Identifier: Apache-2.0 */
/* The audit trail: one line of the daemon's log for each thing that happens to a task. */
#ifndef COLLOC_DAEMON_AUDIT_H
#define COLLOC_DAEMON_AUDIT_H

#include <jansson.h>

#include "core/core.h"
#include "daemon/jobs.h"

/*
 * Writes the line of an event. Events that do not interest people have none.
 *
 * core:   has the event's task, except for SUBMIT
 * event:  is durable
 * detail: what the log has beside the event; borrowed, may be NULL
 */
void audit_event(const struct core *core, const struct jobs *jobs, const struct event *event,
    const json_t *detail);

#endif
