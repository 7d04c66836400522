/*
 * Attention between its projections: a function call that no summary lists. Query, key and value are kept, the result,
 * and one number per head and token; where softmax stands as a layer of its own, the scores are in the text.
 */
#include "estimator/builder.h"

enum { HEAD_WIDTH = 64 }; /* of nearly all published transformers; only the statistics depend on it */

static bool names_attention(struct span type)
{
    for (size_t i = 0; i + 4 <= type.size; i++) {
        struct span at = {type.at + i, type.size - i};
        if (span_starts(at, "Attention") || span_starts(at, "Attn"))
            return true;
    }
    return false;
}

void attention_enter(struct builder *builder, const struct layer *layer)
{
    struct attention_scope *scope = &builder->scope;
    if (scope->open && layer->depth <= scope->depth)
        scope->open = false;
    if (!layer->leaf && names_attention(layer->type))
        *scope = (struct attention_scope){.open = true, .depth = layer->depth, .source = builder->current};
}

int attention_source(const struct builder *builder)
{
    const struct attention_scope *scope = &builder->scope;
    return scope->open && !scope->done && scope->n > 0 && scope->n < 3 ? scope->source : TAPE_NONE;
}

static int attend(struct builder *builder, const int inputs[static 3], double width)
{
    const struct tensor *query = &builder->tape->tensors[inputs[0]];
    double tokens = query->elements / query->last, heads = width / HEAD_WIDTH;
    struct op op = {.kind = LAYER_ATTENTION,
                    .layer = TAPE_NONE,
                    .inputs = {inputs[0], inputs[1], inputs[2]},
                    .keeps_inputs = true,
                    .keeps_output = true,
                    .kept_bytes = 4 * heads * tokens,
                    .macs = 2 * tokens * builder->extents.sequence * width};
    struct extent extent = {.elements = tokens * width, .first = query->first, .last = width};
    op.output = builder_tensor(builder, extent, query->element_bytes);
    return op.output < 0 ? op.output : builder_op(builder, &op);
}

int attention_leave(struct builder *builder, const struct layer *layer, const struct op *op)
{
    struct attention_scope *scope = &builder->scope;
    const struct tensor *tensors = builder->tape->tensors;
    if (!scope->open || scope->done || op->inputs[0] == TAPE_NONE)
        return 0;
    double in = tensors[op->inputs[0]].last, out = tensors[op->output].last;
    if (scope->n == 0 && out == 3 * in) {
        int fused[3] = {op->output, TAPE_NONE, TAPE_NONE};
        scope->done = true;
        return attend(builder, fused, in);
    }
    if (scope->n == 0)
        scope->source = op->inputs[0];
    scope->project[scope->n++] = op->output;
    scope->done = scope->n == 3;
    return scope->done ? attend(builder, scope->project, tensors[scope->project[0]].last) : 0;
}
