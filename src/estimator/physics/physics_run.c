/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The physical estimate of one request: replays its tape or its export.
 *
 * A summary becomes a tape (tape.h), which the allocator's replay plays for two training steps
 * (allocator_replay.h); an export is played as it is, and so is a step that JAX compiled
 * (compiled_replay.h). All give the footprint above the CUDA context. The roofline adds step time
 * and activity. Each doubt becomes a note, and decides the kind of evidence (physics_notes.c).
 */
#include "estimator/physics/physics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "estimator/estimator_table.h"
#include "estimator/physics/compiled_replay.h"
#include "estimator/physics/known_kernels.h"
#include "estimator/physics/physics_notes.h"
#include "estimator/physics/pipeline_stage.h"
#include "estimator/physics/tape_build.h"
#include "estimator/physics/tensor_split.h"
#include "estimator/physics/tried_kernels.h"

/* The variant of a summary's workspaces. Chosen: one replay instead of a median of several, which
 * did as well on networks of others and took as many times longer. */
enum { TAPE_VARIANT = 1 };

enum { WEIGHT_BYTES = 4 }; /* of fp32, in which weights stay under autocast */

/* Tensor cores take channels in multiples of 16 bytes (cuDNN's developer guide). */
enum { ALIGN_HALF = 8, ALIGN_SINGLE = 4 };

/* cuDNN's kernels by Fourier's transform: squares of a power of two, 256 x 256 at most (measured on
 * an H200), of the weights and of what is multiplied with them, in complex fp32. */
enum { FOURIER_SIDE_MIN = 8, FOURIER_SIDE_MAX = 256, FOURIER_WEIGHTS = 2, COMPLEX_BYTES = 8 };

static bool is_aligned(const struct tensor *in, const struct tensor *out, double step)
{
    return fmod(in->first, step) == 0 && fmod(out->first, step) == 0;
}

/* Twice the weights, transformed at the size of the map and its margin. */
static double fourier_bytes(const struct op *op, const struct tensor *in, const struct tensor *out)
{
    double side = in->last + sqrt(op->window) - 1, size = FOURIER_SIDE_MIN;
    while (size < side)
        size *= 2;
    return size <= FOURIER_SIDE_MAX
               ? FOURIER_WEIGHTS * in->first * out->first * size * (size / 2 + 1) * COMPLEX_BYTES
               : 0;
}

/*
 * Tensor cores need channels in multiples of 8 (16 bit) or 4. For others, in windows of several
 * taps, cuDNN chooses among kernels with a small workspace and kernels that transform maps and
 * weights by Fourier's, with many times the memory of the network. The choice cannot be predicted:
 * it makes the estimate less certain.
 */
static void measure_alignment(const struct tape *tape, struct physics *physics)
{
    double all = 0, unaligned = 0, step = tape_is_half(tape) ? ALIGN_HALF : ALIGN_SINGLE;
    for (size_t i = 0; i < tape->n_ops; i++) {
        const struct op *op = &tape->ops[i];
        if (op->kind != LAYER_CONV || op->inputs[0] == TAPE_NONE)
            continue;
        const struct tensor *in = &tape->tensors[op->inputs[0]], *out = &tape->tensors[op->output];
        all += in->elements + out->elements;
        if (op->depthwise || op->window == 1 || in->is_data || is_aligned(in, out, step))
            continue;
        unaligned += in->elements + out->elements;
        physics->fourier_bytes = fmax(physics->fourier_bytes, fourier_bytes(op, in, out));
    }
    physics->unaligned = all > 0 ? unaligned / all : 0;
}

