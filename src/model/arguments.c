/* SPDX-License-Identifier: Apache-2.0 */
/* Parses constructor arguments as PyTorch prints them, "3, 64, kernel_size=(7, 7), bias=False", and
 * calculates how many parameters such a layer has. Example: a Conv2d with these arguments has 3 *
 * 64 * 7 * 7 = 9,408 weights, and no bias. */
#include <errno.h>

#include "model/format.h"

enum {
    ARGUMENTS_MAX = 24
}; /* chosen: no layer of PyTorch has more that matter here; further ones
                              * are ignored */

struct argument {
    struct span key; /* empty: a positional argument */
    struct span value;
};

struct arguments {
    struct argument at[ARGUMENTS_MAX];
    int n;
};

/* Takes one argument off the front: up to a comma outside of brackets. */
static struct span take_argument(struct span *s)
{
    int open = 0;
    size_t n = 0;
    for (; n < s->size && (open > 0 || s->at[n] != ','); n++) {
        char c = s->at[n];
        open += (c == '(' || c == '[') - (c == ')' || c == ']');
    }
    struct span argument = span_trim(span_first(*s, n));
    *s = span_skip(*s, n + 1);
    return argument;
}

static void split_arguments(struct span args, struct arguments *ret_arguments)
{
    ret_arguments->n = 0;
    while (args.size && ret_arguments->n < ARGUMENTS_MAX) {
        struct span argument = take_argument(&args);
        size_t equals = span_find(argument, '=');
        bool named = equals < argument.size;
        ret_arguments->at[ret_arguments->n++] = (struct argument){
            .key = span_first(argument, named ? equals : 0),
            .value = named ? span_skip(argument, equals + 1) : argument,
        };
    }
}

/* The value of "key=value"; empty when it is not there. */
static struct span keyword_value(const struct arguments *arguments, const char *key)
{
    for (int i = 0; i < arguments->n; i++)
        if (arguments->at[i].key.size && span_is(arguments->at[i].key, key))
            return arguments->at[i].value;
    return (struct span){"", 0};
}

static bool is_true(const struct arguments *arguments, const char *key, bool otherwise)
{
    struct span value = keyword_value(arguments, key);
    return value.size ? span_is(value, "True") : otherwise;
}

/* A product; `broken` once it has overflowed, whatever follows. */
struct product {
    int64_t value;
    bool broken;
};

static void product_multiply(struct product *p, int64_t by)
{
    p->broken |= __builtin_mul_overflow(p->value, by, &p->value);
}

static void product_add(struct product *p, int64_t by)
{
    p->broken |= __builtin_add_overflow(p->value, by, &p->value);
}

/* "64" or "(7, 7)" or "(768,)" as the product of its numbers. Returns false for anything else. */
static bool number_or_tuple(struct span s, struct product *ret)
{
    int64_t value;
    *ret = (struct product){.value = 1};
    if (s.size >= 2 && (s.at[0] == '(' || s.at[0] == '['))
        s = (struct span){s.at + 1, s.size - 2};
    bool any = false;
    while (s.size) {
        struct span item = take_argument(&s);
        int r = item.size ? number_parse(item, &value) : 0;
        if (r == -EINVAL)
            return false;
        if (item.size == 0)
            continue;
        any = true;
        ret->broken |= r == -ERANGE;
        product_multiply(ret, r < 0 ? 1 : value);
    }
    return any;
}

/* The size in argument number `i` (from 0), or in the argument of that name. */
static bool size_argument(
    const struct arguments *arguments, int i, const char *key, struct product *ret)
{
    bool positional = i < arguments->n && arguments->at[i].key.size == 0;
    return number_or_tuple(
        positional ? arguments->at[i].value : keyword_value(arguments, key), ret);
}

/* Weight and bias of a layer that multiplies: from its input and output sizes and, for a
 * convolution, from its window and its groups. */
static bool weight_and_bias(
    const struct arguments *arguments, struct layer *layer, struct product *ret)
{
    bool conv = layer->kind == LAYER_CONV;
    struct product in, out, kernel = {.value = 1}, groups = {.value = 1};
    if (!size_argument(arguments, 0, conv ? "in_channels" : "in_features", &in) ||
        !size_argument(arguments, 1, conv ? "out_channels" : "out_features", &out))
        return false;
    if (conv && !size_argument(arguments, 2, "kernel_size", &kernel))
        return false;
    if (conv && !number_or_tuple(keyword_value(arguments, "groups"), &groups))
        groups.value = 1;
    if (groups.value == 0 || in.broken || out.broken)
        return false;
    *ret = (struct product){in.value / groups.value, kernel.broken};
    product_multiply(ret, out.value);
    product_multiply(ret, kernel.value);
    if (is_true(arguments, "bias", true))
        product_add(ret, out.value);
    layer->in_size = in.value;
    layer->out_size = out.value;
    layer->kernel_size = conv ? kernel.value : LAYER_SIZE_UNKNOWN;
    return true;
}

