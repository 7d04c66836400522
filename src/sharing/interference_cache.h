/* SPDX-License-Identifier: Apache-2.0 */
/* The interference model with a cache, for callers that solve the same mixes again and again: a
 * scheduler does so for each waiting task and the residents of each GPU. */
#ifndef COLLOC_SHARING_INTERFERENCE_CACHE_H
#define COLLOC_SHARING_INTERFERENCE_CACHE_H

#include "sharing/interference.h"

/*
 * Does what interference_solve does with these constants on a whole GPU, and gives the same speeds
 * bit for bit. `customer` of the sharers is not set. May be called from several threads.
 */
void interference_solve_cached(
    const struct interference_constants *constants, struct sharer *sharers, int n);

#endif
