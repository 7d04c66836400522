/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Language models often use the embedding's matrix again for the logits. A printed module lists
 * the output layer like any other: Linear(768, 50257) behind Embedding(50257, 768). Only a
 * printed total shows that both are one tensor: the layers add up to as much more as that layer
 * has. Without a total the class may say it: these share the matrix unless their configuration
 * is changed (tie_word_embeddings, transformers 4.57 and 5.0).
 */
#include "model/tied_output.h"

#include "base/array.h"
#include "model/format.h"

enum { NAME_SHOWN = 60 };

/* Not here: classes of which some published models share it and others do not, such as
 * LlamaForCausalLM (3.2 with 1B and 3B does) and Qwen2ForCausalLM. */
static const char *const sharing_classes[] = {
    "GPT2LMHeadModel",
    "GPTNeoForCausalLM",
    "OPTForCausalLM",
    "BloomForCausalLM",
    "CTRLLMHeadModel",
    "BertForMaskedLM",
    "BertForPreTraining",
    "BertLMHeadModel",
    "RobertaForMaskedLM",
    "RobertaForCausalLM",
    "DistilBertForMaskedLM",
    "AlbertForMaskedLM",
    "ElectraForMaskedLM",
    "XLMRobertaForMaskedLM",
    "ModernBertForMaskedLM",
    "BartForConditionalGeneration",
    "T5ForConditionalGeneration",
    "MarianMTModel",
    "GemmaForCausalLM",
    "Gemma2ForCausalLM",
    "Gemma3ForCausalLM",
};

enum { BITS_PACKED = 4 }; /* of weights of which a byte has two */

static bool is_of_sharing_class(const struct model *model)
{
    for (size_t i = 0; i < model->n_layers; i++)
        for (size_t j = 0; j < ARRAY_SIZE(sharing_classes); j++)
            if (span_is(model->layers[i].type, sharing_classes[j]))
                return true;
    return false;
}

static const struct layer *find_largest_embedding(const struct model *model)
{
    const struct layer *largest = NULL;
    for (size_t i = 0; i < model->n_layers; i++)
        if (model->layers[i].kind == LAYER_EMBEDDING &&
            (!largest || model->layers[i].in_size > largest->in_size))
            largest = &model->layers[i];
    return largest;
}

/* The last one behind the embedding. */
static struct layer *find_output(struct model *model, const struct layer *embedding)
{
    for (struct layer *layer = model->layers + model->n_layers - 1; layer > embedding; layer--)
        if (layer->kind == LAYER_LINEAR && layer->in_size != LAYER_SIZE_UNKNOWN &&
            layer->in_size == embedding->out_size && layer->out_size == embedding->in_size)
            return layer;
    return NULL;
}

/* Is the printed total less by the layer's parameters? Two weights of 4 bit may count as one, and
 * what is trained may stand outside of the layers. */
static bool is_counted_once(const struct model *model, const struct layer *layer)
{
    int64_t sum = -model->parameters_shared, packed = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *one = &model->layers[i];
        if (__builtin_add_overflow(sum, one->parameters, &sum))
            return false;
        packed += one->weight_bits == BITS_PACKED ? one->in_size * one->out_size / 2 : 0;
    }
    int64_t missing = model->parameters_printed.value - (sum - layer->parameters);
    bool is_outside = model->trainable_printed.known && model->trainable_printed.value > 0 &&
                      missing == model->trainable_printed.value;
    return model->parameters_printed.known && (missing == 0 || missing == -packed || is_outside);
}

void tied_output_find(struct model *model)
{
    const struct layer *embedding = model->format == SUMMARY_REPR ? find_largest_embedding(model)
                                                                  : NULL;
    struct layer *layer = embedding ? find_output(model, embedding) : NULL;
    if (!layer)
        return;
    bool says_total = model->parameters_printed.known;
    if (says_total ? is_counted_once(model, layer) : is_of_sharing_class(model))
        layer->parameters = 0;
    else
        model_warn(model, layer->line,
            "%.*s has the embedding's size; where the two share weights they are counted twice",
            (int)(layer->name.size < NAME_SHOWN ? layer->name.size : NAME_SHOWN), layer->name.at);
}
