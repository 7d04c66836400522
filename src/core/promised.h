/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks are promised a speed, and how far reports of measured speeds count. */
#ifndef COLLOC_CORE_PROMISED_H
#define COLLOC_CORE_PROMISED_H

#include <stdbool.h>

#include "base/clock.h"
#include "core/task.h"

/* Chosen. The driver reports each five seconds, over the steps of these. */
#define PROMISE_REPORT_VALID_US (60 * SECOND_US)

/* Chosen: speeds of windows of five seconds differ by less. */
#define PROMISE_TOLERANCE 1.02

/* Was it promised at most so much more time than alone? Services have targets instead. */
static inline bool core_has_promise(const struct task *task)
{
    return task->request.slowdown_max.valid && !task->request.service.is_service;
}

#endif
