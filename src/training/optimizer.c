/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimizers of a training: a table, and one parser over it. States and temporaries are counted
 * in torch.optim's foreach code: Adam keeps two means per parameter and forms one square root
 * during its step.
 */
#include "training/optimizer.h"

#include <stddef.h>
#include <strings.h>

const char *const optimizer_names[OPTIMIZER_OTHER] = {
    "sgd", "momentum", "adam", "adamw", "rmsprop", "adagrad", NULL};

static const struct {
    const char *alias;
    struct optimizer_traits traits;
} table[OPTIMIZERS] = {
    [OPTIMIZER_SGD] = {NULL, {0, 0}},
    [OPTIMIZER_MOMENTUM] = {"sgdm", {1, 0}},
    [OPTIMIZER_ADAM] = {NULL, {2, 1}},
    [OPTIMIZER_ADAMW] = {NULL, {2, 1}},
    [OPTIMIZER_RMSPROP] = {NULL, {1, 1}},
    [OPTIMIZER_ADAGRAD] = {NULL, {1, 1}},
};

enum optimizer optimizer_parse(const char *text)
{
    if (!text || !*text)
        return OPTIMIZER_NOT_GIVEN;
    for (enum optimizer o = OPTIMIZER_SGD; o < OPTIMIZER_OTHER; o++)
        if (strcasecmp(text, optimizer_name(o)) == 0 ||
            (table[o].alias && strcasecmp(text, table[o].alias) == 0))
            return o;
    return OPTIMIZER_OTHER;
}

const char *optimizer_name(enum optimizer optimizer)
{
    if (optimizer == OPTIMIZER_NOT_GIVEN)
        return "";
    return optimizer == OPTIMIZER_OTHER ? "other" : optimizer_names[optimizer - 1];
}

enum optimizer optimizer_assumed(enum optimizer optimizer)
{
    return optimizer == OPTIMIZER_NOT_GIVEN || optimizer == OPTIMIZER_OTHER ? OPTIMIZER_ADAM
                                                                            : optimizer;
}

const struct optimizer_traits *optimizer_traits(enum optimizer optimizer)
{
    return &table[optimizer_assumed(optimizer)].traits;
}
