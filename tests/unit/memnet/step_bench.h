/* SPDX-License-Identifier: Apache-2.0 */
/* A network with random weights and a batch of random rows, to take steps of training with. */
#ifndef TESTS_MEMNET_STEP_BENCH_H
#define TESTS_MEMNET_STEP_BENCH_H

#include "unit.h"

#include "memnet/initial_weights.h"
#include "memnet/training_step.h"

enum { ROWS = 128, CLASSES = 3, TENSORS_MAX = 1000 };

struct tensor {
    const char *what;
    size_t at, n;
};

struct bench {
    struct gpumemnet_layout layout;
    struct tensor tensor[TENSORS_MAX];
    size_t n_tensors;
    struct example rows[ROWS];
    const struct example *order[ROWS];
    struct batch batch;
    struct blas blas;
    struct scratch scratch;
    float *weights, *gradients, *other;
    struct seeded_random random;
};

static inline void add_tensor(struct bench *bench, const char *what, size_t at, int n)
{
    assert_true(bench->n_tensors < TENSORS_MAX);
    bench->tensor[bench->n_tensors++] = (struct tensor){what, at, (size_t)n};
}

static inline void add_linear(struct bench *bench, const struct linear_layout *linear)
{
    add_tensor(bench, "weight", linear->weight, linear->in * linear->out);
    add_tensor(bench, "bias", linear->bias, linear->out);
}

static inline void add_norm(struct bench *bench, const struct norm_layout *norm)
{
    add_tensor(bench, "scale", norm->scale, norm->width);
    add_tensor(bench, "shift", norm->shift, norm->width);
}

static inline void add_block(struct bench *bench, const struct block_layout *block)
{
    add_linear(bench, &block->linear);
    add_norm(bench, &block->norm);
}

static inline void list_tensors(struct bench *bench)
{
    const struct gpumemnet_layout *layout = &bench->layout;
    for (int e = 0; e < layout->n_encoders; e++) {
        add_block(bench, &layout->encoder[e].embedding[0]);
        add_block(bench, &layout->encoder[e].embedding[1]);
        for (int i = 0; i < layout->encoder[e].n_layers; i++) {
            const struct encoder_layer_layout *layer = &layout->encoder[e].layer[i];
            add_linear(bench, &layer->qkv);
            add_linear(bench, &layer->projection);
            add_linear(bench, &layer->up);
            add_linear(bench, &layer->down);
            add_norm(bench, &layer->norm_attention);
            add_norm(bench, &layer->norm_feed_forward);
        }
    }
    for (int m = 0; m < layout->n_members; m++) {
        for (int i = 0; i < layout->member[m].n_blocks; i++)
            add_block(bench, &layout->member[m].block[i]);
        add_linear(bench, &layout->member[m].logits);
    }
}

static inline void fill_rows(struct bench *bench)
{
    for (int i = 0; i < ROWS; i++) {
        struct example *row = &bench->rows[i];
        row->class = (int)seeded_random_below(&bench->random, CLASSES);
        row->n_tokens = 1 + (size_t)i % 5;
        row->tokens = calloc(row->n_tokens * TOKEN_SIZE, sizeof *row->tokens);
        assert_non_null(row->tokens);
        for (int v = 0; v < bench->layout.n_values; v++)
            row->values[v] = (float)seeded_random_normal(&bench->random);
        for (size_t t = 0; t < row->n_tokens * TOKEN_SIZE; t++)
            row->tokens[t] = (float)seeded_random_normal(&bench->random);
        bench->order[i] = row;
    }
}

static inline struct bench *bench_create(enum gpumemnet_family family, enum gpumemnet_method method)
{
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    struct fault fault;
    if (blas_open(&fault, &bench->blas) < 0)
        fail_msg("%s", fault.text);
    bench->scratch.blas = &bench->blas;
    bench->random.state = 3;
    gpumemnet_layout_init(family, method, CLASSES, &bench->layout);
    list_tensors(bench);
    fill_rows(bench);
    bench->batch = (struct batch){bench->order, ROWS};
    bench->weights = calloc(bench->layout.size, sizeof(float));
    bench->gradients = calloc(bench->layout.size, sizeof(float));
    bench->other = calloc(bench->layout.size, sizeof(float));
    assert_true(bench->weights && bench->gradients && bench->other);
    initial_weights_draw(&bench->layout, &bench->random, bench->weights);
    for (size_t i = 0; i < bench->n_tensors; i++) /* away from the zeros of the start */
        for (size_t j = 0; j < bench->tensor[i].n; j++)
            bench->weights[bench->tensor[i].at + j] += 0.1f *
                                                       (float)seeded_random_normal(&bench->random);
    return bench;
}

static inline void bench_destroy(struct bench *bench)
{
    for (int i = 0; i < ROWS; i++)
        free(bench->rows[i].tokens);
    free(bench->weights);
    free(bench->gradients);
    free(bench->other);
    scratch_fini(&bench->scratch);
    blas_close(&bench->blas);
    free(bench);
}

static inline double loss_at(struct bench *bench, float *weights)
{
    double loss;
    memset(bench->gradients, 0, bench->layout.size * sizeof(float));
    assert_int_equal(training_step_run(&bench->layout, weights, &bench->batch, &bench->scratch,
                         bench->gradients, &loss),
        0);
    return loss;
}

#endif
