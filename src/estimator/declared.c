/* SPDX-License-Identifier: Apache-2.0 */
/* The estimator declared: the memory that the user declared. */
#include <stdio.h>

#include "base/units.h"
#include "estimator/estimator_table.h"

/* Less is probably a wrong unit. Chosen: a CUDA context with PyTorch's kernels takes 376 MiB on an
 * A100 and 614 MiB on an H200 (gpu_traits.c); a small program may take less. */
static const int64_t context_least_bytes = 300 * MIB;

static int run(
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    if (request->declared_bytes == 0) {
        snprintf(ret_estimate->note, sizeof ret_estimate->note, "the task declares no memory");
        return ESTIMATE_UNKNOWN;
    }
    ret_estimate->bytes = reading_of((double)request->declared_bytes);
    if (request->declared_bytes < context_least_bytes)
        estimate_note(ret_estimate, 0,
            "%lld MiB of GPU memory is less than a CUDA context takes: is the unit right?",
            (long long)(request->declared_bytes / MIB));
    return 0;
}

const struct estimator estimator_declared = {"declared", "what the task itself declares", run};