/* Hugging Face's Conv1D is a linear layer that older versions print without its sizes. */
static bool hugging_face_conv1d(
    const struct arguments *arguments, struct layer *layer, struct product *ret)
{
    struct product out, in;
    if (!number_or_tuple(keyword_value(arguments, "nf"), &out) ||
        !number_or_tuple(keyword_value(arguments, "nx"), &in))
        return false;
    layer->in_size = in.value;
    layer->out_size = out.value;
    *ret = in;
    ret->broken |= out.broken;
    product_multiply(ret, out.value);
    product_add(ret, out.value);
    return true;
}

/* Embedding(50257, 768): one row of weights for each word, so rows times width. */
static bool embedding_parameters(
    const struct arguments *arguments, struct layer *layer, struct product *ret)
{
    struct product rows, width;
    if (!size_argument(arguments, 0, "num_embeddings", &rows) ||
        !size_argument(arguments, 1, "embedding_dim", &width))
        return false;
    layer->in_size = rows.value;
    layer->out_size = width.value;
    *ret = rows;
    ret->broken |= width.broken;
    product_multiply(ret, width.value);
    return true;
}

/* A weight and a bias per channel; RMSNorm has no bias, GroupNorm names its groups first. */
static bool norm_parameters(
    const struct arguments *arguments, struct layer *layer, struct product *ret)
{
    bool group = span_starts(layer->type, "GroupNorm"), rms = span_ends(layer->type, "RMSNorm");
    if (!size_argument(arguments, group ? 1 : 0, "num_features", ret))
        return false;
    layer->in_size = layer->out_size = ret->value;
    bool affine = is_true(arguments, "affine", !span_starts(layer->type, "InstanceNorm")) &&
                  is_true(arguments, "elementwise_affine", true);
    bool bias = !rms && is_true(arguments, "bias", true);
    product_multiply(ret, affine ? 1 + bias : 0);
    return true;
}

/* A recurrent layer has, for each layer and direction, gates of (in + hidden) x hidden weights and
 * two biases. */
static bool recurrent_parameters(
    const struct arguments *arguments, struct layer *layer, struct product *ret)
{
    struct product in, hidden, layers;
    if (!size_argument(arguments, 0, "input_size", &in) ||
        !size_argument(arguments, 1, "hidden_size", &hidden))
        return false;
    if (!number_or_tuple(keyword_value(arguments, "num_layers"), &layers))
        layers = (struct product){.value = 1};
    if (in.broken || hidden.broken || layers.broken || layers.value == 0)
        return false;
    int64_t gates = span_starts(layer->type, "LSTM") ? 4 : span_starts(layer->type, "GRU") ? 3 : 1;
    int64_t directions = is_true(arguments, "bidirectional", false) ? 2 : 1;
    int64_t biases = is_true(arguments, "bias", true) ? 2 : 0;
    layer->in_size = in.value;
    layer->out_size = hidden.value;
    /* The input of the first layer is that of the module; the input of a later one is the output of
     * both directions of the layer before it. */
    struct product first = in, later = hidden;
    product_multiply(&later, directions);
    struct product *stages[] = {&first, &later};
    for (int i = 0; i < 2; i++) {
        product_add(stages[i], hidden.value);
        product_add(stages[i], biases);
        product_multiply(stages[i], hidden.value);
        product_multiply(stages[i], gates * directions);
    }
    product_multiply(&later, layers.value - 1);
    *ret = first;
    ret->broken |= later.broken;
    product_add(ret, later.value);
    return true;
}

/* Returns false when the count does not follow from the arguments. */
static bool count_parameters(
    const struct arguments *arguments, struct layer *layer, struct product *ret)
{
    *ret = (struct product){0};
    switch (layer->kind) {
    case LAYER_LINEAR:
        if (span_is(layer->type, "Conv1D"))
            return hugging_face_conv1d(arguments, layer, ret);
        return weight_and_bias(arguments, layer, ret);
    case LAYER_CONV:
        return weight_and_bias(arguments, layer, ret);
    case LAYER_EMBEDDING:
        return embedding_parameters(arguments, layer, ret);
    case LAYER_NORM:
        return norm_parameters(arguments, layer, ret);
    case LAYER_RECURRENT:
        return recurrent_parameters(arguments, layer, ret);
    case LAYER_ACTIVATION:
        return !span_is(layer->type, "PReLU") ||
               number_or_tuple(keyword_value(arguments, "num_parameters"), ret);
    case LAYER_OTHER:
    case LAYER_ATTENTION:
        return false;
    default:
        return true;
    }
}

/* Reads the arguments of the layer: whether it works in place, whether it drops anything, its
 * sizes, and from these its parameters. What an argument that is not understood would say stays
 * unknown. */
