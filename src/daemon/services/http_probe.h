/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GET request to a port of this machine, timed: from the connection to the end of the reply.
 * It runs in the loop and waits for nothing.
 */
#ifndef COLLOC_DAEMON_SERVICES_HTTP_PROBE_H
#define COLLOC_DAEMON_SERVICES_HTTP_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct http_probe;

/* The request has ended: `has_answered` with a status of 2xx, after this many microseconds. Not
 * called for a stopped probe. */
typedef void http_probe_done(void *context, bool has_answered, int64_t took_us);

/*
 * Sends GET `path` to 127.0.0.1:`port`.
 *
 * path: begins with '/', of printable ASCII without blanks
 *
 * Returns the probe, which ends with the call of `done` or by http_probe_stop; NULL when memory or
 * descriptors are out.
 */
struct http_probe *http_probe_start(
    uv_loop_t *loop, int port, const char *path, http_probe_done *done, void *context);

/* Gives the request up: `done` is not called any more. NULL is fine. */
void http_probe_stop(struct http_probe *probe);

#endif
