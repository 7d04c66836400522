/*
 * Physics: the layers become a training step (tape.h), the step is played through the rules of PyTorch's caching
 * allocator (replay.h), and the CUDA context of the kind of GPU is added.
 */
#include <string.h>

#include "estimator/replay.h"
#include "estimator/table.h"
#include "estimator/tape.h"

/* What a person should know of how sure this is. */
static void describe(const struct tape *tape, const struct estimate_request *request, struct estimate *ret_estimate)
{
    const struct tape_doubts *doubts = &tape->doubts;
    struct span name = {"", 0};
    if (doubts->unknown_layer != TAPE_NONE)
        name = request->model->layers[doubts->unknown_layer].type;
    if (doubts->hidden_share > 0.05)
        estimate_note(ret_estimate, 0, "blocks with %.0f %% of the parameters hide their layers: too low",
                      100 * doubts->hidden_share);
    if (doubts->unknown_share > 0.01)
        estimate_note(ret_estimate, 0, "layers of unknown types (%.*s) make %.0f %% of the activations",
                      (int)(name.size < 60 ? name.size : 60), name.at, 100 * doubts->unknown_share);
    if (doubts->unshaped_share > 0.05)
        estimate_note(ret_estimate, 0, "%.0f %% of the layers have no shape and are left out: too low",
                      100 * doubts->unshaped_share);
    if (!request->optimizer)
        estimate_note(ret_estimate, 0, "taken for %s; --optimizer sharpens it", optimizer_usual()->name);
    else if (!optimizer_find(request->optimizer))
        estimate_note(ret_estimate, 0, "the optimizer %.40s is not known, taken for %s", request->optimizer,
                      optimizer_usual()->name);
    if (request->model->batch.known && request->model->batch.value > 1 && request->batch != ESTIMATE_NOT_SAID &&
        request->batch != request->model->batch.value)
        estimate_note(ret_estimate, 0, "the summary was printed for a batch of %lld, scaled to %lld",
                      (long long)request->model->batch.value, (long long)request->batch);
}

/* What the exporter saw, against what the task says. */
static void describe_export(const struct estimate_request *request, struct estimate *ret_estimate)
{
    const struct export *export = request->export;
    if (request->optimizer && strcmp(request->optimizer, export->optimizer) != 0)
        estimate_note(ret_estimate, 0, "the export was made with %s: export again for %.40s", export->optimizer,
                      request->optimizer);
    if (request->precision && strcmp(request->precision, export->precision) != 0)
        estimate_note(ret_estimate, 0, "the export was made in %s: export again for %.40s", export->precision,
                      request->precision);
    if (request->sequence_length > 0 && request->sequence_length != export->sequence_length)
        estimate_note(ret_estimate, 0, "the export was made for sequences of %lld", (long long)export->sequence_length);
    if (export->not_modelled)
        estimate_note(ret_estimate, 0, "checkpointing or compilation changes what the export shows");
}

static int play_export(const struct estimate_request *request, const struct gpu_traits *gpu, struct fault *fault,
                       struct estimate *ret_estimate, struct footprint *ret_footprint)
{
    const struct export *export = request->export;
    int64_t batch = estimate_batch(request).value;
    if (!export->every_batch && batch != export->model->batch.value)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN, "the export holds for a batch of %lld alone",
                             (long long)export->model->batch.value);
    describe_export(request, ret_estimate);
    return replay_export(export, (double)batch, gpu, fault, ret_footprint);
}

static int play_summary(const struct estimate_request *request, const struct gpu_traits *gpu, struct fault *fault,
                        struct estimate *ret_estimate, struct footprint *ret_footprint)
{
    struct tape tape;
    const char *why = "";
    const struct optimizer *optimizer = request->optimizer ? optimizer_find(request->optimizer) : NULL;
    int r = tape_build(request, fault, &tape, &why);
    if (r != 0)
        return r < 0 ? r : estimate_note(ret_estimate, ESTIMATE_UNKNOWN, "%s", why);
    r = replay_tape(&tape, optimizer ? optimizer : optimizer_usual(), gpu, fault, ret_footprint);
    if (r == 0)
        describe(&tape, request, ret_estimate);
    tape_fini(&tape);
    return r;
}

static int run(const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    struct footprint footprint;
    if (!request->model)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN, "graph needs a model summary or an export");
    if (!estimate_batch(request).known)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN, "neither the task nor the summary says the batch size");
    const struct gpu_traits *gpu = gpu_traits_find(request->gpu_kind);
    int r = (request->export ? play_export : play_summary)(request, gpu, fault, ret_estimate, &footprint);
    if (r == 0) {
        ret_estimate->bytes = reading_of((double)gpu->context_bytes + footprint.reserved);
        ret_estimate->floor_bytes = reading_of((double)gpu->context_bytes + footprint.live);
    }
    return r;
}

const struct estimator estimator_graph = {"graph", "physics of a training step over the summary or the export", run};
