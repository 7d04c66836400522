/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks of a data set by their keys, from layers.jsonl: a line for each,
 *
 *     {"model": KEY, "rows": [[TYPE, ACTIVATIONS, PARAMETERS, ARGUMENTS, SHAPE, IN PLACE, REUSED],
 * ...], ...}
 *
 * with the shape of one sample, or null. Each becomes the summary that a user would hand in and is
 * read as such, so that training sees what estimating sees.
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
    size_t n;
};

/* 0, or a fault that names the line. Ended by networks_fini either way. */
int networks_parse(
    const char *text, size_t size, struct fault *fault, struct networks *ret_networks);
void networks_fini(struct networks *networks);

/* NULL: not there. */
const struct model *networks_find(const struct networks *networks, const char *key);

#endif
