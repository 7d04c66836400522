/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs of GPUMemNet (the RAD thesis, chapter 5): counts of a network's layers, its sizes, the
 * batch, and the sequence of its layers. Two inputs are added, since colloc's data vary what the
 * thesis kept fixed: the optimizer's states per parameter, and whether the pass runs in half
 * precision.
 */
#ifndef COLLOC_GPUMEMNET_GPUMEMNET_FEATURES_H
#define COLLOC_GPUMEMNET_GPUMEMNET_FEATURES_H

#include <stddef.h>

#include "estimator/estimator.h"

/* Each family has separate networks. */
enum gpumemnet_family { GPUMEMNET_MLP, GPUMEMNET_CNN, GPUMEMNET_TRANSFORMER, GPUMEMNET_FAMILIES };

enum gpumemnet_value {
    VALUE_DEPTH, /* layers that do work */
    VALUE_LINEARS,
    VALUE_CONVS,
    VALUE_NORMS,
    VALUE_DROPOUTS,
    VALUE_BATCH,
    VALUE_PARAMETERS,
    VALUE_ACTIVATIONS, /* per sample */
    VALUE_BATCH_ACTIVATIONS,
    VALUE_FUNCTION_SIN, /* of the first activation function, as an angle */
    VALUE_FUNCTION_COS,
    VALUE_STATES,
    VALUE_HALF,
    GPUMEMNET_VALUES,
};

enum { TOKEN_TYPE, TOKEN_ACTIVATIONS, TOKEN_PARAMETERS, TOKEN_SIZE };

struct gpumemnet_features {
    enum gpumemnet_family family;
    float value[GPUMEMNET_VALUES]; /* sizes and counts as log(1 + x) */
    float (*tokens)[TOKEN_SIZE];   /* one per layer in its order */
    size_t n_tokens;
};

/* Returns "mlp", "cnn" or "transformer". */
const char *gpumemnet_family_name(enum gpumemnet_family family);

/*
 * Calculates the inputs from the request's model, batch, optimizer and precision. Adam and fp32, as
 * in the thesis, are the defaults.
 *
 * ret_why: with ESTIMATE_UNKNOWN, the reason as text.
 *
 * Returns 0, and gpumemnet_features_fini must follow; ESTIMATE_UNKNOWN; or -ENOMEM.
 */
int gpumemnet_features_init(const struct estimate_request *request,
    struct gpumemnet_features *ret_features, const char **ret_why);
void gpumemnet_features_fini(struct gpumemnet_features *features);

#endif
