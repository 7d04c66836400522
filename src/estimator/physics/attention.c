/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention between its projections: a function call that no summary lists.
 *
 * Autograd keeps query, key, value and the result, and one number (the logarithm of the softmax's
 * sum) for each head and token, since fused kernels compute scores anew in the backward pass. Where
 * a library stores the scores (library_rules.h), or the summary lists softmax as a layer, the
 * scores are kept too: one for each head and pair of tokens.
 *
 * There are two cases. If the text shows three linear layers, or one of three times the width, in a
 * module that is attention by its name, attention follows the last of them (attention_leave). If
 * the module uses its weights in functions, the module becomes one operation
 * (attention_take_whole).
 *
 * Example: 12 heads over 128 tokens have 12 * 128 * 128 scores, 0.75 MiB in 32 bit for each sample
 * and layer.
 */
#include "estimator/physics/attention.h"

#include <math.h>

#include "estimator/physics/library_rules.h"
#include "estimator/physics/trained_part.h"
#include "model/module_tree.h"

enum {
    /* Chosen: the width of a head in nearly all published transformers (BERT, GPT-2, ViT). Only
     * statistics and stored scores depend on it. */
    HEAD_WIDTH = 64,
    HEADS_MAX = 32,       /* chosen: of published models; a larger quotient is no number of heads */
    MASK_BYTES = 1,       /* of a bool tensor: dropout's mask */
    SOFTMAX_BYTES = 4,    /* softmax is computed in 32 bit, also under autocast */
    STATISTICS_BYTES = 4, /* for each head and token, kept by fused kernels */
    PACKED = 3,           /* query, key and value in one tensor */
    PROJECTIONS_COPIES = 5, /* query, key and value, the result, and the result in another layout */
    COSINE_COPIES = 3,      /* queries and keys over their norms, and the norms' input */
    CHANNEL_COPIES =
        3, /* between channels: queries and keys over their norms, and values, in another
                           layout */
    /* Attention with relative positions (arXiv:1901.02860, 1906.08237) keeps two more copies of the
     * queries, each with a bias; and the keys of positions, twice as many as tokens, with their
     * input. */
    POSITION_COPIES = 2 + 2 + 2,
    POSITION_WEIGHTS = 5, /* square weights: query, key, value, output and positions */
};

/* Swin (arXiv:2103.14030, 2111.09883): windows of 7 x 7 tokens, 8 x 8 in the second version, whose
 * heads are 32 wide. */
enum { WINDOW_TOKENS = 49, COSINE_WINDOW_TOKENS = 64, WINDOW_HEAD_WIDTH = 32 };

/*
 * Returns the bytes that are kept for each score: its softmax in 32 bit; under autocast also the
 * 16-bit copy for the product; with dropout also the mask and the result.
 */
static double pair_bytes(const struct builder *builder)
{
    bool half = tape_is_half(builder->tape);
    double element = half ? HALF_BYTES : SINGLE_BYTES;
    double dropout = builder->drops_within ? MASK_BYTES + element : 0;
    return SOFTMAX_BYTES + (half ? HALF_BYTES : 0) + dropout;
}

/* other_bytes: kept beside the scores. */
static int keep_pairs(struct builder *builder, double pairs, double other_bytes)
{
    struct op op = {.kind = LAYER_ATTENTION,
        .layer = TAPE_NONE,
        .inputs = {builder->current, TAPE_NONE, TAPE_NONE},
        .kept_bytes = pair_bytes(builder) * pairs + other_bytes};
    op.output = builder_tensor(builder, builder_extent(builder, builder->current),
        builder->tape->tensors[builder->current].element_bytes);
    return op.output < 0 ? op.output : builder_op(builder, &op);
}

static bool learns_biases(const struct builder *builder, const struct layer *layer)
{
    return layer->rank == 2 && layer->parameters > 0 &&
           builder->extents.sequence == SEQUENCE_UNKNOWN;
}

