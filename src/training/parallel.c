/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to train on several GPUs: a table and its parser. From PyTorch's source
 * (torch/nn/parallel, torch/distributed/optim, torch/distributed/fsdp) and ZeRO (arXiv:1910.02054).
 */
#include "training/parallel.h"

#include <stddef.h>
#include <strings.h>

const char *const parallel_names[PARALLELS] = {"none", "ddp", "zero1", "zero2", "fsdp", NULL};

static const struct {
    const char *alias;
    struct parallel_traits traits;
} table[PARALLELS] = {
    [PARALLEL_DDP] = {NULL, {.communicates = true, .fills_buckets = true}},
    [PARALLEL_ZERO1] = {NULL,
        {.communicates = true, .fills_buckets = true, .divides_states = true}},
    [PARALLEL_ZERO2] = {NULL,
        {.communicates = true, .divides_states = true, .divides_gradients = true}},
    [PARALLEL_FSDP] = {"zero3", {.communicates = true,
                                    .divides_states = true,
                                    .divides_gradients = true,
                                    .divides_weights = true}},
};

enum parallel parallel_parse(const char *text)
{
    for (enum parallel p = PARALLEL_NONE; text && p < PARALLELS; p++)
        if (strcasecmp(text, parallel_name(p)) == 0 ||
            (table[p].alias && strcasecmp(text, table[p].alias) == 0))
            return p;
    return PARALLEL_NOT_GIVEN;
}

const char *parallel_name(enum parallel parallel)
{
    return parallel == PARALLEL_NOT_GIVEN ? "" : parallel_names[parallel - 1];
}

const char *parallel_canonical(const char *text)
{
    enum parallel parallel = parallel_parse(text);
    return parallel == PARALLEL_NOT_GIVEN ? NULL : parallel_name(parallel);
}

enum parallel parallel_assumed(enum parallel parallel, int gpus)
{
    if (gpus <= 1)
        return PARALLEL_NONE;
    return parallel == PARALLEL_NOT_GIVEN ? PARALLEL_DDP : parallel;
}

const struct parallel_traits *parallel_traits(enum parallel parallel)
{
    return &table[parallel].traits;
}
