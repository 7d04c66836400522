/* SPDX-License-Identifier: Apache-2.0 */
/* Forgets ended tasks after the time that the setting `history` gives. */
#ifndef COLLOC_DAEMON_RETENTION_H
#define COLLOC_DAEMON_RETENTION_H

#include <uv.h>

#include "daemon/config.h"
#include "daemon/driver.h"
#include "daemon/jobs.h"
#include "store/store.h"

/* Borrowed; all outlive the part. */
struct retention_options {
    uv_loop_t *loop;
    const struct config *config;
    const struct core *core;
    const struct jobs *jobs;
    struct store *store;
    const struct driver *driver; /* nothing is forgotten while it cannot write the log */
};

struct retention;

/* Creates the part, which begins a second later. `options` is copied. Returns NULL when memory is
 * out. */
struct retention *retention_create(const struct retention_options *options);

/* Ends it. NULL is fine. */
void retention_close(struct retention *retention);

/* Releases the part once the loop has run after retention_close. NULL is fine. */
void retention_destroy(struct retention *retention);

#endif
