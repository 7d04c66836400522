/* SPDX-License-Identifier: Apache-2.0 */
/* Each doubt is a note, and decides the kind of evidence. */
#include "estimator/physics/physics_notes.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "estimator/estimator_table.h"
#include "estimator/physics/division.h"
#include "training/name_list.h"

/* Chosen: from this share of unknown parameters, activations or layers on the estimate is doubtful;
 * unknown activations are noted from a smaller share on. */
static const double doubtful_share = 0.05, remarkable_share = 0.01;

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

void physics_note_kernels(const struct estimate_request *request, const struct physics *physics,
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

void physics_note_summary(
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

void physics_note_export(const struct estimate_request *request, const struct physics *physics,
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

void physics_note_division(const struct estimate_request *request, struct estimate *ret_estimate)
{
    if (request->gpus > 1 && request->parallel == PARALLEL_NOT_GIVEN)
        estimate_note(ret_estimate, 0,
            "%d GPUs without --parallel: estimated as one process of DistributedDataParallel",
            request->gpus);
    if (division_nccl_bytes(request) > 0)
        estimate_note(ret_estimate, 0, "with %d MiB for NCCL, as on H200s of one host",
            division_nccl_bytes(request) >> 20);
    if (request->offload != OFFLOAD_NONE)
        estimate_note(ret_estimate, 0, "in the host's memory: %s",
            request->offload == OFFLOAD_OPTIMIZER ? "the optimizer's states"
                                                  : "states, weights and gradients");
}

void physics_note_compiled(const struct estimate_request *request,
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

enum evidence physics_evidence(
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
