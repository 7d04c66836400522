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
#include "model/module_tree.h"

static void begin_adapted(struct builder *builder, size_t i)
{
    const struct model *model = builder->extents.model;
    size_t second;
    if (builder->current == TAPE_NONE || !module_is_adapted(model, i, &second))
        return;
    struct adapter_scope scope = {.base = i + 1,
        .second = second,
        .end = module_end(model, i),
        .entry = builder->current,
        .base_output = TAPE_NONE};
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
    builder->adapted = sum;
    struct op whole = {.inputs = {scope.entry, TAPE_NONE, TAPE_NONE}, .output = sum};
    return base->kind == LAYER_LINEAR ? attention_leave(builder, base, &whole) : 0;
}

/* Returns what the layer itself read, which need not be the tensor before it: a projection of
 * attention reads what the others do. */
static int input_of_base(const struct builder *builder)
{
    const struct tape *tape = builder->tape;
    const struct op *last = &tape->ops[tape->n_ops - 1];
    bool is_base = tape->n_ops > 0 && last->layer == (int)builder->adapter.base &&
                   last->inputs[0] != TAPE_NONE;
    return is_base ? last->inputs[0] : builder->adapter.entry;
}

/* An adapter in 32 bit beside weights of 16 casts what it reads. */
static int raise_entry(struct builder *builder)
{
    int raised = builder_merge(
        builder, builder->current, TAPE_NONE, false, builder_extent(builder, builder->current));
    if (raised < 0)
        return raised;
    builder->tape->tensors[raised].element_bytes = SINGLE_BYTES;
    builder->tape->doubts.n_merges--; /* PEFT does it always */
    return 0;
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
        scope->entry = input_of_base(builder);
        builder->current = scope->entry;
        int r = builder->tape->half_weights ? raise_entry(builder) : 0;
        if (r < 0)
            return r;
    }
    if (scope->end == 0 && i < builder->extents.model->n_layers)
        begin_adapted(builder, i);
    return 0;
}
