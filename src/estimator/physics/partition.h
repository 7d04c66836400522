/* SPDX-License-Identifier: Apache-2.0 */
/* Maps that are cut into parts, each of which is a sample for the layers that follow. */
#ifndef COLLOC_PHYSICS_PARTITION_H
#define COLLOC_PHYSICS_PARTITION_H

#include "estimator/physics/builder.h"

/* Called with the extent that the text shows for a layer. Returns its extent for one sample of the
 * data: where parts have become samples, that of all parts. */
struct extent partition_extent(
    struct builder *builder, const struct layer *layer, struct extent shown);

/* Returns how many parts make one sample of the data in the shape of a block; 1: it shows all. */
double partition_parts(const struct builder *builder, const struct layer *block);

#endif
