/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a training on several GPUs divides its model.
 *
 * With FSDP a process holds 1/N of each unit's parameters, and gathers the whole unit while it
 * computes with it. A unit is a module that the user wraps: as a rule, the repeated block of a
 * transformer. So the unit is the largest block that the summary lists twice or more with as many
 * parameters; without one, the whole network, as in FSDP without a wrapping policy.
 *
 * Example: 12 layers of 7 million parameters and an embedding of 38 million, on 4 GPUs. Each
 * process holds 30.5 million, and gathers 7 million at a time.
 */
#include "estimator/physics/division.h"

#include "base/span_parts.h"
#include "estimator/physics/gpu_traits.h"
#include "training/parallel.h"

/* Returns the parameters of layer `i` and of those in it. */
static int64_t parameters_within(const struct model *model, size_t i)
{
    int64_t sum = model->layers[i].parameters;
    for (size_t k = i + 1; k < model->n_layers && model->layers[k].depth > model->layers[i].depth;
         k++)
        sum += model->layers[k].parameters;
    return sum;
}

/* Returns the parameters of the largest repeated block; of the model if there is none. */
static double unit_of(const struct model *model)
{
    int64_t largest = 0;
    size_t last[MODEL_DEPTH_MAX + 1] = {0}; /* by depth: 1 + the index of the last block there */
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        if (layer->leaf || layer->depth < 0 || layer->depth > MODEL_DEPTH_MAX)
            continue;
        size_t before = last[layer->depth];
        last[layer->depth] = i + 1;
        if (before == 0 || !span_equals(layer->type, model->layers[before - 1].type))
            continue;
        int64_t within = parameters_within(model, i);
        if (within > largest && within == parameters_within(model, before - 1))
            largest = within;
    }
    return largest > 0 ? (double)largest : (double)model->parameters;
}

int division_degree(const struct estimate_request *request)
{
    enum parallel parallel = parallel_assumed(request->parallel, request->gpus);
    if (parallel != PARALLEL_TP && parallel != PARALLEL_PP)
        return 1;
    return request->parallel_degree ? request->parallel_degree : request->gpus;
}

const char *division_conflict(const struct estimate_request *request)
{
    int gpus = request->gpus > 1 ? request->gpus : 1;
    if (request->parallel_degree > 1 && gpus % request->parallel_degree != 0)
        return "the GPUs are not a multiple of the processes of --parallel";
    if (request->offload == OFFLOAD_PARAMETERS &&
        parallel_assumed(request->parallel, request->gpus) != PARALLEL_FSDP)
        return "--offload=parameters needs --parallel=fsdp and several GPUs";
    if (request->micro_batches && parallel_assumed(request->parallel, request->gpus) != PARALLEL_PP)
        return "--micro-batches needs --parallel=pp and several GPUs";
    return NULL;
}

/* Several groups of processes that divide the model each are DistributedDataParallel's. */
static bool has_replicas(const struct estimate_request *request)
{
    int degree = division_degree(request);
    return degree > 1 && request->gpus > degree;
}

/* What one of the GPUs keeps of something: `part` of it if it is divided. */
static double kept_part(bool is_kept, bool is_divided, double part)
{
    if (!is_kept)
        return 0;
    return is_divided ? part : 1;
}

struct division division_of(const struct estimate_request *request)
{
    enum parallel parallel = parallel_assumed(request->parallel, request->gpus);
    const struct parallel_traits *traits = parallel_traits(parallel);
    double part = request->gpus > 1 ? 1.0 / request->gpus : 1;
    double unit = traits->divides_weights ? unit_of(request->model) : 0;
    bool keeps_weights = request->offload != OFFLOAD_PARAMETERS,
         keeps_states = request->offload == OFFLOAD_NONE;
    return (struct division){
        .weights = kept_part(keeps_weights, traits->divides_weights, part),
        .gradients = kept_part(keeps_weights, traits->divides_gradients, part),
        .states = kept_part(keeps_states, traits->divides_states, part),
        .unit = unit,
        .gathers_next = unit < (double)request->model->parameters,
        .buckets = traits->fills_buckets || has_replicas(request),
    };
}

int division_nccl_bytes(const struct estimate_request *request)
{
    enum parallel parallel = parallel_assumed(request->parallel, request->gpus);
    int64_t processes = request->export ? request->export->processes : 0;
    if (parallel == PARALLEL_TP || parallel == PARALLEL_PP)
        return GPU_TRAITS_NCCL_MAPS_BYTES;
    if (parallel_traits(parallel)->communicates || processes > 1)
        return GPU_TRAITS_NCCL_BYTES;
    return processes == 1 ? GPU_TRAITS_NCCL_ALONE_BYTES : 0;
}
