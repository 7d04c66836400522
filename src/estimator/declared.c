/* The user's word. */
#include <stdio.h>

#include "estimator/table.h"

static int run(
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    if (request->declared_bytes == 0) {
        snprintf(ret_estimate->note, sizeof ret_estimate->note, "the task declares no memory");
        return ESTIMATE_UNKNOWN;
    }
    ret_estimate->bytes = reading_of((double)request->declared_bytes);
    return 0;
}

const struct estimator estimator_declared = {"declared", "what the task itself declares", run};
