/* SPDX-License-Identifier: Apache-2.0 */
/* The networks that there are: which set, method and bin, as in the thesis's tables 5.3, 5.5
 * and 5.7. */
#ifndef COLLOC_MEMNET_PLAN_H
#define COLLOC_MEMNET_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "estimator/gpumemnet/gpumemnet_layout.h"

struct net_plan {
    const char *name; /* of the file, without its ending */
    enum gpumemnet_family family;
    enum gpumemnet_method method;
    int64_t bin_mib;
    double accuracy, precision, recall, f1; /* published */
};

/* net_plan_at(0), (1), ... until NULL. */
const struct net_plan *net_plan_at(size_t i);

#endif
