/* SPDX-License-Identifier: Apache-2.0 */
/* Makes examples of rows: the features are scaled by the mean and deviation of the training rows,
 * and the measured bytes become the class of memory that the network has to predict. The scaling is
 * stored with the network, since estimates must be scaled in the same way. */
#include "memnet/examples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/units.h"

bool examples_accepts(const struct gpumemnet_net *net, const struct task_row *row)
{
    return !row->real && row->features.family == net->family;
}

int examples_class_of(const struct gpumemnet_net *net, double bytes)
{
    double class = bytes / (double)(net->bin_mib * MIB);
    return class < net->n_classes ? (int)class : net->n_classes - 1;
}

/* ---- scaling ---- */

struct spread {
    double n, sum, squares;
};

static void add_value(struct spread *spread, double x)
{
    spread->n++;
    spread->sum += x;
    spread->squares += x * x;
}

/* A value that is constant in training gets the factor 0: the network must not depend on it. */
static void finish_scaling(const struct spread *spread, float *ret_mean, float *ret_factor)
{
    double mean = spread->n ? spread->sum / spread->n : 0;
    double variance = spread->n ? spread->squares / spread->n - mean * mean : 0;
    *ret_mean = (float)mean;
    *ret_factor = variance > 1e-9 ? (float)(1 / sqrt(variance)) : 0;
}

void examples_scaling(const struct dataset *dataset, struct gpumemnet_net *net)
{
    struct spread values[GPUMEMNET_VALUES] = {{0}}, tokens[TOKEN_SIZE] = {{0}};
    for (size_t i = 0; i < dataset->n; i++) {
        const struct task_row *row = &dataset->rows[i];
        const struct gpumemnet_features *features = &row->features;
        if (!examples_accepts(net, row) || row->part != PART_TRAINING)
            continue;
        for (int v = 0; v < net->layout.n_values; v++)
            add_value(&values[v], (double)features->value[net->layout.values[v]]);
        for (size_t t = 0; t < features->n_tokens; t++)
            for (int c = 0; c < TOKEN_SIZE; c++)
                add_value(&tokens[c], (double)features->tokens[t][c]);
        if (net->longest < (int64_t)features->n_tokens)
            net->longest = (int64_t)features->n_tokens;
    }
    for (int v = 0; v < net->layout.n_values; v++)
        finish_scaling(&values[v], &net->scaling.mean[v], &net->scaling.factor[v]);
    for (int c = 0; c < TOKEN_SIZE; c++)
        finish_scaling(&tokens[c], &net->scaling.token_mean[c], &net->scaling.token_factor[c]);
}

/* ---- rows ---- */

static int make_example(
    const struct gpumemnet_net *net, const struct task_row *row, struct example *ret)
{
    ret->n_tokens = gpumemnet_net_tokens(net, &row->features);
    ret->tokens = malloc((ret->n_tokens + 1) * TOKEN_SIZE * sizeof *ret->tokens);
    ret->class = examples_class_of(net, row->bytes);
    if (!ret->tokens)
        return -ENOMEM;
    gpumemnet_net_scale(net, &row->features, ret->values, ret->tokens);
    return 0;
}

int examples_init(const struct dataset *dataset, const struct gpumemnet_net *net,
    enum dataset_part part, struct examples *ret_examples)
{
    int r = 0;
    *ret_examples = (struct examples){.rows = calloc(dataset->n + 1, sizeof *ret_examples->rows)};
    if (!ret_examples->rows)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < dataset->n; i++) {
        const struct task_row *row = &dataset->rows[i];
        if (examples_accepts(net, row) && row->part == part)
            r = make_example(net, row, &ret_examples->rows[ret_examples->n++]);
    }
    return r;
}

void examples_fini(struct examples *examples)
{
    for (size_t i = 0; i < examples->n; i++)
        free(examples->rows[i].tokens);
    free(examples->rows);
    *examples = (struct examples){0};
}
