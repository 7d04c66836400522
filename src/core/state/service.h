/* SPDX-License-Identifier: Apache-2.0 */
/* The state of services: their latency, and which tasks may be beside them. */
#ifndef COLLOC_CORE_STATE_SERVICE_H
#define COLLOC_CORE_STATE_SERVICE_H

#include "base/clock.h"
#include "core/state/state.h"

/* Chosen: a report that is older says nothing. The driver reports once a second. */
#define CORE_REPORT_VALID_US (30 * SECOND_US)

int core_apply_restart(struct core *core, struct task *task, const struct event *event);

/* A new attempt: nothing has been reported of it. */
void core_begin_service(struct task *task);

/* Is it a service with a latency target? */
bool core_has_latency_target(const struct task *task);

/* May a task come beside the service? */
bool core_is_service_open(const struct core *core, const struct task *task, int64_t now_us);

/* What its residence shows of a service. */
struct resident_service core_resident_service(
    const struct core *core, const struct task *task, int64_t now_us);

/* Applies a LATENCY or RESTART. Returns 0 or CORE_NOT_NOW. */
int core_apply_latency(struct core *core, struct task *task, const struct event *event);

/* The task has come to the GPU, or computes there again; or it gives way there. */
void core_note_joined(struct core *core, const struct task *task, int gpu, int64_t now_us);

void core_note_gave_way(struct core *core, const struct task *task, int64_t now_us);

/* Does the task not compute because a service missed its target? */
bool core_waits_for_service(const struct task *task);

#endif
