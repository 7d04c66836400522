/* SPDX-License-Identifier: Apache-2.0 */
/* The trained networks in the program: the files of data/memnet as arrays (scripts/embed). */
#include "estimator/gpumemnet/gpumemnet_built_in.h"

#include <string.h>

#include "base/array.h"
#include "estimator/gpumemnet/built_in_cnn_mlp_8gib.h"
#include "estimator/gpumemnet/built_in_cnn_transformer_8gib.h"
#include "estimator/gpumemnet/built_in_mlp_mlp_1gib.h"
#include "estimator/gpumemnet/built_in_mlp_mlp_2gib.h"
#include "estimator/gpumemnet/built_in_mlp_transformer_1gib.h"
#include "estimator/gpumemnet/built_in_mlp_transformer_2gib.h"
#include "estimator/gpumemnet/built_in_transformer_mlp_8gib.h"
#include "estimator/gpumemnet/built_in_transformer_transformer_8gib.h"

#define ROW(name, family, method, text)                                                            \
    {                                                                                              \
        name, family, method, text, sizeof text - 1                                                \
    }

static const struct gpumemnet_built_in table[] = {
    ROW("mlp-mlp-1gib", GPUMEMNET_MLP, GPUMEMNET_ENSEMBLE, built_in_mlp_mlp_1gib),
    ROW("mlp-mlp-2gib", GPUMEMNET_MLP, GPUMEMNET_ENSEMBLE, built_in_mlp_mlp_2gib),
    ROW("mlp-transformer-1gib", GPUMEMNET_MLP, GPUMEMNET_ENCODER, built_in_mlp_transformer_1gib),
    ROW("mlp-transformer-2gib", GPUMEMNET_MLP, GPUMEMNET_ENCODER, built_in_mlp_transformer_2gib),
    ROW("cnn-mlp-8gib", GPUMEMNET_CNN, GPUMEMNET_ENSEMBLE, built_in_cnn_mlp_8gib),
    ROW("cnn-transformer-8gib", GPUMEMNET_CNN, GPUMEMNET_ENCODER, built_in_cnn_transformer_8gib),
    ROW("transformer-mlp-8gib", GPUMEMNET_TRANSFORMER, GPUMEMNET_ENSEMBLE,
        built_in_transformer_mlp_8gib),
    ROW("transformer-transformer-8gib", GPUMEMNET_TRANSFORMER, GPUMEMNET_ENCODER,
        built_in_transformer_transformer_8gib),
};

const struct gpumemnet_built_in *gpumemnet_built_in_at(size_t i)
{
    return i < ARRAY_SIZE(table) ? &table[i] : NULL;
}

const struct gpumemnet_built_in *gpumemnet_built_in_find(const char *name)
{
    const struct gpumemnet_built_in *found;
    for (size_t i = 0; (found = gpumemnet_built_in_at(i)) != NULL; i++)
        if (strcmp(found->name, name) == 0)
            break;
    return found;
}
