/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The physical estimate of one request: replays its tape or its export, and turns doubts into
 * notes.
 *
 * A summary becomes a tape (tape.h), which the allocator's replay plays for two training steps
 * (allocator_replay.h); an export is played as it is, and so is a step that JAX compiled
 * (compiled_replay.h). All give the footprint above the CUDA context. The roofline adds step time
 * and activity. Each doubt goes into the note and into the kind of evidence, which decides the
 * quantiles.
 */
#include "estimator/physics/physics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "estimator/estimator_table.h"
#include "estimator/physics/compiled_replay.h"
#include "estimator/physics/known_kernels.h"
#include "estimator/physics/pipeline_stage.h"
#include "estimator/physics/tape_build.h"
#include "estimator/physics/tensor_split.h"
#include "estimator/physics/tried_kernels.h"
#include "training/name_list.h"

/* Chosen: from this share of unknown parameters, activations or layers on the estimate is doubtful;
 * unknown activations are noted from a smaller share on. */
static const double doubtful_share = 0.05, remarkable_share = 0.01;

/* The variant of a summary's workspaces. Chosen: one replay instead of a median of several, which
 * did as well on networks of others and took as many times longer. */
enum { TAPE_VARIANT = 1 };

enum { WEIGHT_BYTES = 4 }; /* of fp32, in which weights stay under autocast */

/* Tensor cores take channels in multiples of 16 bytes (cuDNN's developer guide). */
enum { ALIGN_HALF = 8, ALIGN_SINGLE = 4 };

/* cuDNN's kernels by Fourier's transform: squares of a power of two, 256 x 256 at most (measured on
 * an H200), of the weights and of what is multiplied with them, in complex fp32. */
enum { FOURIER_SIDE_MIN = 8, FOURIER_SIDE_MAX = 256, FOURIER_WEIGHTS = 2, COMPLEX_BYTES = 8 };

/* From this many taps on cuDNN may choose a kernel whose workspace is many times its maps: it took
 * 21.7 GiB for 128 taps over a sequence at a batch of 64, 18 MiB at 16 (data/memory, fp32). Chosen:
 * more than the widest usual window, 11 x 11. */
static const double taps_doubtful = 122;

static void describe_optimizer(
    const struct estimate_request *request, struct estimate *ret_estimate)
{
    char all[NAME_LIST_MAX_SIZE];
    const char *assumed = optimizer_name(optimizer_assumed(request->optimizer));
    if (request->optimizer == OPTIMIZER_NOT_GIVEN)
        estimate_note(
            ret_estimate, 0, "no optimizer is given (--optimizer): estimated for %s", assumed);
    else if (request->optimizer == OPTIMIZER_OTHER)
        estimate_note(ret_estimate, 0,
            "the optimizer %.40s is not known (known are %s), taken for %s",
            request->optimizer_text ? request->optimizer_text : "",
            name_list_join(optimizer_names, all), assumed);
}

/* Adds notes about weights that are not trained. */
static void describe_trained(const struct model *model, struct estimate *ret_estimate)
{
    if (model->parameters_trained.known)
        estimate_note(ret_estimate, 0, "%lld of %lld parameters are trained",
            (long long)model->parameters_trained.value, (long long)model->parameters);
    if (model->is_quantised)
        estimate_note(ret_estimate, 0,
            "its weights are quantised, the others taken for 16 bit; prepare_model_for_kbit_training "
            "makes these 32 bit");
}

/* Language models of which a part is trained are loaded in 16 bit as often as in 32. */
bool physics_asks_for_type(const struct estimate_request *request)
{
    const struct model *model = request->model;
    bool is_open = !request->export && request->precision == PRECISION_NOT_GIVEN &&
                   model->parameters_trained.known && !model->is_quantised,
         embeds = false;
    for (size_t i = 0; is_open && i < model->n_layers; i++)
        embeds |= model->layers[i].kind == LAYER_EMBEDDING;
    return is_open && embeds;
}

/* Says where the workspaces of convolutions come from. `is_asked`: from request->kernels. */
static void describe_kernels(const struct estimate_request *request, const struct physics *physics,
    bool is_asked, struct estimate *ret_estimate)
{
    const struct export *export = request->export;
    char *text = ret_estimate->kernels;
    if (export->n_convs == 0)
        return;
    if (is_asked)
        kernel_origin_text(&request->kernels->origin, text, sizeof ret_estimate->kernels);
    else if (physics->knows_kernels)
        snprintf(text, sizeof ret_estimate->kernels, "as measured on %s by --kernels",
            export->measured.gpu);
    else
        snprintf(text, sizeof ret_estimate->kernels, "by rules%s",
            export->tries_kernels ? ": with cudnn.benchmark all kernels are tried" : "");
}

