/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to train on several GPUs: a table and its parser. From PyTorch's source
 * (torch/nn/parallel, torch/distributed/optim, torch/distributed/fsdp) and ZeRO (arXiv:1910.02054).
 */
#include "training/parallel.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/units.h"

const char *const parallel_names[PARALLELS] = {
    "none", "ddp", "zero1", "zero2", "fsdp", "tp", "pp", NULL};
const char *const offload_names[OFFLOADS + 1] = {"none", "optimizer", "parameters", NULL};

enum { DEGREE_MAX = 1024 }; /* chosen: as many GPUs as a task may have, and more */

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
    [PARALLEL_TP] = {NULL, {.communicates = true}},
    [PARALLEL_PP] = {NULL, {.communicates = true}},
};

/* Tests whether the text is the name, or "NAME:4" for a way that takes a number. */
static bool is_named(const char *text, const char *name, enum parallel parallel)
{
    size_t size = strlen(name);
    bool takes_number = parallel == PARALLEL_TP || parallel == PARALLEL_PP;
    if (strncasecmp(text, name, size) != 0)
        return false;
    return text[size] == '\0' || (takes_number && text[size] == ':' && parallel_degree(text) > 0);
}

enum parallel parallel_parse(const char *text)
{
    for (enum parallel p = PARALLEL_NONE; text && p < PARALLELS; p++)
        if (is_named(text, parallel_name(p), p) ||
            (table[p].alias && strcasecmp(text, table[p].alias) == 0))
            return p;
    return PARALLEL_NOT_GIVEN;
}

const char *parallel_name(enum parallel parallel)
{
    return parallel == PARALLEL_NOT_GIVEN ? "" : parallel_names[parallel - 1];
}

int parallel_degree(const char *text)
{
    int64_t n;
    const char *colon = text ? strchr(text, ':') : NULL;
    return colon && parse_int64(colon + 1, 2, DEGREE_MAX, &n) == 0 ? (int)n : 0;
}

const char *parallel_canonical(const char *text)
{
    enum parallel parallel = parallel_parse(text);
    if (parallel == PARALLEL_NOT_GIVEN)
        return NULL;
    return parallel_degree(text) ? text : parallel_name(parallel);
}

enum offload offload_parse(const char *text)
{
    int place = span_place(span_of_optional(text), offload_names, OFFLOADS);
    return place < 0 ? OFFLOAD_NONE : (enum offload)place;
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
