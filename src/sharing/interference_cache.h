/* SPDX-License-Identifier: Apache-2.0 */
/* The interference model with a cache, for callers that solve the same mixes again and again: a
 * scheduler does so for each waiting task and the residents of each GPU. */
#ifndef COLLOC_SHARING_INTERFERENCE_CACHE_H
#define COLLOC_SHARING_INTERFERENCE_CACHE_H

#include "sharing/interference.h"

/*
 * The speeds that interference_solve gives with these constants on a whole GPU, bit for bit. May be
 * called from several threads.
 *
 * sharers, n: all but `speed` and `customer` set, which the call may set
 * ret_speeds: a speed for each
 */
void interference_speeds_cached(const struct interference_constants *constants,
    struct sharer *sharers, int n, double *ret_speeds);

#endif