/* Properties of the tape, for the residual. */
static void measure_tape(const struct tape *tape, enum optimizer optimizer,
    const struct physics_constants *constants, struct physics *physics)
{
    double convs = 0;
    for (size_t i = 0; i < tape->n_ops; i++) {
        physics->macs += tape->ops[i].macs;
        convs += tape->ops[i].kind == LAYER_CONV ? tape->ops[i].macs : 0;
    }
    physics->doubts = tape->doubts;
    physics->parameters = tape->parameters;
    physics->depth = (double)tape->n_ops;
    physics->sequence = tape->sequence;
    physics->autocast = tape_is_half(tape);
    measure_alignment(tape, physics);
    physics->conv_share = physics->macs > 0 ? convs / physics->macs : 0;
    physics->activity = activity_of_tape(
        tape, optimizer_traits(optimizer), constants->gpu, &constants->rates);
}

/* Of one process: CUDA, the libraries, and NCCL where it is used. */
static double context_of(const struct physics_constants *constants,
    const struct estimate_request *request, bool multiplies, bool convolves_or_half)
{
    return gpu_traits_context(constants->gpu, multiplies, convolves_or_half) +
           (double)division_nccl_bytes(request);
}

/* What the process that asked cuDNN had more than a context has: the code of the kernels that were
 * tried, which stays in the training's process, too. */
static double tried_code_of(const struct physics_constants *constants, const struct export *export)
{
    double asked = export->measured.process.known ? (double)export->measured.process.value : 0;
    return fmax(0, asked - gpu_traits_context(constants->gpu, false, true));
}

/*
 * An export holds the tensors of one process. DDP's buckets are added to them; a script's export
 * has them already. What a divided model saves cannot be taken away, since the clock of the export
 * does not say which gradient is whole when.
 */
static void divide_export(const struct estimate_request *request, struct estimate *ret_estimate,
    struct footprint *footprint)
{
    struct division division = division_of(request);
    bool is_script = strcmp(request->export->method, "script") == 0;
    double buckets = division.buckets && !is_script
                         ? WEIGHT_BYTES * (double)request->export->model->parameters
                         : 0;
    footprint->reserved += buckets;
    footprint->active += buckets;
    footprint->live += buckets;
    const char *way = request->offload != OFFLOAD_NONE ? "--offload"
                                                       : parallel_name(request->parallel);
    if ((division.states < 1 || division_degree(request) > 1) && !is_script)
        estimate_note(
            ret_estimate, 0, "the export is of one process: what %s saves is not taken away", way);
}

/* Plays the export, and measures its layers. `workspaces`, `tries`: as of struct export_replay. */
static int replay_export(const struct physics_constants *constants,
    const struct estimate_request *request, const double *workspaces, const bool *tries,
    struct fault *fault, struct physics *physics)
{
    const struct export *export = request->export;
    int64_t batch = estimate_batch(request).value;
    struct estimate_request layers = *request;
    struct tape tape;
    const char *why;
    layers.precision = export->precision;
    layers.sequence_length = export->sequence_length;
    int r = tape_build(&layers, fault, &tape, &why);
    if (r < 0)
        return r;
    if (r == 0) {
        measure_tape(&tape, export->optimizer, constants, physics);
        tape_fini(&tape);
    }
    if (export->work.n_operators > 0)
        physics->activity = activity_of_export(
            export, (double)batch, constants->gpu, &constants->rates);
    bool half = precision_is_autocast(export->precision);
    physics->is_foreign_gpu = !constants->gpu->is_fitted;
    physics->context_bytes = context_of(
        constants, request, export->multiplies, export->n_convs > 0 || half);
    if (physics->knows_kernels && !workspaces)
        physics->context_bytes += tried_code_of(constants, export);
    struct export_replay how = {.batch = (double)batch,
        .use_measured = physics->knows_kernels,
        .workspaces = workspaces,
        .tries = tries};
    r = allocator_replay_export(export, &how, constants->gpu, fault, &physics->footprint);
    physics->convolves = export->n_convs > 0;
    if (r == 0 && physics->convolves)
        r = allocator_replay_range(export, &how, constants->gpu, fault, &physics->replay_range);
    physics->footprint.weights = physics->footprint.gradients = WEIGHT_BYTES *
                                                                (double)export->model->parameters;
    physics->footprint.states = physics->footprint.weights *
                                optimizer_traits(export->optimizer)->states;
    return r;
}

