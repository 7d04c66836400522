/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The estimator horus (Yeung et al., TPDS 2022), as the RAD thesis gives it in section 5.3.1:
 *
 *     Mem = (B x A + P) + (B x G) + d
 *
 * with batch B, activations A, parameters P, gradients G and start-up overhead d. It is a baseline,
 * left as published: it multiplies gradients by the batch, which is wrong, and knows no optimizer.
 *
 * The published figures for CARMA's tasks follow from it with four bytes per element, G = P, d =
 * 800 MiB and A = the outputs of the layers except pooling over windows, dropout and layers that
 * only rename a tensor (identity, flatten). That gives ResNet-50, Xception, MobileNetV2 and
 * ResNet-18/34 within 0.001 MiB, Inception, EfficientNet-B0 and VGG-16 within 0.05 %. Not followed:
 * efficientNet_cifar100 (its reader missed BatchNormAct2d), mobilenet_cifar100 (the same figures
 * once more), mnist (a batch of 64 under the name of 32), values cut at 40000, and the figures for
 * BERT, GPT-2 and XLNet, whose summaries hold no output shape: P there was the printed total that
 * counts every level of the tree, and A a number that does not follow from the text. Without shapes
 * A is not known, and neither is the estimate.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/units.h"
#include "estimator/estimator_table.h"

enum { ELEMENT_BYTES = 4 }; /* of fp32, the only precision of the formula */

#define STARTUP_BYTES (800 * MIB) /* d: with it the published figures follow (see above) */

/* Fraction of the parameters in layers that blocks hide. Chosen: with more, too many activations
 * are unknown. */
static const double hidden_share_max = 0.1;

static bool is_counted(const struct layer *layer)
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

/* Returns A: activations per sample of the layers that count. Cannot overflow: the model's sum over
 * all layers did not. */
static int64_t sum_activations(const struct model *model, size_t *ret_unshaped)
{
    int64_t sum = 0;
    *ret_unshaped = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        if (!is_counted(layer))
            continue;
        sum += layer->activations.value;
        *ret_unshaped += !layer->activations.known;
    }
    return sum;
}

/* Calculates ((B x A + P) + B x G) x 4 + d, with G = P. Returns false beyond 64 bits. */
static bool calculate_total(int64_t batch, int64_t a, int64_t p, int64_t *ret_bytes)
{
    int64_t forward, backward, bytes;
    return !__builtin_mul_overflow(batch, a, &forward) &&
           !__builtin_add_overflow(forward, p, &forward) &&
           !__builtin_mul_overflow(batch, p, &backward) &&
           !__builtin_add_overflow(forward, backward, &bytes) &&
           !__builtin_mul_overflow(bytes, ELEMENT_BYTES, &bytes) &&
           !__builtin_add_overflow(bytes, STARTUP_BYTES, ret_bytes);
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
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN, ESTIMATE_NO_BATCH);
    if (!model->activations.known)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN,
            "the summary holds no output shapes, so the activations are not known");
    if ((double)model->parameters_hidden > hidden_share_max * (double)model->parameters)
        return estimate_note(ret_estimate, ESTIMATE_UNKNOWN,
            "the summary hides the layers inside its blocks: print it with a greater depth");
    int64_t a = sum_activations(model, &unshaped);
    if (!calculate_total(batch.value, a, model->parameters, &bytes))
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
