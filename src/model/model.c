/* SPDX-License-Identifier: Apache-2.0 */
/* A model in memory: its sums over the layers, its warnings and its end. */
#include "model/model.h"

#include <errno.h>
#include <stdlib.h>

const char *summary_format_name(enum summary_format format)
{
    static const char *const names[SUMMARY_FORMATS] = {
        [SUMMARY_TORCHINFO] = "torchinfo",
        [SUMMARY_TORCHSUMMARY] = "torchsummary",
        [SUMMARY_KERAS] = "keras",
        [SUMMARY_REPR] = "repr",
        [SUMMARY_EXPORT] = "export",
    };
    return names[format];
}

void model_destroy(struct model *model)
{
    if (!model)
        return;
    free(model->layers);
    free(model->text);
    free(model);
}

size_t model_warnings(const struct model *model)
{
    return model->n_warnings < MODEL_WARNINGS_MAX ? model->n_warnings : MODEL_WARNINGS_MAX;
}

/* Adds one layer to the sums. Returns false when a sum does not fit 64 bits. */
static bool add_up(struct model *model, const struct layer *layer)
{
    if (__builtin_add_overflow(model->parameters, layer->parameters, &model->parameters))
        return false;
    if (layer->hides)
        model->parameters_hidden += layer->parameters; /* part of `parameters` */
    if (!layer->leaf || layer->kind == LAYER_INPUT)
        return true;
    model->n_leaves++;
    model->n_leaves_unknown += layer->kind == LAYER_OTHER;
    model->n_leaves_unshaped += !layer->activations.known;
    model->activations.known |= layer->activations.known;
    return !__builtin_add_overflow(
        model->activations.value, layer->activations.value, &model->activations.value);
}

int model_sum_up(struct model *model, struct fault *fault)
{
    for (size_t i = 0; i < model->n_layers; i++)
        if (!add_up(model, &model->layers[i]))
            return fault_set(fault, ERANGE, "line %d: the sums over the layers are beyond 64 bits",
                model->layers[i].line);
    if (!model->activations.known)
        model->activations.value = 0;
    return 0;
}
