/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Horus (Yeung et al., TPDS 2022), as the RAD thesis gives it in section 5.3.1:
 *
 *     Mem = (B x A + P) + (B x G) + d
 *
 * with batch B, activations A, parameters P, gradients G and start-up overhead d. It is kept as
 * published, as a baseline: it multiplies gradients by the batch, which they do not do, and knows
 * no optimizer.
 *
 * The published figures for CARMA's tasks follow from it with four bytes per element, G = P, d =
 * 800 MiB and A = the outputs of the layers but for pooling over windows, dropout and layers that
 * only rename a tensor (identity, flatten). That gives ResNet-50, Xception, MobileNetV2 and
 * ResNet-18/34 within 0.001 MiB, Inception, EfficientNet-B0 and VGG-16 within 0.05 %. Not followed:
 * efficientNet_cifar100 (its reader missed BatchNormAct2d), mobilenet_cifar100 (the same figures
 * once more), mnist (a batch of 64 under the name of 32), values cut at 40000, and the figures for
 * BERT, GPT-2 and XLNet, whose summaries hold no output shape: P there was the printed total that
 * counts every level of the tree, and A a number that does not follow from the text. Without shapes
 * A is not known, and so is the estimate.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/units.h"
#include "estimator/estimator_table.h"

enum { ELEMENT_BYTES = 4 };

/* A block may hide some of its layers; beyond this share of the parameters the activations say too
 * little. */
static const double hidden_share_max = 0.1;

static bool counts(const struct layer *layer)
{
    switch (layer->kind) {
    case LAYER_POOL:
    case LAYER_DROPOUT:
    case LAYER_RESHAPE:
    case LAYER_INPUT:
    case LAYER_CONTAINER:
        return false;
    default:
        return layer->leaf;
    }
}

/* A: per sample, over the layers that count. Cannot overflow: the model's own sum holds all of
 * these. */
static int64_t activations(const struct model *model, size_t *ret_unshaped)
{
    int64_t sum = 0;
    *ret_unshaped = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        if (!counts(layer))
            continue;
        sum += layer->activations.value;
        *ret_unshaped += !layer->activations.known;
    }
    return sum;
}

/* ((B x A + P) + B x G) x 4 + d. False beyond 64 bits. */
static bool total(int64_t batch, int64_t a, int64_t p, int64_t *ret_bytes)
{
    int64_t forward, backward, bytes;
    return !__builtin_mul_overflow(batch, a, &forward) &&
           !__builtin_add_overflow(forward, p, &forward) &&
           !__builtin_mul_overflow(batch, p, &backward) &&
           !__builtin_add_overflow(forward, backward, &bytes) &&
           !__builtin_mul_overflow(bytes, ELEMENT_BYTES, &bytes) &&
           !__builtin_add_overflow(bytes, 800 * MIB, ret_bytes);
}

static int run(
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    const struct model *model = request->model;
    struct count batch = estimate_batch(request);
    size_t unshaped;
    int64_t bytes;
    if (!model)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN, "horus needs a model summary");
    if (!batch.known)
        return estimate_note(
            ret_estimate, ESTIMATE_UNKNOWN, "neither the task nor the summary says the batch size");
    if (!model->activations.known)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN,
            "the summary holds no output shapes, so the activations are not known");
    if ((double)model->parameters_hidden > hidden_share_max * (double)model->parameters)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN,
            "the summary hides the layers inside its blocks: print it with a greater depth");
    int64_t a = activations(model, &unshaped);
    if (!total(batch.value, a, model->parameters, &bytes))
        return fault_set(fault, ERANGE,
            "batch %" PRId64 " of %" PRId64 " activations and %" PRId64
            " parameters: the sum is beyond 64 bits",
            batch.value, a, model->parameters);
    if (unshaped)
        estimate_note(
            ret_estimate, 0, "%zu layers have no output shape and are left out: too low", unshaped);
    ret_estimate->bytes = reading_of((double)bytes);
    return 0;
}

const struct estimator estimator_horus = {
    "horus", "the formula of Horus (TPDS 2022) over the model summary", run};