static int play_export(const struct physics_constants *constants,
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate,
    struct physics *physics)
{
    const struct export *export = request->export;
    int64_t batch = estimate_batch(request).value;
    if (!export->every_batch && batch != export->model->batch.value)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN,
            "the export holds for a batch of %lld alone", (long long)export->model->batch.value);
    physics->knows_kernels = allocator_replay_knows_kernels(
        export, (double)batch, request->gpu_kind);
    double *workspaces = NULL;
    bool *tries = NULL;
    int r = physics->knows_kernels ? 0 : known_kernels_find(request, fault, &workspaces);
    if (r == 0 && !physics->knows_kernels)
        r = tried_kernels_find(request, fault, &tries);
    if (r < 0) {
        free(workspaces);
        return r;
    }
    physics->knows_kernels |= workspaces != NULL;
    physics->tries_kernels = export->tries_kernels && !physics->knows_kernels;
    if (physics->tries_kernels)
        physics->tried = tried_workspace_of(export, batch);
    physics_note_export(request, physics, ret_estimate);
    physics_note_kernels(request, physics, workspaces != NULL, ret_estimate);
    r = replay_export(constants, request, workspaces, tries, fault, physics);
    free(workspaces);
    free(tries);
    divide_export(request, ret_estimate, &physics->footprint);
    return r;
}

static int play_compiled(const struct physics_constants *constants,
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate,
    struct physics *physics)
{
    const struct export *export = request->export;
    int64_t batch = estimate_batch(request).value;
    if (batch != export->model->batch.value)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN,
            "the step was compiled for a batch of %lld alone",
            (long long)export->model->batch.value);
    /* 618 to 634 MiB with the code were measured on an H200 (docs/measured/jax.md): XLA's libraries
     * add nothing to the context. */
    physics->context_bytes = context_of(constants, request, false, false) +
                             (export->compiled.code_bytes.known
                                     ? (double)export->compiled.code_bytes.value
                                     : 0);
    int r = compiled_replay(&export->compiled, fault, &physics->footprint);
    if (r == 0)
        physics_note_compiled(request, &physics->footprint, ret_estimate);
    return r;
}

/*
 * A network whose map the loss enlarges labels pixels; others end in such a map, too, and their
 * losses read it as it is (heatmaps, codebooks). The enlargement is the last operation of the tape,
 * so that what it takes follows from a replay without it.
 */
static int measure_guess(const struct tape *tape, const struct physics_constants *constants,
    const struct optimizer_traits *optimizer, struct fault *fault, struct physics *physics)
{
    struct tape smaller = *tape;
    struct footprint footprint;
    if (tape->result == (int)tape->n_tensors - 1)
        return 0;
    smaller.n_ops--;
    smaller.n_tensors--;
    int r = allocator_replay_tape(
        &smaller, optimizer, constants->gpu, TAPE_VARIANT, fault, &footprint);
    if (r < 0)
        return r;
    physics->guess_reserved = fmax(0, physics->footprint.reserved - footprint.reserved);
    physics->guess_live = fmax(0, physics->footprint.live - footprint.live);
    return 0;
}

