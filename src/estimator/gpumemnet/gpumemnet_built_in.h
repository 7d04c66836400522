/* SPDX-License-Identifier: Apache-2.0 */
/* The networks that this program was built with: the files of data/memnet. */
#ifndef COLLOC_GPUMEMNET_GPUMEMNET_BUILT_IN_H
#define COLLOC_GPUMEMNET_GPUMEMNET_BUILT_IN_H

#include <stddef.h>

#include "estimator/gpumemnet/gpumemnet_layout.h"

struct gpumemnet_built_in {
    const char *name; /* of the file, without its ending */
    enum gpumemnet_family family;
    enum gpumemnet_method method;
    const char *text;
    size_t size;
};

/* gpumemnet_built_in_at(0), (1), ... until NULL; of one family and method the finest bin is first.
 */
const struct gpumemnet_built_in *gpumemnet_built_in_at(size_t i);

/* NULL: none of this name. */
const struct gpumemnet_built_in *gpumemnet_built_in_find(const char *name);

#endif
