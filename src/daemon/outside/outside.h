/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that use GPUs outside of tasks, by the setting outside (docs/outside.md).
 *
 * Contract:
 *   1. The setting, and the lists that belong to it, take effect when they change.
 *   2. However the daemon ends, no user stays locked out (exec/outside_filter.h).
 */
#ifndef COLLOC_DAEMON_OUTSIDE_OUTSIDE_H
#define COLLOC_DAEMON_OUTSIDE_OUTSIDE_H

#include "daemon/outside/outside_options.h"

struct outside;

/* `options` is copied. Returns NULL when memory is out. */
struct outside *outside_create(const struct outside_options *options);

/* The GPUs have been polled: their external processes are reviewed. */
void outside_polled(struct outside *outside);

/* For `collocd --check`: warns of names that no user has, and tries whether limit works. */
void outside_check(const struct config *config);

/* Opens the GPUs again, and releases the part. NULL is fine. */
void outside_destroy(struct outside *outside);

#endif
