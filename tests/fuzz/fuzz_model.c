/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of any bytes: a model whose layers add up, or a fault with words; and an estimate of
 * it, or why not. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "estimator/estimator.h"
#include "fuzz.h"
#include "model/input_shape.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

/* Reads every byte, so that a sanitizer sees a span that points elsewhere. */
static unsigned touch(struct span s)
{
    unsigned sum = 0;
    for (size_t i = 0; i < s.size; i++)
        sum += (unsigned char)s.at[i];
    return sum;
}

static void check_layer(const struct layer *layer)
{
    volatile unsigned sink = touch(layer->type) + touch(layer->name) + touch(layer->args);
    (void)sink;
    require(layer->line > 0 && layer->depth >= 0 && layer->depth < MODEL_DEPTH_MAX);
    require(layer->rank >= 0 && layer->rank <= MODEL_RANK_MAX);
    require(layer->parameters >= 0 && layer->activations.value >= 0);
    require(layer_kind_name(layer->kind) != NULL);
    for (int i = 0; i < layer->rank; i++)
        require(layer->shape[i] > 0);
}

static void check_model(const struct model *model)
{
    int64_t parameters = 0, activations = 0;
    require(model->format < SUMMARY_FORMATS && model->n_layers > 0 &&
            model->n_layers <= MODEL_LAYERS_MAX);
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        check_layer(layer);
        parameters += layer->parameters;
        activations += layer->leaf && layer->kind != LAYER_INPUT ? layer->activations.value : 0;
    }
    require(parameters - model->parameters_shared == model->parameters && model->parameters >= 0);
    require(!model->activations.known || activations == model->activations.value);
    require(model->parameters_hidden >= 0 && model->parameters_hidden <= parameters);
    require(!model->batch.known || model->batch.value > 0);
    for (size_t i = 0; i < model_warnings(model); i++)
        require(model->warnings[i][0] != '\0' &&
                memchr(model->warnings[i], '\0', sizeof model->warnings[i]) != NULL);
}

static void check_estimate(
    const char *estimator, const struct model *model, int64_t batch, int64_t sequence)
{
    struct estimate_request request = {.model = model, .batch = batch, .sequence_length = sequence};
    struct estimate estimate;
    struct fault fault = {""};
    int r = estimate_run(estimator, &request, &fault, &estimate);
    if (r < 0)
        require(fault.text[0] != '\0');
    else
        require(r == ESTIMATE_UNKNOWN ? estimate.note[0] != '\0'
                                      : estimate.bytes.valid && estimate.bytes.value >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model *model = NULL;
    static const char *const estimators[] = {"summary", "horus", "graph"};
    struct fault fault = {""};
    int r = model_parse((const char *)data, size, &fault, &model);
    if (r < 0) {
        require(fault.text[0] != '\0');
        return 0;
    }
    check_model(model);
    for (size_t i = 0; i < ARRAY_SIZE(estimators); i++) {
        check_estimate(estimators[i], model, ESTIMATE_NOT_GIVEN, 0);
        check_estimate(estimators[i], model, 128, 512);
        check_estimate(estimators[i], model, ESTIMATE_BATCH_MAX, 0);
    }
    const struct input_shape input = {.rank = 3, .size = {3, 224, 224}};
    if (model_set_input(model, &input, &fault) == 0) {
        check_model(model);
        check_estimate("graph", model, 128, 0);
    }
    model_destroy(model);
    return 0;
}
