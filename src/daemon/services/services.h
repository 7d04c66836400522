/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast services answer: those with a port are probed by HTTP, and their latency is reported to
 * the core once a second (EVENT_LATENCY). Services without a port report their latency by POST
 * /v1/tasks/ID/latency.
 *
 * Contract:
 * 1. No request blocks the loop, and there is at most one at a time for each service.
 * 2. Until a service has answered once in an attempt, its latency is unknown. After that a request
 *    that fails or gets no answer in time counts as SERVICES_TIMEOUT_US.
 */
#ifndef COLLOC_DAEMON_SERVICES_SERVICES_H
#define COLLOC_DAEMON_SERVICES_SERVICES_H

#include <uv.h>

#include "daemon/driver.h"
#include "daemon/jobs.h"

/* Chosen: longer than any target that a user would call interactive. */
#define SERVICES_TIMEOUT_US INT64_C(10000000)

struct services_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    struct core *core;
    struct jobs *jobs;
    struct driver *driver;
};

struct services;

/* Creates the part, which probes at once. `options` is copied. Returns NULL when memory is out. */
struct services *services_create(const struct services_options *options);

/* Ends all requests. NULL is fine. */
void services_close(struct services *services);

/* Releases the part once the loop has run after services_close. NULL is fine. */
void services_destroy(struct services *services);

#endif
