/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the room share: rows made up by formula. */
#ifndef TESTS_MEMNET_UNIT_H
#define TESTS_MEMNET_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "memnet/dataset.h"
#include "trace/seeded_random.h"

/* A perceptron of `depth` linear layers as wide as `width`, whose memory is what such a training
 * takes, about. */
static inline void make_row(struct task_row *row, size_t id, int depth, double width, int64_t batch)
{
    double parameters = depth * width * (width + 1), activations = depth * width;
    *row = (struct task_row){
        .batch = batch, .bytes = 700.0 * MIB + 20 * parameters + 8 * (double)batch * activations};
    row->part = id % 10 < 7 ? PART_TRAINING : id % 10 < 9 ? PART_VALIDATION : PART_TEST;
    snprintf(row->id, sizeof row->id, "row%zu", id);
    snprintf(row->family, sizeof row->family, "mlp-%s", depth % 2 ? "odd" : "even");
    row->optimizer = OPTIMIZER_ADAM;
    row->precision = PRECISION_FP32;
    struct gpumemnet_features *features = &row->features;
    features->value[VALUE_DEPTH] = features->value[VALUE_LINEARS] = log1pf((float)depth);
    features->value[VALUE_BATCH] = (float)log1p((double)batch);
    features->value[VALUE_PARAMETERS] = (float)log1p(parameters);
    features->value[VALUE_ACTIVATIONS] = (float)log1p(activations);
    features->value[VALUE_BATCH_ACTIVATIONS] = (float)log1p((double)batch * activations);
    features->value[VALUE_STATES] = 2;
    features->n_tokens = (size_t)depth;
    features->tokens = calloc(features->n_tokens, sizeof *features->tokens);
    assert_non_null(features->tokens);
    for (int i = 0; i < depth; i++) {
        features->tokens[i][TOKEN_TYPE] = (float)(1 + i % 3);
        features->tokens[i][TOKEN_ACTIVATIONS] = (float)log1p(width);
        features->tokens[i][TOKEN_PARAMETERS] = (float)log1p(width * (width + 1));
    }
}

static inline struct dataset make_dataset(size_t n)
{
    struct dataset dataset = {.rows = calloc(n, sizeof *dataset.rows), .n = n};
    struct seeded_random random = {.state = 7};
    assert_non_null(dataset.rows);
    for (size_t i = 0; i < n; i++) {
        int depth = 2 + (int)seeded_random_below(&random, 9);
        double width = floor(exp(seeded_random_fraction(&random) * log(6000.0)));
        make_row(
            &dataset.rows[i], i, depth, width, 1 + (int64_t)seeded_random_below(&random, 1024));
    }
    return dataset;
}

#endif
