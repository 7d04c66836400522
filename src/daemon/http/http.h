/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API of docs/protocol.md: the server in the loop, submissions, lists, JSON and metrics.
 *
 * Contract:
 * 1. Each request is answered once.
 * 2. A submission that was answered with an id survives a power cut.
 * 3. No request keeps the loop longer than some 20 ms: reading of submissions and lists of tasks
 *    are done in slices, a user's files are read by helper processes.
 */
#ifndef COLLOC_DAEMON_HTTP_HTTP_H
#define COLLOC_DAEMON_HTTP_HTTP_H

#include "daemon/http/http_options.h"

struct http;

/* Creates the part, which does not listen yet. `options` is copied. Returns NULL when memory is
 * out. */
struct http *http_create(const struct http_options *options);

/* Returns the routes of docs/protocol.md, for another server; their context is the part. */
const struct api_route *http_get_routes(void);

/* Listens on the configured socket. Returns 0 or a fault. */
int http_open(struct http *http, struct fault *fault);

/* Makes the submissions so far durable, and refuses further ones. NULL is fine. */
void http_finish_submissions(struct http *http);

/* Answers all requests and stops listening. NULL is fine. */
void http_close(struct http *http);

/* Releases the part once the loop has run after http_close. NULL is fine. */
void http_destroy(struct http *http);

#endif