/*
 * A module over the tokens of an image with parameters beside its projections learns biases of its
 * scores, so the scores are stored. The number of heads follows from these parameters and the
 * tokens, else from the usual width of a head.
 */
static int biased_scores(struct builder *builder, const struct layer *layer)
{
    if (!learns_biases(builder, layer) || builder->current == TAPE_NONE)
        return 0;
    double n = (double)layer->shape[0], heads = (double)layer->parameters / n, tokens = n;
    struct extent now = builder_extent(builder, builder->current);
    if (heads != floor(heads) || heads > HEADS_MAX) {
        heads = (double)layer->shape[1] / HEAD_WIDTH;
        if (now.last > 0 && fmod(now.elements / now.last, n) == 0)
            tokens = now.elements / now.last; /* of all windows */
    }
    return keep_pairs(builder, heads * n * tokens, 0);
}

/*
 * Tests whether a block lists dropout over scores between its channels instead of its tokens,
 * [heads, channels of a head, channels of a head] (cross-covariance attention, arXiv:2106.09681).
 */
static bool compares_channels(const struct builder *builder, const struct layer *block)
{
    const struct model *model = builder->extents.model;
    const struct layer *end = model->layers + model->n_layers;
    if (block->rank != 2)
        return false;
    for (const struct layer *layer = block + 1; layer < end && layer->depth > block->depth; layer++)
        if (layer->kind == LAYER_DROPOUT && layer->rank == 3 &&
            layer->shape[1] == layer->shape[2] && layer->shape[1] != block->shape[0] &&
            layer->shape[0] * layer->shape[1] == block->shape[1])
            return true;
    return false;
}

/* Appends the products with stored scores, which read query, key and value in another layout. Heads
 * may be narrower in keys than in values. */
static int append_products(struct builder *builder)
{
    int packed = builder->current;
    double width = builder->scope.awaited_width;
    struct extent extent = builder_extent(builder, packed);
    builder->scope.awaited_width = 0;
    double bytes = builder->tape->tensors[packed].element_bytes;
    struct op op = {.kind = LAYER_ATTENTION,
        .layer = TAPE_NONE,
        .inputs = {packed, TAPE_NONE, TAPE_NONE},
        .keeps_output = true,
        .kept_bytes = extent.elements * bytes};
    extent.elements *= width / extent.last;
    extent.last = width;
    op.output = builder_tensor(builder, extent, (int)bytes);
    return op.output < 0 ? op.output : builder_op(builder, &op);
}

int attention_enter(struct builder *builder, const struct layer *layer)
{
    struct attention_scope *scope = &builder->scope;
    if (scope->open && layer->depth <= scope->depth)
        scope->open = false;
    if (scope->awaited_width > 0 && layer->leaf && layer->kind != LAYER_NORM) {
        int r = append_products(builder);
        if (r < 0)
            return r;
    }
    bool channels = !layer->leaf && compares_channels(builder, layer);
    if (layer->leaf || !(channels || library_is_attention(layer->type)))
        return 0;
    int r = channels ? 0 : biased_scores(builder, layer);
    *scope = (struct attention_scope){.open = true,
        .channels = channels,
        .depth = layer->depth,
        .source = builder->current,
        .scores = library_writes_scores(layer->type),
        .biased = !channels && learns_biases(builder, layer)};
    return r;
}

int attention_source(const struct builder *builder)
{
    const struct attention_scope *scope = &builder->scope;
    if (builder_is_in_adapter(builder))
        return TAPE_NONE;
    return scope->open && !scope->done && scope->n > 0 && scope->n < 3 ? scope->source : TAPE_NONE;
}

