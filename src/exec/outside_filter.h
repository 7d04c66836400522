/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps persons from the GPUs outside of tasks: a device program (device_filter.h) for each cgroup
 * beside colloc's.
 *
 * Contract:
 *   1. Nothing outlives the process: when it ends, in whatever way, all GPUs are open as before.
 *   2. Tasks, collocd and what it starts are not filtered.
 */
#ifndef COLLOC_EXEC_OUTSIDE_FILTER_H
#define COLLOC_EXEC_OUTSIDE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"
#include "exec/device_filter.h"

struct outside_filter;

/*
 * Creates it, and filters the cgroups that exist.
 *
 * home:  of the attempts' cgroups, as cgroup_open_home writes it
 * users: may open GPUs everywhere; copied
 *
 * Returns NULL with a fault: the kernel takes no such program.
 */
struct outside_filter *outside_filter_create(
    const char *home, const struct allowed_users *users, struct fault *fault);

/* Filters cgroups that have been made since, and forgets those that are gone. Returns how many are
 * filtered, or -errno with a fault. */
int outside_filter_review(struct outside_filter *filter, struct fault *fault);

/* Opens the GPUs again. NULL is fine. */
void outside_filter_destroy(struct outside_filter *filter);

/*
 * Tries whether this process may filter cgroups, on one that is made below its own and removed.
 *
 * Returns 0, or -errno with the reason in the fault.
 */
int outside_filter_try(struct fault *fault);

/*
 * Is a cgroup on the way to colloc's? Pure.
 *
 * path:      absolute
 * home, own: of the attempts' cgroups and of this process, absolute
 *
 * Returns true when it is one of these two or above one of them.
 */
bool outside_filter_is_own(const char *path, const char *home, const char *own);

#endif
