/* SPDX-License-Identifier: Apache-2.0 */
/* The networks that colloc trains: family, method and bin width, as in tables 5.3, 5.5 and 5.7 of
 * the thesis. */
#ifndef COLLOC_MEMNET_NET_PLAN_H
#define COLLOC_MEMNET_NET_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "estimator/gpumemnet/gpumemnet_layout.h"

struct net_plan {
    const char *name; /* of the file, without its ending */
    enum gpumemnet_family family;
    enum gpumemnet_method method;
    int64_t bin_mib;
};

/* Returns plan number i, or NULL after the last. */
const struct net_plan *net_plan_at(size_t i);

#endif