static int append_attention(struct builder *builder, const int inputs[static 3], double width)
{
    const struct tensor *query = &builder->tape->tensors[inputs[0]];
    double tokens = query->elements / query->last, heads = width / HEAD_WIDTH;
    bool grouped = inputs[1] != TAPE_NONE && builder->tape->tensors[inputs[1]].last < query->last;
    double per_pair = builder->scope.scores ? pair_bytes(builder) : 0;
    if (grouped && !tape_is_half(builder->tape)) /* fused kernels share keys in 16 bit only */
        per_pair = SOFTMAX_BYTES;
    struct op op = {.kind = LAYER_ATTENTION,
        .layer = TAPE_NONE,
        .inputs = {inputs[0], inputs[1], inputs[2]},
        .keeps_inputs = true,
        .keeps_output = !builder->scope.channels, /* a fused kernel does */
        .kept_bytes = heads * tokens * (STATISTICS_BYTES + per_pair * builder->extents.sequence),
        .macs = 2 * tokens * builder->extents.sequence * width};
    struct extent extent = {.elements = tokens * width, .first = query->first, .last = width};
    op.output = builder_tensor(builder, extent, query->element_bytes);
    return op.output < 0 ? op.output : builder_op(builder, &op);
}

int attention_scores(struct builder *builder, const struct layer *layer)
{
    const struct attention_scope *scope = &builder->scope;
    bool pairs = layer->rank == 3 && layer->shape[2] >= layer->shape[0] &&
                 layer->kind == LAYER_DROPOUT;
    if (!scope->open || scope->scores || !pairs || builder->current == TAPE_NONE)
        return 0;
    const struct tensor *result = &builder->tape->tensors[builder->current];
    double scores = (double)layer->activations.value,
           copies = scope->channels ? CHANNEL_COPIES * result->elements * result->element_bytes : 0;
    /* A linear layer has mixed the heads (arXiv:2003.02436): the product reads its result, and
     * autocast's copy of that is counted for each pair. */
    if (result->elements == scores && !tape_is_half(builder->tape))
        copies += scores * SINGLE_BYTES;
    return keep_pairs(builder, scores, copies);
}

int attention_leave(struct builder *builder, const struct layer *layer, const struct op *op)
{
    struct attention_scope *scope = &builder->scope;
    const struct tensor *tensors = builder->tape->tensors;
    if (!scope->open || scope->done || op->inputs[0] == TAPE_NONE)
        return 0;
    double in = tensors[op->inputs[0]].last, out = tensors[op->output].last;
    if (scope->n == 0 && out == PACKED * in) {
        int fused[3] = {op->output, TAPE_NONE, TAPE_NONE};
        scope->done = true;
        return append_attention(builder, fused, in);
    }
    if (scope->n == 0 && scope->biased && out > in) {
        scope->done = true;
        scope->awaited_width = in; /* a normalisation of the projection may follow */
        return 0;
    }
    if (scope->n == 0)
        scope->source = op->inputs[0];
    scope->project[scope->n++] = op->output;
    scope->done = scope->n == 3;
    return scope->done ? append_attention(builder, scope->project, tensors[scope->project[0]].last)
                       : 0;
}

/* Tests whether the text shows a projection as a layer that does work: then attention is built from
 * these layers. */
static bool shows_projections(const struct builder *builder, size_t i)
{
    const struct layer *layers = builder->extents.model->layers;
    bool raw = layers[i].parameters > 0;
    if (builder->extents.model->format == SUMMARY_REPR && library_uses_windows(layers[i].type))
        return false; /* a printed module lists layers that are used as functions, too */
    size_t end = module_end(builder->extents.model, i);
    for (size_t k = i + 1; raw && k < end; k++)
        if (layers[k].kind == LAYER_LINEAR && layers[k].depth == layers[i].depth + 1 &&
            !layers[k].activations.known && !builder->extents.from_arguments)
            return false;
    for (size_t k = i + 1; k < end; k++)
        if (layers[k].kind == LAYER_LINEAR &&
            (builder->extents.from_arguments || layers[k].activations.known))
            return true;
    return builder->extents.from_arguments ? !raw : end == i + 1;
}

