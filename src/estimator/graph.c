/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The estimator graph: the layers become a training step (tape.h), the step is replayed through the
 * rules of PyTorch's caching allocator (allocator_replay.h), and the CUDA context of the kind of
 * GPU is added. If the user has run the same network before, that replaces or raises the estimate.
 * Other users' runs of it only raise the estimate, at most to its P99.
 *
 * Where a text says that some weights are not trained, but not which, the estimate is for a
 * training of all, and a note has the other figure and asks.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "estimator/estimator_table.h"
#include "estimator/loading.h"
#include "estimator/physics/gradient_exchange.h"
#include "estimator/physics/physics.h"
#include "estimator/physics/quantile.h"
#include "estimator/physics/residual.h"
#include "model/trained_sums.h"

/* Of a step: each product of a forward pass has two in the backward pass, for the gradients of its
 * input and of its weight. */
#define BACKWARD_SHARE (2.0 / 3)

#define NOTED_SHARE 0.01 /* of a step; chosen: a shorter wait changes no decision */

/* Uses the user's own runs, which are more exact than the layers. Returns whether they say how much
 * the task takes. */
static bool apply_own_runs(const struct estimate_request *request, struct estimate *estimate)
{
    struct estimate past = {.estimator = estimate->estimator};
    bool is_known = history_estimate(request, PAST_RUNS_OWN, &past) == 0;
    double at_least = history_at_least(request, PAST_RUNS_OWN);
    if (!is_known && at_least > estimate->bytes.value) {
        estimate->bytes = reading_of(at_least);
        estimate_note(estimate, 0, "raised to what a run had when it ran out of memory");
    }
    if (!is_known)
        return false;
    if (estimate->evidence == EVIDENCE_KERNELS && past.evidence != EVIDENCE_SAME_RUN)
        return true; /* exact layers and kernels are nearer than a run at another batch */
    if (request->export &&
        (past.evidence == EVIDENCE_ONE_RUN || past.evidence == EVIDENCE_OTHER_RUNS))
        return true; /* so are exact layers, though less: docs/measured/estimators.md */
    estimate->bytes = past.bytes;
    estimate->evidence = past.evidence;
    if (*past.note)
        estimate_note(estimate, 0, "%s", past.note);
    return true;
}

static void raise_to(struct reading *reading, double bytes)
{
    reading->value = fmax(reading->value, bytes);
}

/* Raises the estimate, P50 and P90 to what other users' runs took, at most to P99. Their users may
 * have run something else under the network's name. */
static void apply_runs_of_others(const struct estimate_request *request, struct estimate *estimate)
{
    struct estimate past = {.estimator = estimate->estimator};
    double bytes = history_at_least(request, PAST_RUNS_OF_OTHERS);
    if (history_estimate(request, PAST_RUNS_OF_OTHERS, &past) == 0)
        bytes = fmax(bytes, past.bytes.value);
    if (!estimate->p99_bytes.valid || bytes <= estimate->bytes.value)
        return;
    bytes = fmin(bytes, estimate->p99_bytes.value);
    raise_to(&estimate->bytes, bytes);
    raise_to(&estimate->p50_bytes, bytes);
    raise_to(&estimate->p90_bytes, bytes);
    estimate_note(estimate, 0, "raised to what another user's run took, at most to P99");
}

static double process_bytes(const struct physics *physics)
{
    return physics->context_bytes + physics->footprint.reserved * residual_factor(physics);
}

/* The estimate if only the last layers are trained. */
static int estimate_last_layers(
    const struct estimate_request *request, struct fault *fault, double *ret_bytes)
{
    struct model model = *request->model;
    struct estimate_request changed = *request;
    struct estimate unused = {.estimator = "graph"};
    struct physics physics;
    model.layers = malloc(model.n_layers * sizeof *model.layers);
    if (!model.layers)
        return fault_set(fault, ENOMEM, "out of memory");
    memcpy(model.layers, request->model->layers, model.n_layers * sizeof *model.layers);
    trained_sums_take_last(&model, model.trainable_printed.known
                                       ? model.trainable_printed.value
                                       : 1); /* the last layer that has any */
    changed.model = &model;
    int r = physics_run(&changed, fault, &unused, &physics);
    free(model.layers);
    *ret_bytes = r == 0 ? process_bytes(&physics) : 0;
    return r;
}

static int ask_what_is_trained(const struct estimate_request *request, double all_bytes,
    struct fault *fault, struct estimate *ret_estimate)
{
    double last_bytes;
    if (request->export || !request->model->trained_is_open)
        return 0;
    int r = estimate_last_layers(request, fault, &last_bytes);
    if (r != 0)
        return r < 0 ? r : 0;
    return estimate_note(ret_estimate, 0,
        "which weights are trained? %.0f MiB if all are%s, %.0f MiB if only the last layers are: add "
        "to the text what this prints: for n, p in model.named_parameters(): print(n, p.requires_grad)",
        all_bytes / MIB, request->model->is_quantised ? " that are not quantised" : "",
        last_bytes / MIB);
}

