/* SPDX-License-Identifier: Apache-2.0 */
/* The table of plans: a row for each network that `colloc memnet train` makes, with the bin width
 * of the thesis. */
#include "memnet/net_plan.h"

#include "base/array.h"

static const struct net_plan plans[] = {
    {"mlp-mlp-1gib", GPUMEMNET_MLP, GPUMEMNET_ENSEMBLE, 1024},
    {"mlp-mlp-2gib", GPUMEMNET_MLP, GPUMEMNET_ENSEMBLE, 2048},
    {"mlp-transformer-1gib", GPUMEMNET_MLP, GPUMEMNET_ENCODER, 1024},
    {"mlp-transformer-2gib", GPUMEMNET_MLP, GPUMEMNET_ENCODER, 2048},
    {"cnn-mlp-8gib", GPUMEMNET_CNN, GPUMEMNET_ENSEMBLE, 8192},
    {"cnn-transformer-8gib", GPUMEMNET_CNN, GPUMEMNET_ENCODER, 8192},
    {"transformer-mlp-8gib", GPUMEMNET_TRANSFORMER, GPUMEMNET_ENSEMBLE, 8192},
    {"transformer-transformer-8gib", GPUMEMNET_TRANSFORMER, GPUMEMNET_ENCODER, 8192},
};

const struct net_plan *net_plan_at(size_t i)
{
    return i < ARRAY_SIZE(plans) ? &plans[i] : NULL;
}