/* Sums the parameters of the module and of its linear layers, and marks these layers as taken.
 * Returns the last of them that has parameters, which says whether they are trained and how they
 * are stored. */
static const struct layer *take_parameters(struct builder *builder, size_t i, double *ret_count)
{
    const struct layer *layers = builder->extents.model->layers;
    double parameters = (double)layers[i].parameters;
    const struct layer *last = &layers[i];
    size_t end = module_end(builder->extents.model, i);
    for (size_t k = i + 1; k < end; k++) {
        if (layers[k].kind != LAYER_LINEAR)
            continue;
        parameters += (double)layers[k].parameters;
        last = layers[k].parameters > 0 ? &layers[k] : last;
        builder->done[k] = true;
    }
    *ret_count = parameters;
    return last;
}

/* Tests whether a module attends over all tokens of an image, which it lists as [tokens, width]: no
 * windows divide these. Biases of its scores are the mask of a fused kernel. */
static bool is_fused_over_image(const struct builder *builder, const struct layer *layer)
{
    return !builder->extents.from_arguments && layer->rank == 2 &&
           builder->extents.sequence == SEQUENCE_UNKNOWN;
}

/*
 * Returns the bytes of stored scores for each token: softmax, and its dropout's mask and result,
 * for each head and other token. If the text has shapes, these are the tokens of a window of about
 * 50, since vision transformers that store scores attend within windows, and no layer shows it.
 */
static double score_bytes(
    const struct builder *builder, const struct layer *layer, bool cosine, double width)
{
    bool windows = !builder->extents.from_arguments;
    if (is_fused_over_image(builder, layer))
        return STATISTICS_BYTES * width / HEAD_WIDTH;
    double heads = width / (windows ? WINDOW_HEAD_WIDTH : HEAD_WIDTH),
           sequence = builder->extents.sequence;
    if (windows && cosine)
        return (pair_bytes(builder) + SINGLE_BYTES) * heads * COSINE_WINDOW_TOKENS;
    return pair_bytes(builder) * heads * (windows ? WINDOW_TOKENS : sequence);
}

int attention_take_whole(struct builder *builder, size_t i)
{
    const struct layer *layer = &builder->extents.model->layers[i];
    bool candidate = !layer->leaf && library_is_attention(layer->type) &&
                     builder->current != TAPE_NONE &&
                     builder->extents.model->format != SUMMARY_TORCHSUMMARY;
    if (!candidate || shows_projections(builder, i))
        return 0;
    struct extent now = builder_extent(builder, builder->current);
    double tokens = now.last > 0 ? now.elements / now.last : 0,
           bytes = tape_is_half(builder->tape) ? HALF_BYTES : SINGLE_BYTES;
    struct op op = {.kind = LAYER_ATTENTION,
        .layer = (int)i,
        .inputs = {builder->current, TAPE_NONE, TAPE_NONE},
        .keeps_inputs = true};
    const struct layer *weights = take_parameters(builder, i, &op.weight);
    op.frozen = weights->trainable == TRISTATE_NO;
    trained_part_set_storage(builder, weights, &op);
    bool cosine = library_compares_by_cosine(layer->type);
    bool positions = op.weight >= POSITION_WEIGHTS * now.last * now.last;
    double copies = PROJECTIONS_COPIES - is_fused_over_image(builder, layer) +
                    (cosine ? COSINE_COPIES : 0) + (positions ? POSITION_COPIES : 0);
    op.kept_bytes = copies * now.elements * bytes +
                    tokens * score_bytes(builder, layer, cosine, now.last);
    op.kept_map = now.elements * bytes;
    op.macs = op.weight * tokens;
    op.output = builder_tensor(builder, now, (int)bytes);
    int r = op.output < 0 ? op.output : builder_op(builder, &op);
    return r < 0 ? r : 1;
}