static int ask_for_type(const struct estimate_request *request, double bytes, struct fault *fault,
    struct estimate *ret_estimate)
{
    struct estimate_request changed = *request;
    struct estimate unused = {.estimator = "graph"};
    struct physics physics;
    if (!physics_asks_for_type(request))
        return 0;
    changed.precision = PRECISION_BF16_TRUE;
    int r = physics_run(&changed, fault, &unused, &physics);
    if (r != 0)
        return r < 0 ? r : 0;
    return estimate_note(ret_estimate, 0,
        "are its weights in 32 or in 16 bit? %.0f MiB in 32, %.0f MiB in 16: give --precision=fp32, "
        "amp or bf16-true",
        bytes / MIB, process_bytes(&physics) / MIB);
}

/* Samples that one process computes in a step: of a script all its forward passes. */
static double samples_of_step(const struct estimate_request *request)
{
    struct count batch = estimate_batch(request);
    double passes = request->export ? (double)request->export->accumulation : 1;
    return batch.known ? (double)batch.value * fmax(1, passes) : 0;
}

/* Processes that exchange gradients by DistributedDataParallel; a script shows how many. */
static double exchanging_processes(const struct estimate_request *request)
{
    if (request->export && strcmp(request->export->method, "script") == 0)
        return (double)request->export->ddp;
    bool is_ddp = parallel_assumed(request->parallel, request->gpus) == PARALLEL_DDP;
    return is_ddp ? request->gpus : 1;
}

static double exchange_us(const struct estimate_request *request, const struct physics *physics)
{
    const struct gpu_traits *gpu = physics_constants_of(request->gpu_kind).gpu;
    double frozen = request->export ? (double)request->export->frozen * sizeof(float) : 0;
    const struct gradient_exchange exchange = {.bytes = physics->footprint.gradients - frozen,
        .processes = exchanging_processes(request),
        .bytes_per_s = gpu_traits_link(gpu, request->gpu_kind),
        .backward_us = BACKWARD_SHARE * physics->activity.step_us};
    return gradient_exchange_wait_us(&exchange);
}

/* The GPU computes a step while the next batch is loaded: the step takes as long as the slower of
 * both, and the GPU's work is spread over it. */
static void set_activity(const struct estimate_request *request, const struct physics *physics,
    struct estimate *ret_estimate)
{
    const struct activity *activity = &physics->activity;
    const char *why;
    struct reading rate = loading_rate(request, &why);
    double exchanging_us = exchange_us(request, physics),
           loading_us = rate.valid ? samples_of_step(request) / rate.value * SECOND_US : 0,
           own_us = activity->step_us + exchanging_us, step_us = fmax(own_us, loading_us),
           busy = activity->step_us / step_us;
    ret_estimate->step_us = reading_of(step_us);
    ret_estimate->smact = reading_of(activity->smact * busy);
    ret_estimate->dram_active = reading_of(activity->dram * busy);
    if (loading_us > own_us)
        estimate_note(ret_estimate, 0,
            "the GPU waits for data for %.0f %% of a step, with %.6g samples a second",
            100 * (1 - own_us / step_us), rate.value);
    if (exchanging_us >= NOTED_SHARE * step_us)
        estimate_note(ret_estimate, 0, "the GPU waits for the other GPUs for %.0f %% of a step",
            100 * exchanging_us / step_us);
    if (*why)
        estimate_note(ret_estimate, 0, "%s", why);
}

static int run(
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    struct physics physics;
    int r = physics_run(request, fault, ret_estimate, &physics);
    if (r != 0)
        return r;
    ret_estimate->bytes = reading_of(process_bytes(&physics));
    r = ask_what_is_trained(request, ret_estimate->bytes.value, fault, ret_estimate);
    r = r == 0 ? ask_for_type(request, ret_estimate->bytes.value, fault, ret_estimate) : r;
    if (r != 0)
        return r;
    ret_estimate->floor_bytes = reading_of(
        physics.context_bytes + physics.footprint.live - physics.guess_live);
    if (physics.activity.step_us > 0)
        set_activity(request, &physics, ret_estimate);
    double physical = ret_estimate->bytes.value;
    bool is_known = apply_own_runs(request, ret_estimate);
    if (ret_estimate->bytes.value != physical)
        physics.guess_reserved = 0; /* a run needed the memory */
    quantiles_set(ret_estimate, &physics);
    if (!is_known)
        apply_runs_of_others(request, ret_estimate);
    return 0;
}

const struct estimator estimator_graph = {
    "graph", "physics of a training step over the summary or the export", run};
