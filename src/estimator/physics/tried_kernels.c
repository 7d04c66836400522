/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch tries kernels once for each question that cuDNN could be asked: the same pass over maps
 * of the same sizes, wherever in the network. After each try it empties the cache of its allocator
 * (Conv_v8.cpp), so that the first iteration takes fresh segments where it would have taken cached
 * ones: the memory of a training is another one then, also without the workspaces of the tries.
 */
#include "estimator/physics/tried_kernels.h"

#include <errno.h>
#include <stdlib.h>

#include "model/export_question.h"

static int mark_first(const struct export *export, int64_t batch, bool *tries)
{
    struct kernel_answers seen = {0};
    int r = 0;
    for (size_t i = 0; i < export->n_convs && r == 0; i++) {
        struct conv_question question;
        int64_t bytes;
        if (export_question(export, &export->convs[i], batch, &question) != KERNEL_OF_CUDNN ||
            kernel_answers_find(&seen, &question, &bytes))
            continue;
        tries[i] = true;
        r = kernel_answers_put(&seen, &question, 0);
    }
    kernel_answers_clear(&seen);
    return r;
}

int tried_kernels_find(
    const struct estimate_request *request, struct fault *fault, bool **ret_tries)
{
    const struct export *export = request->export;
    *ret_tries = NULL;
    if (!export->tries_kernels || export->n_convs == 0)
        return 0;
    bool *tries = calloc(export->n_convs, sizeof *tries);
    int r = tries ? mark_first(export, estimate_batch(request).value, tries) : -ENOMEM;
    if (r == 0)
        *ret_tries = tries;
    else
        free(tries);
    return r < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
}
