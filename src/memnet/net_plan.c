/* SPDX-License-Identifier: Apache-2.0 */
/* The table of plans: a row for each network that `colloc memnet train` makes, with the bin width
 * of the thesis and the quality that the thesis prints for it, to be compared with. */
#include "memnet/net_plan.h"

#include "base/array.h"

static const struct net_plan plans[] = {
    {"mlp-mlp-1gib", GPUMEMNET_MLP, GPUMEMNET_ENSEMBLE, 1024, .9542, .9251, .9542, .9386},
    {"mlp-mlp-2gib", GPUMEMNET_MLP, GPUMEMNET_ENSEMBLE, 2048, .9706, .9621, .9706, .9662},
    {"mlp-transformer-1gib", GPUMEMNET_MLP, GPUMEMNET_ENCODER, 1024, .9673, .9599, .9673, .9634},
    {"mlp-transformer-2gib", GPUMEMNET_MLP, GPUMEMNET_ENCODER, 2048, .9804, .9707, .9804, .9755},
    {"cnn-mlp-8gib", GPUMEMNET_CNN, GPUMEMNET_ENSEMBLE, 8192, .8825, .8816, .8825, .8803},
    {"cnn-transformer-8gib", GPUMEMNET_CNN, GPUMEMNET_ENCODER, 8192, .8449, .8443, .8431, .8431},
    {"transformer-mlp-8gib", GPUMEMNET_TRANSFORMER, GPUMEMNET_ENSEMBLE, 8192, .8552, .8524, .8552,
        .8494},
    {"transformer-transformer-8gib", GPUMEMNET_TRANSFORMER, GPUMEMNET_ENCODER, 8192, .8650, .8650,
        .8650, .8596},
};

const struct net_plan *net_plan_at(size_t i)
{
    return i < ARRAY_SIZE(plans) ? &plans[i] : NULL;
}