int arguments_apply(struct parser *parser, struct layer *layer, struct count *ret_parameters)
{
    struct arguments arguments;
    split_arguments(layer->args, &arguments);
    struct span in_place = keyword_value(&arguments, "inplace");
    if (in_place.size)
        layer->in_place = span_is(in_place, "True") ? TRISTATE_YES : TRISTATE_NO;
    struct span chance = keyword_value(&arguments, "p");
    if (layer->kind == LAYER_DROPOUT && chance.size)
        layer->drops = span_is(chance, "0.0") || span_is(chance, "0") ? TRISTATE_NO : TRISTATE_YES;
    struct product parameters;
    bool known = count_parameters(&arguments, layer, &parameters);
    if (known && parameters.broken)
        return parser_fault(parser, ERANGE, "the parameters of %.*s are beyond 64 bits",
            (int)layer->type.size, layer->type.at);
    *ret_parameters = (struct count){.value = known ? parameters.value : 0, .known = known};
    return 0;
}

/* Reads "3" for all dimensions, or "(3, 5)" for each. Returns false for anything else. */
static bool sizes_of(struct span s, int rank, int64_t ret[static WINDOW_RANK_MAX])
{
    bool is_tuple = s.size >= 2 && (s.at[0] == '(' || s.at[0] == '[');
    struct span rest = is_tuple ? (struct span){s.at + 1, s.size - 2} : s;
    for (int i = 0; i < rank; i++) {
        struct span item = is_tuple || i == 0 ? take_argument(&rest) : s;
        if (number_parse(item, &ret[i]) < 0 || ret[i] > WINDOW_SIZE_MAX)
            return false;
    }
    return true;
}

/* The same for an argument that may be missing. */
static bool sizes_argument(const struct arguments *arguments, const char *key, int rank,
    int64_t otherwise, int64_t ret[static WINDOW_RANK_MAX])
{
    struct span value = keyword_value(arguments, key);
    for (int i = 0; i < WINDOW_RANK_MAX; i++)
        ret[i] = otherwise;
    return value.size == 0 || sizes_of(value, rank, ret);
}

static bool is_moving(const struct window *w, int rank)
{
    for (int i = 0; i < rank; i++)
        if (w->stride[i] <= 0)
            return false;
    return true;
}

bool arguments_window(const struct layer *layer, int rank, struct window *ret_window)
{
    struct arguments arguments;
    struct window *w = ret_window;
    split_arguments(layer->args, &arguments);
    bool positional = layer->kind == LAYER_CONV && arguments.n > 2 && arguments.at[2].key.size == 0;
    struct span kernel = positional ? arguments.at[2].value
                                    : keyword_value(&arguments, "kernel_size");
    w->same = span_is(keyword_value(&arguments, "padding"), "same");
    w->ceiling = is_true(&arguments, "ceil_mode", false);
    return sizes_of(kernel, rank, w->kernel) &&
           sizes_argument(&arguments, "stride", rank, 1, w->stride) &&
           (w->same || sizes_argument(&arguments, "padding", rank, 0, w->padding)) &&
           sizes_argument(&arguments, "dilation", rank, 1, w->dilation) &&
           sizes_argument(&arguments, "output_padding", rank, 0, w->output_padding) &&
           is_moving(w, rank);
}

bool arguments_output_size(const struct layer *layer, int rank, int64_t ret[static WINDOW_RANK_MAX])
{
    struct arguments arguments;
    split_arguments(layer->args, &arguments);
    struct span value = arguments.n > 0 && arguments.at[0].key.size == 0
                            ? arguments.at[0].value
                            : keyword_value(&arguments, "output_size");
    return sizes_of(value, rank, ret);
}

bool arguments_sides(const struct layer *layer, int64_t *ret_shorter, int64_t *ret_longest)
{
    struct arguments arguments;
    split_arguments(layer->args, &arguments);
    struct span sizes = keyword_value(&arguments, "min_size"),
                longest = keyword_value(&arguments, "max_size"), item = {"", 0};
    if (sizes.size >= 2 && sizes.at[0] == '(')
        sizes = (struct span){sizes.at + 1, sizes.size - 2};
    while (sizes.size) {
        struct span next = take_argument(&sizes);
        item = next.size ? next : item;
    }
    return number_parse(item, ret_shorter) == 0 && number_parse(longest, ret_longest) == 0 &&
           *ret_shorter > 0 && *ret_shorter <= WINDOW_SIZE_MAX && *ret_longest > 0 &&
           *ret_longest <= WINDOW_SIZE_MAX;
}

int64_t arguments_scale(const struct layer *layer)
{
    struct arguments arguments;
    split_arguments(layer->args, &arguments);
    struct span value = keyword_value(&arguments, "scale_factor");
    int64_t scale;
    size_t dot = span_find(value, '.'); /* "2.0" */
    return number_parse(span_first(value, dot), &scale) == 0 && scale > 0 ? scale : 1;
}