static int split_tensors(struct tape *tape, const struct estimate_request *request,
    struct fault *fault, struct estimate *ret_estimate)
{
    double all = tape->parameters, divided;
    int degree = division_degree(request);
    if (tensor_split(tape, request->model, degree, &divided) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    return divided > 0
               ? estimate_note(ret_estimate, 0,
                     "tensor parallelism of %d: the products of the repeated blocks (%.0f %% of the "
                     "parameters) are divided, all else is whole",
                     degree, 100 * divided / all)
               : estimate_note(ret_estimate, 0,
                     "tensor parallelism of %d divides nothing of this network", degree);
}

static int replay_pipeline(const struct tape *tape, const struct physics_constants *constants,
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate,
    struct physics *physics)
{
    int stages = division_degree(request), stage;
    const struct pipeline pipeline = {
        stages, request->micro_batches ? request->micro_batches : stages};
    int r = pipeline_replay(tape, request->model, &pipeline, optimizer_traits(request->optimizer),
        constants->gpu, TAPE_VARIANT, fault, &physics->footprint, &stage);
    if (r < 0)
        return r;
    return estimate_note(ret_estimate, 0,
        "a pipeline of %d stages, %d micro-batches by 1F1B: stage %d is the largest", stages,
        pipeline.micro_batches, stage);
}

static int play_summary(const struct physics_constants *constants,
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate,
    struct physics *physics)
{
    struct tape tape;
    const char *why = "";
    int r = tape_build(request, fault, &tape, &why);
    if (r != 0)
        return r < 0 ? r : estimate_note(ret_estimate, ESTIMATE_UNKNOWN, "%s", why);
    physics->context_bytes = context_of(
        constants, request, tape.multiplies, tape.convolves || tape_is_half(&tape));
    const struct optimizer_traits *optimizer = optimizer_traits(request->optimizer);
    enum parallel parallel = parallel_assumed(request->parallel, request->gpus);
    if (parallel == PARALLEL_TP)
        r = split_tensors(&tape, request, fault, ret_estimate);
    if (r == 0 && parallel == PARALLEL_PP) {
        r = replay_pipeline(&tape, constants, request, fault, ret_estimate, physics);
    } else if (r == 0) {
        r = allocator_replay_tape(
            &tape, optimizer, constants->gpu, TAPE_VARIANT, fault, &physics->footprint);
        r = r == 0 ? measure_guess(&tape, constants, optimizer, fault, physics) : r;
    }
    if (r == 0) {
        measure_tape(&tape, request->optimizer, constants, physics);
        physics_note_summary(&tape, request, ret_estimate);
    }
    tape_fini(&tape);
    return r;
}

int physics_run_with(const struct physics_constants *constants,
    const struct estimate_request *request, struct fault *fault, struct estimate *estimate,
    struct physics *ret_physics)
{
    *ret_physics = (struct physics){.is_export = request->export != NULL};
    if (!request->model)
        return estimate_note(
            estimate, ESTIMATE_UNKNOWN, "graph needs a model summary or an export");
    if (!estimate_batch(request).known)
        return estimate_note(estimate, ESTIMATE_UNKNOWN, ESTIMATE_NO_BATCH);
    if (division_conflict(request))
        return fault_set(fault, EINVAL, "%s", division_conflict(request));
    bool is_compiled = request->export && request->export->compiled.is_there;
    int r = (is_compiled       ? play_compiled
             : request->export ? play_export
                               : play_summary)(constants, request, fault, estimate, ret_physics);
    if (r == 0) {
        physics_note_division(request, estimate);
        estimate->evidence = physics_evidence(request, ret_physics);
    }
    return r;
}

struct physics_constants physics_constants_of(const char *gpu_kind)
{
    const struct gpu_traits *gpu = gpu_traits_find(gpu_kind);
    return (struct physics_constants){gpu ? gpu : gpu_traits_assumed(), activity_rates};
}

int physics_run(const struct estimate_request *request, struct fault *fault,
    struct estimate *estimate, struct physics *ret_physics)
{
    struct physics_constants constants = physics_constants_of(request->gpu_kind);
    int r = physics_run_with(&constants, request, fault, estimate, ret_physics);
    char all[GPU_TRAITS_NAMES_SIZE];
    if (r == 0 && request->gpu_kind && !gpu_traits_find(request->gpu_kind))
        estimate_note(estimate, 0, "the GPU %.60s is not known (known are %s), taken for an %s",
            request->gpu_kind, gpu_traits_names(all, sizeof all), constants.gpu->match);
    else if (r == 0 && constants.gpu->is_derived)
        estimate_note(estimate, 0, "the CUDA context on %s is taken to be as large as on an A100",
            constants.gpu->match);
    return r;
}
