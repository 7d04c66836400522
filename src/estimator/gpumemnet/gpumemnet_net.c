/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of a trained network: inputs scaled as in training, through the layers of the layout,
 * to the probabilities of the classes, each of which is a range of memory.
 */
#include "estimator/gpumemnet/gpumemnet_net.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "estimator/gpumemnet/gpumemnet_attention.h"
#include "estimator/gpumemnet/gpumemnet_places.h"
#include "estimator/gpumemnet/softmax.h"

void gpumemnet_net_fini(struct gpumemnet_net *net)
{
    free(net->weights);
    *net = (struct gpumemnet_net){0};
}

/* ---- one row through a layer ---- */

static void apply_linear(
    const float *weights, const struct linear_layout *layout, const float *x, float *ret_y)
{
    const float *w = weights + layout->weight, *b = weights + layout->bias;
    for (int o = 0; o < layout->out; o++) {
        float sum = b[o];
        for (int i = 0; i < layout->in; i++)
            sum += w[o * layout->in + i] * x[i];
        ret_y[o] = sum;
    }
}

static void apply_relu(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = x[i] > 0 ? x[i] : 0;
}

static void apply_block(
    const float *weights, const struct block_layout *layout, const float *x, float *ret_y)
{
    const struct norm_layout *norm = &layout->norm;
    apply_linear(weights, &layout->linear, x, ret_y);
    for (int i = 0; i < norm->width; i++) {
        float deviation = sqrtf(weights[norm->variance + i] + GPUMEMNET_EPSILON);
        ret_y[i] = (ret_y[i] - weights[norm->mean + i]) / deviation * weights[norm->scale + i] +
                   weights[norm->shift + i];
    }
    apply_relu(ret_y, norm->width);
}

/* ---- the encoder ---- */

/* Memory for one sequence on its way through an encoder. */
struct sequence {
    size_t n, rows; /* rows: n rounded up to whole LANES */
    float *x;       /* for each LANES positions the channels, of LANES each */
    float *qkv; /* 3 x width rows of `rows`, so that the loops over the sequence run along memory */
    float *scores;
};

/* Returns the first channel of position `t`; the next is LANES floats on. */
static float *channels_of(const struct sequence *s, int width, size_t t)
{
    return s->x + t / LANES * LANES * (size_t)width + t % LANES;
}

static void encoder_layer(
    const float *weights, const struct encoder_layer_layout *layer, int width, struct sequence *s)
{
    size_t part = (size_t)width * s->rows;
    const struct attention attention = {.n = s->n,
        .rows = s->rows,
        .width = width,
        .q = s->qkv,
        .k = s->qkv + part,
        .v = s->qkv + 2 * part,
        .scores = s->scores};
    float mixed[GPUMEMNET_WIDTH_MAX * LANES];
    for (size_t t = 0; t < s->n; t += LANES)
        places_project(weights, &layer->qkv, channels_of(s, width, t), s->rows, s->qkv + t);
    for (size_t t = 0; t < s->n; t += LANES) {
        attention_take(&attention, t, mixed);
        places_finish(weights, layer, mixed, channels_of(s, width, t));
    }
}

/* The token's channels, with its position. */
static void embed_token(const float *weights, const struct encoder_layout *encoder,
    const struct gpumemnet_waves *waves, const float *token, size_t t, const struct sequence *s)
{
    float first[GPUMEMNET_WIDTH_MAX], x[GPUMEMNET_WIDTH_MAX];
    apply_block(weights, &encoder->embedding[0], token, first);
    apply_block(weights, &encoder->embedding[1], first, x);
    gpumemnet_position(waves, t, x);
    for (int c = 0; c < encoder->width; c++)
        channels_of(s, encoder->width, t)[c * LANES] = x[c];
}

static void run_encoder(const float *weights, const struct encoder_layout *encoder,
    const float *tokens, struct sequence *s, float *ret_sum)
{
    int width = encoder->width;
    struct gpumemnet_waves waves;
    gpumemnet_waves_init(width, &waves);
    memset(s->x, 0, s->rows * (size_t)width * sizeof *s->x);
    for (size_t t = 0; t < s->n; t++)
        embed_token(weights, encoder, &waves, tokens + t * TOKEN_SIZE, t, s);
    for (int i = 0; i < encoder->n_layers; i++)
        encoder_layer(weights, &encoder->layer[i], width, s);
    memset(ret_sum, 0, (size_t)width * sizeof *ret_sum);
    for (size_t t = 0; t < s->n; t++)
        for (int c = 0; c < width; c++)
            ret_sum[c] += channels_of(s, width, t)[c * LANES];
}

