/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer with an adapter (LoRA, arXiv:2106.09685), as PEFT prints it. The layer and the adapter
 * read the same input, and their results are added:
 *
 *     (q_proj): lora.Linear(
 *       (base_layer): Linear(768, 768)       x -> base
 *       (lora_dropout): ...                  x -> dropped
 *       (lora_A): ... Linear(768, 16)        dropped -> low
 *       (lora_B): ... Linear(16, 768)        low -> update
 *     )                                      base + update
 *
 * To the module around it, attention for example, this is one linear layer.
 */
#include "estimator/physics/adapters.h"

#include "estimator/physics/attention.h"

static void begin_adapted(struct builder *builder, size_t i)
{
    const struct model *model = builder->extents.model;
    bool is_adapted = i + 1 < model->n_layers && builder->current != TAPE_NONE &&
                      model->layers[i + 1].depth > model->layers[i].depth &&
                      span_is(model->layers[i + 1].name, "base_layer");
    if (!is_adapted)
        return;
    struct adapter_scope scope = {.base = i + 1,
        .second = builder_end_of(model, i + 1),
        .end = builder_end_of(model, i),
        .entry = builder->current,
        .base_output = TAPE_NONE};
    if (scope.second < scope.end)
        builder->adapter = scope;
}

/* The sum; the module around it takes it for the output of a linear layer. */
static int end_adapted(struct builder *builder)
{
    struct adapter_scope scope = builder->adapter;
    const struct layer *base = &builder->extents.model->layers[scope.base];
    builder->adapter = (struct adapter_scope){0};
    if (scope.base_output == TAPE_NONE || builder->current == scope.entry) {
        builder->current = scope.base_output == TAPE_NONE ? builder->current : scope.base_output;
        return 0;
    }
    int sum = builder_merge(builder, scope.base_output, builder->current, false,
        builder_extent(builder, scope.base_output));
    if (sum < 0)
        return sum;
    builder->tape->doubts.n_merges--; /* the text shows it */
    struct op whole = {.inputs = {scope.entry, TAPE_NONE, TAPE_NONE}, .output = sum};
    return base->kind == LAYER_LINEAR ? attention_leave(builder, base, &whole) : 0;
}

int adapters_enter(struct builder *builder, size_t i)
{
    struct adapter_scope *scope = &builder->adapter;
    if (scope->end > 0 && i >= scope->end) {
        int r = end_adapted(builder);
        if (r < 0)
            return r;
    }
    if (scope->end > 0 && i == scope->second) {
        scope->base_output = builder->current;
        builder->current = scope->entry;
    }
    if (scope->end == 0 && i < builder->extents.model->n_layers)
        begin_adapted(builder, i);
    return 0;
}