/* Adds notes about what makes the estimate uncertain. */
static void describe_doubts(
    const struct tape *tape, const struct estimate_request *request, struct estimate *ret_estimate)
{
    const struct tape_doubts *doubts = &tape->doubts;
    struct span name = {"", 0};
    if (doubts->unknown_layer != TAPE_NONE)
        name = request->model->layers[doubts->unknown_layer].type;
    if (doubts->hidden_share > doubtful_share)
        estimate_note(ret_estimate, 0,
            "blocks with %.0f %% of the parameters hide their layers: too low",
            100 * doubts->hidden_share);
    if (doubts->unknown_share > remarkable_share)
        estimate_note(ret_estimate, 0,
            "layers of unknown types (%.*s) make %.0f %% of the activations",
            (int)(name.size < 60 ? name.size : 60), name.at, 100 * doubts->unknown_share);
    if (doubts->unshaped_share > doubtful_share)
        estimate_note(ret_estimate, 0,
            "%.0f %% of the layers have no shape and are left out: too low",
            100 * doubts->unshaped_share);
    if (doubts->most_taps >= taps_doubtful)
        estimate_note(ret_estimate, 0,
            "a convolution of %.0f taps in 32 bit: its workspace may be many times its maps",
            doubts->most_taps);
    if (tape->result != (int)tape->n_tensors - 1)
        estimate_note(ret_estimate, 0,
            "the network ends in a map smaller than its image: estimated for a loss that enlarges it, "
            "but for P50");
    if (request->model->is_suspect)
        estimate_note(
            ret_estimate, 0, "the summary contradicts itself or is cut off (see its warnings)");
    if (request->model->format == SUMMARY_KERAS)
        estimate_note(ret_estimate, 0,
            "a summary of Keras: estimated as PyTorch would train it; TensorFlow and JAX take most of "
            "the GPU when they start, unless they are set to grow");
    describe_optimizer(request, ret_estimate);
    describe_trained(request->model, ret_estimate);
    if (tape->sequence_is_longest)
        estimate_note(ret_estimate, 0,
            "no sequence length is given (--seq): estimated for %.0f tokens, the longest for which it "
            "has embeddings of positions",
            tape->sequence);
    if (request->checkpointing && tape->n_recomputed == 0)
        estimate_note(
            ret_estimate, 0, "no repeated block is seen: estimated without checkpointing");
    if (precision_note(request->precision) && !request->model->is_quantised)
        estimate_note(ret_estimate, 0, "%s", precision_note(request->precision));
    if (request->precision == PRECISION_NOT_GIVEN && !request->model->is_quantised &&
        !physics_asks_for_type(request))
        estimate_note(ret_estimate, 0,
            "no precision is given (--precision): estimated for fp32; amp takes about half");
    if (request->model->batch.known && request->model->batch.value > 1 &&
        request->batch != ESTIMATE_NOT_GIVEN && request->batch != request->model->batch.value)
        estimate_note(ret_estimate, 0,
            "the summary was printed for a batch of %lld, scaled to %lld",
            (long long)request->model->batch.value, (long long)request->batch);
}

/* Adds notes where the export and the task differ. */
static void describe_export(const struct estimate_request *request, const struct physics *physics,
    struct estimate *ret_estimate)
{
    const struct export *export = request->export;
    if (request->optimizer != OPTIMIZER_NOT_GIVEN && request->optimizer != export->optimizer)
        estimate_note(ret_estimate, 0, "the export was made with %s: export again for %.40s",
            optimizer_name(export->optimizer),
            request->optimizer_text ? request->optimizer_text : optimizer_name(request->optimizer));
    if (request->precision != PRECISION_NOT_GIVEN &&
        precision_is_autocast(request->precision) != precision_is_autocast(export->precision))
        estimate_note(ret_estimate, 0, "the export was made in %s: export again for %s",
            precision_name(export->precision), precision_name(request->precision));
    if (request->sequence_length > 0 && request->sequence_length != export->sequence_length)
        estimate_note(ret_estimate, 0, "the export was made for sequences of %lld",
            (long long)export->sequence_length);
    if (export->measured.batch > 0 && export->n_convs > 0 && !physics->knows_kernels)
        estimate_note(ret_estimate, 0,
            "the workspaces of its convolutions were measured on %.63s at a batch of %lld: estimated here",
            export->measured.gpu, (long long)export->measured.batch);
    if (export->releases_output)
        estimate_note(ret_estimate, 0,
            "the export is of a loop that releases the model's output before the backward pass");
    if (physics->tries_kernels && !physics->tried.bytes.valid)
        estimate_note(ret_estimate, 0,
            "cudnn.benchmark tries all kernels of each convolution: their workspaces are not known, "
            "and may take as much again");
    else if (physics->tries_kernels)
        estimate_note(ret_estimate, 0,
            "cudnn.benchmark tries all kernels of each convolution: the largest may take %.0f MiB "
            "meanwhile",
            physics->tried.bytes.value / (double)MIB);
    if (export->not_modelled)
        estimate_note(
            ret_estimate, 0, "checkpointing or compilation changes what the export shows");
}

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

