/* SPDX-License-Identifier: Apache-2.0 */
/* The trained networks that are built into the program: the files of data/memnet. */
#ifndef COLLOC_GPUMEMNET_GPUMEMNET_BUILT_IN_H
#define COLLOC_GPUMEMNET_GPUMEMNET_BUILT_IN_H

#include <stddef.h>

#include "estimator/gpumemnet/gpumemnet_layout.h"

struct gpumemnet_built_in {
    const char *name; /* of the file, without its extension */
    enum gpumemnet_family family;
    enum gpumemnet_method method;
    const char *text;
    size_t size;
};

/* Returns network number `i` (from 0), NULL after the last. Of one family and method, the network
 * with the smallest bins is first. */
const struct gpumemnet_built_in *gpumemnet_built_in_at(size_t i);

/* Returns the network of this name, or NULL. */
const struct gpumemnet_built_in *gpumemnet_built_in_find(const char *name);

#endif
