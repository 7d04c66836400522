/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoders turn the layer sequences into inputs beside the values; the members of the ensemble map
 * the inputs to logits, which are averaged. Backward goes the same way in reverse.
 */
#include "memnet/training_step.h"

#include <math.h>
#include <string.h>

#include "estimator/gpumemnet/softmax.h"
#include "memnet/encoder.h"
#include "memnet/layers.h"

struct step {
    const struct gpumemnet_layout *layout;
    float *weights, *gradients;
    const struct batch *batch;
    struct scratch *scratch;
    struct token_rows tokens;
    struct encoder_tape encoder[GPUMEMNET_ENCODERS];
    struct block_tape member[GPUMEMNET_MEMBERS_MAX][GPUMEMNET_DEPTH_MAX];
    float *inputs, *logits; /* logits become their derivative */
};

static size_t scratch_size(const struct gpumemnet_layout *layout, const struct batch *batch)
{
    size_t tokens = 0, size = 0;
    for (size_t i = 0; i < batch->n; i++)
        tokens += batch->rows[i]->n_tokens;
    for (int i = 0; i < layout->n_encoders; i++)
        size += encoder_scratch(&layout->encoder[i], batch);
    for (int m = 0; m < layout->n_members; m++)
        size += (size_t)layout->member[m].n_blocks *
                (2 * GPUMEMNET_WIDTH_MAX * batch->n + GPUMEMNET_WIDTH_MAX);
    size_t row = 3 * (size_t)layout->n_inputs + 2 * (size_t)layout->n_classes +
                 3 * GPUMEMNET_WIDTH_MAX;
    return size + (layout->n_encoders ? tokens * TOKEN_SIZE : 0) + batch->n * row;
}

/* ---- forward ---- */

static void gather_tokens(struct step *step)
{
    struct token_rows *tokens = &step->tokens;
    tokens->batch = step->batch;
    for (size_t i = 0; i < step->batch->n; i++)
        tokens->n += step->batch->rows[i]->n_tokens;
    float *x = tokens->x = scratch_alloc(step->scratch, tokens->n * TOKEN_SIZE);
    for (size_t i = 0; i < step->batch->n; i++) {
        size_t size = step->batch->rows[i]->n_tokens * TOKEN_SIZE;
        memcpy(x, step->batch->rows[i]->tokens, size * sizeof *x);
        x += size;
    }
}

static void fill_inputs(struct step *step)
{
    const struct gpumemnet_layout *layout = step->layout;
    size_t stride = (size_t)layout->n_inputs;
    float *at = step->inputs = scratch_alloc(step->scratch, step->batch->n * stride);
    if (layout->n_encoders)
        gather_tokens(step);
    for (int i = 0; i < layout->n_encoders; i++) {
        encoder_forward(&layout->encoder[i], step->weights, &step->tokens, step->scratch,
            &step->encoder[i], at, stride);
        at += layout->encoder[i].width;
    }
    for (size_t i = 0; i < step->batch->n; i++)
        memcpy(
            at + i * stride, step->batch->rows[i]->values, (size_t)layout->n_values * sizeof *at);
}

static void add_member(struct step *step, int m, float *own)
{
    const struct member_layout *member = &step->layout->member[m];
    const float *x = step->inputs;
    size_t n = step->batch->n, size = n * (size_t)step->layout->n_classes;
    for (int i = 0; i < member->n_blocks; i++)
        x = block_forward(
            &member->block[i], step->weights, x, n, step->scratch, &step->member[m][i]);
    linear_forward(step->scratch->blas, &member->logits, step->weights, x, n, own);
    for (size_t i = 0; i < size; i++)
        step->logits[i] += own[i] / (float)step->layout->n_members;
}

static void step_forward(struct step *step)
{
    size_t size = step->batch->n * (size_t)step->layout->n_classes;
    fill_inputs(step);
    step->logits = scratch_alloc(step->scratch, size);
    float *own = scratch_alloc(step->scratch, size);
    memset(step->logits, 0, size * sizeof *step->logits);
    for (int m = 0; m < step->layout->n_members; m++)
        add_member(step, m, own);
}

/* Returns the mean cross-entropy and replaces the logits by its derivative. */
static double loss_of(struct step *step)
{
    size_t n = step->batch->n, classes = (size_t)step->layout->n_classes;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        float *p = step->logits + i * classes;
        size_t class = (size_t)step->batch->rows[i]->class;
        softmax_in_place(p, classes);
        sum -= log(fmax((double)p[class], 1e-30));
        p[class] -= 1;
        for (size_t k = 0; k < classes; k++)
            p[k] /= (float)n;
    }
    return sum / (double)n;
}

/* ---- backward ---- */

/* Adds to the derivative of the inputs. */
static void member_backward(struct step *step, int m, const float *dlogits, float *dinputs)
{
    const struct member_layout *member = &step->layout->member[m];
    size_t n = step->batch->n, inputs = n * (size_t)step->layout->n_inputs,
           mark = step->scratch->used;
    float *d = scratch_alloc(step->scratch, n * GPUMEMNET_WIDTH_MAX);
    float *next = scratch_alloc(step->scratch, n * GPUMEMNET_WIDTH_MAX);
    float *dx = scratch_alloc(step->scratch, inputs);
    linear_backward(step->scratch->blas, &member->logits, step->weights,
        step->member[m][member->n_blocks - 1].y, dlogits, n, step->gradients, d);
    for (int i = member->n_blocks - 1; i >= 0; i--) {
        block_backward(&member->block[i], step->weights, &step->member[m][i], d, n, step->scratch,
            step->gradients, i ? next : dx);
        float *swap = d;
        d = next;
        next = swap;
    }
    for (size_t i = 0; i < inputs; i++)
        dinputs[i] += dx[i];
    step->scratch->used = mark;
}

static void step_backward(struct step *step)
{
    const struct gpumemnet_layout *layout = step->layout;
    size_t n = step->batch->n, stride = (size_t)layout->n_inputs;
    float *dinputs = scratch_alloc(step->scratch, n * stride);
    memset(dinputs, 0, n * stride * sizeof *dinputs);
    for (size_t i = 0; i < n * (size_t)layout->n_classes; i++)
        step->logits[i] /= (float)layout->n_members;
    for (int m = 0; m < layout->n_members; m++)
        member_backward(step, m, step->logits, dinputs);
    for (int i = 0; i < layout->n_encoders; i++) {
        encoder_backward(&layout->encoder[i], step->weights, &step->tokens, &step->encoder[i],
            dinputs, stride, step->scratch, step->gradients);
        dinputs += layout->encoder[i].width;
    }
}

int training_step_run(const struct gpumemnet_layout *layout, float *weights,
    const struct batch *batch, struct scratch *scratch, float *gradients, double *ret_loss)
{
    struct step step = {.layout = layout,
        .weights = weights,
        .gradients = gradients,
        .batch = batch,
        .scratch = scratch};
    int r = scratch_reserve(scratch, scratch_size(layout, batch));
    if (r < 0)
        return r;
    step_forward(&step);
    *ret_loss = loss_of(&step);
    step_backward(&step);
    return 0;
}
