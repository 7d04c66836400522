/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks of a data set by key, from layers.jsonl, a line for each:
 *
 *     {"model": KEY, "rows": [[TYPE, ACTIVATIONS, PARAMETERS, ARGUMENTS, SHAPE, IN PLACE, REUSED],
 *                             ...], ...}
 *
 * SHAPE is that of one sample, or null. Each network is printed as a torchinfo summary and parsed
 * like a user's, so that training and estimation see the same input.
 */
#ifndef COLLOC_MEMNET_NETWORKS_H
#define COLLOC_MEMNET_NETWORKS_H

#include <stddef.h>

#include "base/fault.h"
#include "model/model.h"

struct networks {
    struct named_network {
        char *key;
        struct model *model;
    } * rows; /* sorted by key */
    size_t n, capacity;
};

/* Parses layers.jsonl. Returns 0, or -errno with a fault that names the line. Ended by
 * networks_fini either way. */
int networks_parse(
    const char *text, size_t size, struct fault *fault, struct networks *ret_networks);
void networks_fini(struct networks *networks);

/* Returns the network of a key, borrowed, or NULL. */
const struct model *networks_find(const struct networks *networks, const char *key);

#endif
