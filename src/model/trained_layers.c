/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layers of a printed module are trained. A module's text does not say it, with one
 * exception: where adapters stand in it, as PEFT adds them (LoRA, arXiv:2106.09685), these are
 * trained and all else is not. A list of the parameters beside it says it (named_parameters.h).
 *
 *     (q_proj): lora.Linear4bit(
 *       (base_layer): Linear4bit(3072, 3072)     not trained, 4 bit
 *       (lora_A): ModuleDict(
 *         (default): Linear(3072, 32)            trained: the module around it is an adapter
 *       )
 *
 * Layers whose weights are quantised cannot be trained: they have no gradient.
 *
 * Tables say it for each layer: torchinfo by parentheses, Keras by a column. torchsummary has the
 * sums alone, and so does a module's text behind PEFT's line: trained_sums.c.
 */
#include "model/trained_layers.h"

#include <string.h>

#include "base/array.h"
#include "model/format.h"
#include "model/named_parameters.h"
#include "model/trained_sums.h"

/* Names of the modules that hold an adapter's weights (peft.tuners, peft 0.13). Each is the whole
 * name or its beginning. */
static const char *const adapters[] = {
    "lora_A",
    "lora_B",
    "lora_E",
    "lora_embedding_A",
    "lora_embedding_B",
    "lora_magnitude_vector",
    "vera_lambda_",
    "hada_",
    "lokr_",
    "oft_",
    "boft_",
    "ia3_l",
    "adaption_",
    "modules_to_save",
    "prompt_encoder",
    "trainable_tokens_",
};

/* Layers with quantised weights (bitsandbytes, HQQ). */
static const struct {
    const char *type;
    int bits;
} quantised[] = {
    {"Linear4bit", 4},
    {"LinearFP4", 4},
    {"LinearNF4", 4},
    {"HQQLinear", 4},
    {"Linear8bitLt", 8},
};

/* GPTQ's and AWQ's layers, of which each kernel has its own: TritonV2QuantLinear (AutoGPTQ 0.7,
 * GPTQModel), WQLinear_GEMM (AutoAWQ 0.2). The first do not print their bits: nearly all published
 * models have 4. */
static const char gptq_ending[] = "QuantLinear", awq_beginning[] = "WQLinear_";
enum { USUAL_BITS = 4 };

static bool is_adapter(struct span name)
{
    for (size_t i = 0; i < ARRAY_SIZE(adapters); i++)
        if (span_starts(name, adapters[i]))
            return true;
    return false;
}

static int bits_of(struct span type)
{
    for (size_t i = 0; i < ARRAY_SIZE(quantised); i++)
        if (span_is(type, quantised[i].type))
            return quantised[i].bits;
    return span_ends(type, gptq_ending) || span_starts(type, awq_beginning) ? USUAL_BITS : 0;
}

static bool has_adapters(const struct model *model)
{
    for (size_t i = 0; i < model->n_layers; i++)
        if (is_adapter(model->layers[i].name))
            return true;
    return false;
}

/* A layer is trained if it is in a module with an adapter's name, or is one. */
static void mark_adapters(struct model *model)
{
    int within = -1; /* the depth of the module; -1: in none */
    for (size_t i = 0; i < model->n_layers; i++) {
        struct layer *layer = &model->layers[i];
        if (within >= 0 && layer->depth <= within)
            within = -1;
        if (within < 0 && is_adapter(layer->name))
            within = layer->depth;
        layer->in_adapter = within >= 0;
        layer->trainable = within >= 0 ? TRISTATE_YES : TRISTATE_NO;
    }
}

static void mark_quantised(struct model *model)
{
    for (size_t i = 0; i < model->n_layers; i++) {
        struct layer *layer = &model->layers[i];
        layer->weight_bits = bits_of(layer->type);
        if (layer->weight_bits)
            layer->trainable = TRISTATE_NO;
        model->is_quantised |= layer->weight_bits > 0;
    }
}

/* "trainable params: 2,359,296 || all params: 126,799,104 || trainable%: 1.86"
 * (peft.PeftModel.print_trainable_parameters). Returns the number behind the label. */
static struct count printed_by_peft(struct span text, const char *label)
{
    struct count count = {0};
    size_t at = span_find_text(text, label);
    struct span rest = span_trim(span_skip(text, at + strlen(label)));
    size_t end = 0;
    while (end < rest.size && ((rest.at[end] >= '0' && rest.at[end] <= '9') || rest.at[end] == ','))
        end++;
    while (end > 0 && rest.at[end - 1] == ',')
        end--;
    if (at < text.size && end > 0)
        count.known = number_parse(span_first(rest, end), &count.value) == 0;
    return count;
}

int trained_layers_find(struct model *model, struct span text)
{
    if (model->format != SUMMARY_REPR)
        return 0;
    if (has_adapters(model))
        mark_adapters(model);
    int r = named_parameters_mark(model, text);
    if (r < 0)
        return r;
    mark_quantised(model);
    struct count all = printed_by_peft(text, "all params:");
    if (all.known) { /* exact, unlike the "Total params: 356 M" of a later summary */
        model->parameters_printed = all;
        model->trainable_printed = printed_by_peft(text, "trainable params:");
    }
    return 0;
}

static void forget_trained(struct model *model)
{
    for (size_t i = 0; i < model->n_layers; i++)
        if (!model->layers[i].weight_bits)
            model->layers[i].trainable = TRISTATE_UNKNOWN;
}

/* Chosen: less than the estimate's error. Programs that count the parameters of each module take
 * one that two modules share, or a buffer, for one that is not trained. */
static const double negligible_share = 0.01;

/* Where only the sums show that some are not trained. */
static void use_printed_sums(struct model *model)
{
    const struct count *trained = &model->trainable_printed;
    bool is_marked = false;
    for (size_t i = 0; i < model->n_layers; i++)
        is_marked |= model->layers[i].trainable != TRISTATE_UNKNOWN &&
                     !model->layers[i].weight_bits;
    if (is_marked || model->format == SUMMARY_KERAS || !trained->known || trained->value <= 0 ||
        !model->parameters_printed.known || trained->value >= model->parameters_printed.value)
        return;
    if (trained_sums_find(model, trained->value))
        return;
    bool are_nearly_all = (double)trained->value >
                              (1 - negligible_share) * (double)model->parameters_printed.value ||
                          trained->value >= model->parameters; /* counted at every level */
    if (are_nearly_all) {
        forget_trained(model);
        return;
    }
    forget_trained(model);
    model->trained_is_open = true;
}

void trained_layers_sum_up(struct model *model)
{
    int64_t frozen = 0;
    bool is_adapted = false;
    use_printed_sums(model);
    for (size_t i = 0; i < model->n_layers; i++) {
        frozen += model->layers[i].trainable == TRISTATE_NO ? model->layers[i].parameters : 0;
        is_adapted |= model->layers[i].trainable == TRISTATE_YES;
    }
    bool some_are_not = frozen > 0 && frozen <= model->parameters;
    model->parameters_trained = (struct count){
        .value = some_are_not ? model->parameters - frozen : 0, .known = some_are_not};
    model->trained_is_open |= model->is_quantised && !is_adapted;
    if (model->is_quantised && !is_adapted)
        model_warn(model, 0,
            "its quantised layers cannot be trained, and the text shows no adapters: print the module "
            "after they are added (get_peft_model)");
}