/* What NCCL takes in the process. A script's export knows how many processes there are. */
static int nccl_bytes(const struct estimate_request *request)
{
    enum parallel parallel = parallel_assumed(request->parallel, request->gpus);
    int64_t processes = request->export ? request->export->processes : 0;
    if (parallel == PARALLEL_TP || parallel == PARALLEL_PP)
        return GPU_TRAITS_NCCL_MAPS_BYTES;
    if (parallel_traits(parallel)->communicates || processes > 1)
        return GPU_TRAITS_NCCL_BYTES;
    return processes == 1 ? GPU_TRAITS_NCCL_ALONE_BYTES : 0;
}

/* Of one process: CUDA, the libraries, and NCCL where it is used. */
static double context_of(const struct physics_constants *constants,
    const struct estimate_request *request, bool multiplies, bool convolves_or_half)
{
    return gpu_traits_context(constants->gpu, multiplies, convolves_or_half) +
           (double)nccl_bytes(request);
}

/* What the process that asked cuDNN had more than a context has: the code of the kernels that were
 * tried, which stays in the training's process, too. */
static double tried_code_of(const struct physics_constants *constants, const struct export *export)
{
    double asked = export->measured.process.known ? (double)export->measured.process.value : 0;
    return fmax(0, asked - gpu_traits_context(constants->gpu, false, true));
}

/* Adds notes about several GPUs: what was assumed. */
static void describe_division(const struct estimate_request *request, struct estimate *ret_estimate)
{
    if (request->gpus > 1 && request->parallel == PARALLEL_NOT_GIVEN)
        estimate_note(ret_estimate, 0,
            "%d GPUs without --parallel: estimated as one process of DistributedDataParallel",
            request->gpus);
    if (nccl_bytes(request) > 0)
        estimate_note(ret_estimate, 0, "with %d MiB for NCCL, as on H200s of one host",
            nccl_bytes(request) >> 20);
    if (request->offload != OFFLOAD_NONE)
        estimate_note(ret_estimate, 0, "in the host's memory: %s",
            request->offload == OFFLOAD_OPTIMIZER ? "the optimizer's states"
                                                  : "states, weights and gradients");
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
    describe_export(request, physics, ret_estimate);
    describe_kernels(request, physics, workspaces != NULL, ret_estimate);
    r = replay_export(constants, request, workspaces, tries, fault, physics);
    free(workspaces);
    free(tries);
    divide_export(request, ret_estimate, &physics->footprint);
    return r;
}

/* Adds notes about a compiled step: what it is like in the pool, and what is not known. */
static void describe_compiled(const struct estimate_request *request,
    const struct footprint *footprint, struct estimate *ret_estimate)
{
    const struct compiled_step *step = &request->export->compiled;
    estimate_note(ret_estimate, 0,
        "of JAX with XLA_PYTHON_CLIENT_PREALLOCATE=false, else it takes three quarters of the GPU: "
        "%.0f MiB in use at the peak, in a pool that grows by doubling",
        footprint->live / (double)MIB);
    if (!step->is_for_gpu)
        estimate_note(ret_estimate, 0,
            "not compiled for a GPU, where temporaries are other ones: export on a GPU");
    if (!step->compiling.peak_bytes.known)
        estimate_note(ret_estimate, 0,
            "without the kernels that the compiler tries, which take several times as much where "
            "the step convolves");
    if (!step->code_bytes.known)
        estimate_note(ret_estimate, 0, "without the program's code, whose size is not known");
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
        describe_compiled(request, &physics->footprint, ret_estimate);
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
        describe_doubts(&tape, request, ret_estimate);
    }
    tape_fini(&tape);
    return r;
}

/* Finds the kind of evidence, which decides the quantiles. */
static enum evidence evidence_of(
    const struct estimate_request *request, const struct physics *physics)
{
    const struct tape_doubts *doubts = &physics->doubts;
    if (request->export && request->export->compiled.is_there)
        return EVIDENCE_COMPILED;
    if (request->export && physics->knows_kernels)
        return EVIDENCE_KERNELS;
    if (request->export)
        return strcmp(request->export->method, "script") == 0 ? EVIDENCE_SCRIPT : EVIDENCE_EXPORT;
    if (request->model->is_suspect || request->model->format == SUMMARY_KERAS ||
        doubts->hidden_share > doubtful_share || doubts->unknown_share > doubtful_share ||
        doubts->unshaped_share > doubtful_share || request->model->trained_is_open ||
        doubts->most_taps >= taps_doubtful || physics_asks_for_type(request) ||
        request->offload != OFFLOAD_NONE) /* no such training was compared with its estimate */
        return EVIDENCE_DOUBTFUL;
    return request->optimizer != OPTIMIZER_NOT_GIVEN && request->optimizer != OPTIMIZER_OTHER &&
                   request->precision != PRECISION_NOT_GIVEN
               ? EVIDENCE_DECLARED
               : EVIDENCE_SUMMARY;
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
        describe_division(request, estimate);
        estimate->evidence = evidence_of(request, ret_physics);
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
