/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The estimator graph: the layers become a training step (tape.h), the step is replayed through the
 * rules of PyTorch's caching allocator (allocator_replay.h), and the CUDA context of the kind of
 * GPU is added. If the run history has the same network, its result replaces or raises the
 * estimate.
 */
#include "estimator/estimator_table.h"
#include "estimator/physics/physics.h"
#include "estimator/physics/quantile.h"
#include "estimator/physics/residual.h"

/* Uses the run history, which is more exact than the layers, where it has the network. */
static int apply_history(
    const struct estimate_request *request, struct fault *fault, struct estimate *estimate)
{
    struct estimate past = {.estimator = estimate->estimator};
    if (request->n_history == 0)
        return 0;
    int r = estimator_history.run(request, fault, &past);
    double at_least = history_at_least(request);
    if (r > 0 && at_least > estimate->bytes.value) {
        estimate->bytes = reading_of(at_least);
        return estimate_note(estimate, 0, "raised to what a run had when it ran out of memory");
    }
    if (r != 0)
        return r < 0 ? r : 0;
    if (estimate->evidence == EVIDENCE_KERNELS && past.evidence != EVIDENCE_SAME_RUN)
        return 0; /* exact layers and kernels are nearer than a run at another batch */
    if (request->export &&
        (past.evidence == EVIDENCE_ONE_RUN || past.evidence == EVIDENCE_OTHER_RUNS))
        return 0; /* so are exact layers, though less: docs/measured/estimators.md */
    estimate->bytes = past.bytes;
    estimate->evidence = past.evidence;
    return *past.note ? estimate_note(estimate, 0, "%s", past.note) : 0;
}

static int run(
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    struct physics physics;
    int r = physics_run(request, fault, ret_estimate, &physics);
    if (r != 0)
        return r;
    ret_estimate->bytes = reading_of(
        physics.context_bytes + physics.footprint.reserved * residual_factor(&physics));
    ret_estimate->floor_bytes = reading_of(
        physics.context_bytes + physics.footprint.live - physics.guess_live);
    if (physics.activity.step_us > 0) {
        ret_estimate->step_us = reading_of(physics.activity.step_us);
        ret_estimate->smact = reading_of(physics.activity.smact);
        ret_estimate->dram_active = reading_of(physics.activity.dram);
    }
    double physical = ret_estimate->bytes.value;
    r = apply_history(request, fault, ret_estimate);
    if (ret_estimate->bytes.value != physical)
        physics.guess_reserved = 0; /* a run needed the memory */
    quantiles_set(ret_estimate, &physics);
    return r;
}

const struct estimator estimator_graph = {
    "graph", "physics of a training step over the summary or the export", run};
