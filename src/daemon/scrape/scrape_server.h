/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /metrics over TCP, for Prometheus.
 *
 * Contract:
 *   1. Only the metrics are served, and only to a request that may read them: with the setting
 *      metrics-token-file, a request with the token; without it, a request from this machine, since
 *      each of its users may read the same over the Unix socket. An address that other machines
 *      reach needs a token.
 *   2. However often it is requested, the text is made at most once in SCRAPE_REUSED_MS.
 *   3. No connection is counted for a user: of too many, the oldest without a whole request gives
 *      way (api/unproven.h). No other server of the daemon shares their places.
 */
#ifndef COLLOC_DAEMON_SCRAPE_SCRAPE_SERVER_H
#define COLLOC_DAEMON_SCRAPE_SCRAPE_SERVER_H

#include <uv.h>

#include "base/fault.h"
#include "daemon/config.h"
#include "daemon/http/http.h"

enum {
    SCRAPE_REUSED_MS = 500, /* chosen: Prometheus scrapes each 15 s, at most each second */
};

struct scrape_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    const struct http *http;
};

struct scrape;

/* Creates the part, which does not listen yet. `options` is copied. Returns NULL when memory is
 * out. */
struct scrape *scrape_create(const struct scrape_options *options);

/* Checks that the settings name a token where other machines reach the metrics. Returns 0 or a
 * fault. */
int scrape_check(const struct config *config, struct fault *fault);

/* Reads the token and listens, if the setting `metrics-listen` is an address. Returns 0 or a
 * fault. */
int scrape_open(struct scrape *scrape, struct fault *fault);

/* Ends listening. NULL is fine. */
void scrape_close(struct scrape *scrape);

/* Releases the part once the loop has run after scrape_close. NULL is fine. */
void scrape_destroy(struct scrape *scrape);

#endif
