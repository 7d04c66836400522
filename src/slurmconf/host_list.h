/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's lists of nodes: "gpu[01-04,09],big1". */
#ifndef COLLOC_SLURMCONF_HOST_LIST_H
#define COLLOC_SLURMCONF_HOST_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/*
 * Writes the first node of a list: "gpu01". One pair of brackets in a name is understood.
 *
 * Returns false for an empty list, or when the name does not fit.
 */
bool host_list_first(struct span list, char *name, size_t size);

enum { HOST_NAMES_MAX = 1024 }; /* chosen: more than the nodes with GPUs of a usual line */

/* Is it a list of 1 to HOST_NAMES_MAX nodes, with one pair of brackets at most in each name? */
bool host_list_is_valid(struct span list);

/*
 * Calls `on_name` for each of the first HOST_NAMES_MAX nodes of a list, until it returns another
 * value than 0.
 *
 * Returns that value, or 0.
 */
int host_list_for_each(
    struct span list, int (*on_name)(void *context, const char *name), void *context);

/* Is the node in the list? */
bool host_list_has(struct span list, const char *name);

#endif
