/* SPDX-License-Identifier: Apache-2.0 */
/* The estimator none: no estimate, so that policies require min_free_bytes of free memory. */
#include <stdio.h>

#include "estimator/estimator_table.h"

static int run(
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    snprintf(ret_estimate->note, sizeof ret_estimate->note, "no estimator was chosen");
    return ESTIMATE_UNKNOWN;
}

const struct estimator estimator_none = {
    "none", "no estimate; placement relies on free memory alone", run};
