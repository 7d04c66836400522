/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about published networks, by the names of their classes.
 *
 * A summary lists layers and their sizes. The code between them also decides the memory of a
 * training: whether a loss casts its logits, whether dropout is on, whether attention stores its
 * scores. If a library always does the same in classes of one name, the name is enough. Each rule
 * follows the source of the library that it names (timm, torchvision, transformers) and agrees with
 * the runs in data/memory. A class of the same name in another program may differ, which is why all
 * such rules are in this file.
 *
 * Example: in BloomForCausalLM the loss casts logits to 32 bit ("ForCausalLM"), no dropout is on
 * ("Bloom") and scores are written out, because a bias is added to them ("Bloom" once more).
 */
#include "estimator/physics/library_rules.h"

#include <string.h>

#include "base/array.h"

static bool ends_with(struct span s, const char *suffix)
{
    size_t n = strlen(suffix);
    return s.size >= n && memcmp(s.at + s.size - n, suffix, n) == 0;
}

static bool has_text(struct span s, const char *text)
{
    for (size_t i = 0; i < s.size; i++)
        if (span_starts((struct span){s.at + i, s.size - i}, text))
            return true;
    return false;
}

/*
 * transformers' generators compute their loss from logits that they cast to 32 bit, or to which
 * they add a 32-bit tensor. Its masked models, and most other networks, pass their logits to
 * cross-entropy unchanged. A flat list does not show the class: a generator is assumed, which takes
 * more memory.
 */
bool library_raises_logits(const struct model *model)
{
    static const char *const generators[] = {
        "ForCausalLM", "LMHeadModel", "ForConditionalGeneration"};
    if (model->n_layers == 0 || model->layers[0].leaf)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(generators); i++)
        if (ends_with(model->layers[0].type, generators[i]))
            return true;
    return false;
}

/*
 * Published networks over images that normalise tokens train without dropout between their layers
 * (the vision transformers of timm and torchvision: a probability of 0), those over words with it.
 * ALBERT, BLOOM and GPT-Neo have a probability of 0 in their default configurations too.
 */
bool library_drops_within(const struct model *model)
{
    static const char *const without[] = {"Albert", "Bloom", "GPTNeo"};
    bool image = false, tokens = false;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        image |= layer->kind == LAYER_CONV && layer->rank == 3;
        tokens |= (layer->kind == LAYER_LINEAR && layer->rank >= 2) ||
                  span_starts(layer->type, "LayerNorm") || span_starts(layer->type, "GroupNorm");
    }
    for (size_t i = 0; i < ARRAY_SIZE(without); i++)
        if (model->n_layers > 0 && span_starts(model->layers[0].type, without[i]))
            return false;
    return !(image && tokens);
}

/* A deep network without a layer for its activations calls them as functions. */
bool library_calls_activations(const struct model *model)
{
    bool deep = false;
    for (size_t i = 0; i < model->n_layers; i++) {
        if (model->layers[i].kind == LAYER_ACTIVATION)
            return false;
        deep |= model->layers[i].kind == LAYER_CONV || model->layers[i].kind == LAYER_ATTENTION;
    }
    return deep;
}

/* BasicBlock, Bottleneck and their like in torchvision and timm. */
bool library_adds_residual(struct span type)
{
    return ends_with(type, "Block") || ends_with(type, "Bottleneck");
}

/* timm's gMLP: SpatialGatingUnit. */
bool library_is_gated(struct span type)
{
    return ends_with(type, "GatingUnit");
}

bool library_is_attention(struct span type)
{
    return has_text(type, "Attention") || has_text(type, "Attn");
}

/* transformers' models with relative positions or biases, which stand between scores and softmax,
 * so that no fused kernel serves. */
bool library_writes_scores(struct span type)
{
    static const char *const makers[] = {
        "T5", "MT5", "Bloom", "GPTNeoSelf", "Disentangled", "XLNet", "MPNet"};
    for (size_t i = 0; i < ARRAY_SIZE(makers); i++)
        if (span_starts(type, makers[i]))
            return true;
    return false;
}

/* Weight standardisation (arXiv:1903.10520): timm's StdConv2d, and ScaledStdConv2d with a gain for
 * each channel (arXiv:2101.08692). */
bool library_standardizes_weight(struct span type)
{
    return has_text(type, "StdConv");
}

/* Networks without normalisation (arXiv:2101.08692) divide the input of a block by its expected
 * deviation: timm's NormFreeBlock. */
bool library_scales_branch(struct span type)
{
    return span_starts(type, "ScaledStdConv");
}

/* torchvision's Swin transformers (ShiftedWindowAttention): their attention uses the projections as
 * functions, within windows, and stores the scores. */
bool library_uses_windows(struct span type)
{
    return has_text(type, "WindowAttention");
}

/* Swin's second version (ShiftedWindowAttentionV2) divides queries and keys by their norms, learns
 * a scale of the scores, and has larger windows. */
bool library_compares_by_cosine(struct span type)
{
    return ends_with(type, "AttentionV2");
}