static int encode_all(
    const struct gpumemnet_net *net, const float *tokens, size_t n, float *ret_sums)
{
    const size_t rows = (n / LANES + 1) * LANES;
    float *memory = malloc((4 * GPUMEMNET_WIDTH_MAX + LANES) * rows * sizeof *memory);
    if (!memory)
        return -ENOMEM;
    struct sequence s = {.n = n,
        .rows = rows,
        .x = memory,
        .qkv = memory + GPUMEMNET_WIDTH_MAX * rows,
        .scores = memory + 4 * GPUMEMNET_WIDTH_MAX * rows};
    for (int i = 0; i < net->layout.n_encoders; i++) {
        run_encoder(net->weights, &net->layout.encoder[i], tokens, &s, ret_sums);
        ret_sums += net->layout.encoder[i].width;
    }
    free(memory);
    return 0;
}

/* ---- the ensemble ---- */

static void add_member(const struct gpumemnet_net *net, const struct member_layout *member,
    const float *inputs, float *logits)
{
    float a[GPUMEMNET_WIDTH_MAX], b[GPUMEMNET_WIDTH_MAX], own[GPUMEMNET_CLASSES_MAX];
    const float *x = inputs;
    for (int i = 0; i < member->n_blocks; i++) {
        float *y = i % 2 ? b : a;
        apply_block(net->weights, &member->block[i], x, y);
        x = y;
    }
    apply_linear(net->weights, &member->logits, x, own);
    for (int k = 0; k < net->n_classes; k++)
        logits[k] += own[k] / (float)net->layout.n_members;
}

/* Calculates the n_classes logits from scaled inputs. Returns 0 or -ENOMEM. */
static int gpumemnet_net_logits(const struct gpumemnet_net *net, const float *values,
    const float *tokens, size_t n_tokens, float *ret_logits)
{
    const struct gpumemnet_layout *layout = &net->layout;
    float inputs[GPUMEMNET_VALUES + GPUMEMNET_ENCODERS * GPUMEMNET_WIDTH_MAX];
    int before = layout->n_inputs - layout->n_values;
    if (layout->n_encoders && encode_all(net, tokens, n_tokens, inputs) < 0)
        return -ENOMEM;
    memcpy(inputs + before, values, (size_t)layout->n_values * sizeof *inputs);
    memset(ret_logits, 0, (size_t)net->n_classes * sizeof *ret_logits);
    for (int i = 0; i < layout->n_members; i++)
        add_member(net, &layout->member[i], inputs, ret_logits);
    return 0;
}

/* ---- asking ---- */

size_t gpumemnet_net_tokens(
    const struct gpumemnet_net *net, const struct gpumemnet_features *features)
{
    return features->n_tokens < (size_t)net->longest ? features->n_tokens : (size_t)net->longest;
}

/*
 * Scales the inputs.
 *
 * ret_values: room for layout.n_values.
 * ret_tokens: room for TOKEN_SIZE times gpumemnet_net_tokens.
 */
static void gpumemnet_net_scale(const struct gpumemnet_net *net,
    const struct gpumemnet_features *features, float *ret_values, float *ret_tokens)
{
    const struct gpumemnet_scaling *scaling = &net->scaling;
    for (int i = 0; i < net->layout.n_values; i++)
        ret_values[i] = (features->value[net->layout.values[i]] - scaling->mean[i]) *
                        scaling->factor[i];
    for (size_t t = 0; t < gpumemnet_net_tokens(net, features); t++)
        for (int i = 0; i < TOKEN_SIZE; i++)
            ret_tokens[t * TOKEN_SIZE + (size_t)i] = (features->tokens[t][i] -
                                                         scaling->token_mean[i]) *
                                                     scaling->token_factor[i];
}

int gpumemnet_net_ask(const struct gpumemnet_net *net, const struct gpumemnet_features *features,
    float ret_probability[GPUMEMNET_CLASSES_MAX])
{
    float values[GPUMEMNET_VALUES];
    size_t n = gpumemnet_net_tokens(net, features);
    float *tokens = malloc((n + 1) * TOKEN_SIZE * sizeof *tokens);
    if (!tokens)
        return -ENOMEM;
    gpumemnet_net_scale(net, features, values, tokens);
    int r = gpumemnet_net_logits(net, values, tokens, n, ret_probability);
    free(tokens);
    if (r == 0)
        softmax_in_place(ret_probability, (size_t)net->n_classes);
    return r;
}

double gpumemnet_edge_bytes(const struct gpumemnet_net *net, const float *probability)
{
    int best = 0;
    for (int k = 1; k < net->n_classes; k++)
        if (probability[k] > probability[best])
            best = k;
    return (double)((best + 1) * net->bin_mib * MIB);
}

double gpumemnet_quantile_bytes(const struct gpumemnet_net *net, const float *probability, double q)
{
    double below = 0;
    int k = 0;
    while (k < net->n_classes - 1 && below + (double)probability[k] < q)
        below += (double)probability[k++];
    double part = probability[k] > 0 ? (q - below) / (double)probability[k] : 1;
    return ((double)k + (part < 1 ? part : 1)) * (double)(net->bin_mib * MIB);
}
