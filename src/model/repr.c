/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module as PyTorch prints it, `(conv1): Conv2d(3, 64, kernel_size=(7, 7))` nested by
 * parentheses, and the same with counts, `Linear(...), 590,592 params` and `), 2,954,496 params`. A
 * container's count is the sum over its children and its raw parameters, so the difference from its
 * children's counts is its own. Without counts, parameters follow from the arguments. The printed
 * total of the counted form sums every level and is wrong for deep models; the outermost count is
 * right.
 */
#include <errno.h>
#include <string.h>

#include "model/format.h"

/* A container that is still open. */
struct open_block {
    size_t layer;     /* its index */
    int64_t children; /* parameters in it so far */
    int64_t repeat;
};

struct stack {
    struct open_block at[MODEL_DEPTH_MAX];
    int n;
    int64_t total;      /* parameters of the whole module */
    size_t n_uncounted; /* layers of unknown parameters */
};

/* The parts of a line: "(name): 12 x Type(args), N params". */
struct head {
    struct span name, type, args;
    int64_t repeat;
    bool open; /* the parenthesis does not close on this line */
};

/* ", 590,592 params" behind a closing parenthesis. */
static int printed_count(struct parser *parser, struct span rest, struct count *ret_count)
{
    rest = span_trim(rest);
    *ret_count = (struct count){0};
    if (!span_starts(rest, ",") || !span_ends(rest, "params"))
        return 0;
    rest = span_trim((struct span){rest.at + 1, rest.size - 1 - strlen("params")});
    int r = parser_count(parser, rest, &ret_count->value);
    ret_count->known = r == 0;
    return r;
}

/* Removes "(name): " from the front. */
static bool take_name(struct span *s, struct span *ret_name)
{
    if (s->size == 0 || s->at[0] != '(')
        return false;
    size_t end = span_find(*s, ')');
    if (!span_starts(span_skip(*s, end), "): "))
        return false;
    *ret_name = (struct span){s->at + 1, end - 1};
    *s = span_trim(span_skip(*s, end + 3));
    return true;
}

/* Removes "12 x " from the front. Returns the number, 1 when there is none. */
static int64_t take_repeat(struct span *s)
{
    size_t end = span_find(*s, ' ');
    int64_t repeat;
    if (number_parse(span_first(*s, end), &repeat) < 0 || repeat < 1 ||
        !span_starts(span_skip(*s, end), " x "))
        return 1;
    *s = span_skip(*s, end + 3);
    return repeat;
}

/* Splits "(name): Type(args), N params"; *ret_behind is the text after the parenthesis. Returns
 * false for another line. */
static bool head_split(struct span line, struct head *ret_head, struct span *ret_behind)
{
    struct head head = {.name = {line.at, 0}};
    take_name(&line, &head.name);
    head.repeat = take_repeat(&line);
    head.type = span_take_identifier(&line);
    if (head.type.size == 0 || !span_starts(line, "("))
        return false;
    size_t close = span_find_close(line);
    head.open = close == line.size;
    head.args = span_trim((struct span){line.at + 1, (head.open ? line.size : close) - 1});
    *ret_behind = span_skip(line, close + 1);
    *ret_head = head;
    return true;
}

/* Tests whether the line is a member of a module: "(name): ...". */
static bool is_member(struct span line)
{
    struct span name, inner = span_trim(line);
    return take_name(&inner, &name);
}

static bool detect(struct span line, struct span rest)
{
    struct head head;
    struct span behind, next;
    line = span_trim(line);
    if (span_starts(line, "(") || !head_split(line, &head, &behind))
        return false;
    if (head.open)
        return head.args.size == 0 && span_next_line(&rest, &next) && next.size <= MODEL_LINE_MAX &&
               is_member(next);
    enum layer_kind kind = layer_kind_of(head.type);
    bool alone = behind.size == 0 || span_ends(behind, " params");
    return alone && kind != LAYER_OTHER && kind != LAYER_CONTAINER && kind != LAYER_INPUT;
}

/* The parameters of attention besides its output layer, which is printed: 3 E x E weights and 3 E
 * biases. */
static struct count packed_attention(const struct model *model, size_t attention)
{
    const struct layer *out = attention + 1 < model->n_layers ? &model->layers[attention + 1]
                                                              : NULL;
    struct count count = {0};
    if (!out || out->kind != LAYER_LINEAR || out->in_size == LAYER_SIZE_UNKNOWN)
        return count;
    count.known = !__builtin_mul_overflow(out->in_size, out->in_size + 1, &count.value) &&
                  !__builtin_mul_overflow(count.value, 3, &count.value);
    return count;
}

/* ParameterDict and ParameterList print what they hold:
 *     (default): Parameter containing: [torch.cuda.FloatTensor of size 8x50257 (cuda:0)] */
static const char parameter_sign[] = "Parameter containing: [", size_sign[] = " of size ";

/* "8x50257" as a product; 0 where it is none, or does not fit. */
static int64_t printed_size(struct span text)
{
    int64_t product = 1;
    do {
        size_t end = 0;
        int64_t size;
        while (end < text.size && text.at[end] >= '0' && text.at[end] <= '9')
            end++;
        if (end == 0 || number_parse(span_first(text, end), &size) < 0 ||
            __builtin_mul_overflow(product, size, &product))
            return 0;
        text = span_skip(text, end);
    } while (text.size > 1 && text.at[0] == 'x' && (text = span_skip(text, 1)).size);
    return product;
}

/* Not known where the arguments list no parameter. */
static struct count listed_parameters(struct span args)
{
    struct count sum = {0};
    for (;;) {
        args = span_skip(args, span_find_text(args, parameter_sign));
        if (args.size == 0)
            return sum;
        args = span_skip(args, strlen(parameter_sign));
        struct span size = span_skip(args, span_find_text(args, size_sign));
        if (size.size == 0 || __builtin_add_overflow(sum.value,
                                  printed_size(span_skip(size, strlen(size_sign))), &sum.value))
            return sum;
        sum.known = true;
    }
}

/* A layer's own parameters: its printed count less its children's, or what follows from its
 * arguments. */
static int set_parameters(struct parser *parser, struct stack *stack, size_t index,
    struct count printed, int64_t children)
{
    struct model *model = parser->model;
    struct layer *layer = &model->layers[index];
    struct count own;
    int r = arguments_apply(parser, layer, &own);
    if (r < 0)
        return r;
    if (layer->kind == LAYER_ATTENTION)
        own = packed_attention(model, index);
    struct count listed = listed_parameters(layer->args);
    if (layer->kind == LAYER_CONTAINER && listed.known)
        own = listed;
    if (printed.known) {
        layer->parameters = printed.value > children ? printed.value - children : 0;
        return 0;
    }
    layer->parameters = own.known ? own.value : 0;
    bool leaf = index + 1 == model->n_layers;
    if (!own.known && (leaf || layer->kind == LAYER_ATTENTION))
        stack->n_uncounted++;
    return 0;
}

/* Adds the parameters of a complete layer to those of the container around it. */
static int add_to_parent(struct parser *parser, struct stack *stack, int64_t total, int64_t repeat)
{
    int64_t *sum = stack->n ? &stack->at[stack->n - 1].children : &stack->total;
    if (__builtin_mul_overflow(total, repeat, &total) || __builtin_add_overflow(*sum, total, sum))
        return parser_fault(parser, ERANGE, "the sum of the parameters is beyond 64 bits");
    return 0;
}

/* Repeats the layers from `first` on, so that they stand there `repeat` times. */
static int write_out(struct parser *parser, size_t first, int64_t repeat)
{
    struct model *model = parser->model;
    size_t end = model->n_layers;
    if (repeat > MODEL_LAYERS_MAX)
        return parser_fault(parser, EFBIG, "more than %d layers", MODEL_LAYERS_MAX);
    for (int64_t i = 1; i < repeat; i++) {
        for (size_t from = first; from < end; from++) {
            struct layer *copy;
            int r = parser_add(parser, model->layers[from].type, 0, &copy);
            if (r < 0)
                return r;
            *copy = model->layers[from];
        }
    }
    return 0;
}

/* Completes a layer: a leaf after its row, a block at its closing parenthesis. */
static int finish_layer(struct parser *parser, struct stack *stack, const struct open_block *block,
    struct count printed)
{
    struct model *model = parser->model;
    int r = set_parameters(parser, stack, block->layer, printed, block->children);
    if (r < 0)
        return r;
    struct layer *layer = &model->layers[block->layer];
    layer->leaf = layer_is_leaf(layer, block->layer + 1 == model->n_layers);
    int64_t total;
    if (__builtin_add_overflow(layer->parameters, block->children, &total))
        return parser_fault(parser, ERANGE, "the sum of the parameters is beyond 64 bits");
    total = printed.known ? printed.value : total;
    r = add_to_parent(parser, stack, total, block->repeat);
    return r < 0 ? r : write_out(parser, block->layer, block->repeat);
}

static int open_head(
    struct parser *parser, struct stack *stack, const struct head *head, struct span behind)
{
    struct layer *layer;
    struct count printed;
    int r = parser_add(parser, head->type, stack->n, &layer);
    if (r < 0)
        return r;
    layer->name = head->name;
    layer->args = head->args;
    struct open_block block = {.layer = parser->model->n_layers - 1, .repeat = head->repeat};
    if (head->open) {
        stack->at[stack->n++] = block; /* parser_add bounds the depth */
        return 0;
    }
    r = printed_count(parser, behind, &printed);
    return r < 0 ? r : finish_layer(parser, stack, &block, printed);
}

static int close_block(struct parser *parser, struct stack *stack, struct span behind)
{
    struct count printed;
    int r = printed_count(parser, behind, &printed);
    if (r < 0)
        return r;
    struct open_block block = stack->at[--stack->n];
    return finish_layer(parser, stack, &block, printed);
}

/* Reads a line of an open block that is neither a member nor the end: at the block's start it has
 * the block's own arguments. */
static void take_arguments(struct parser *parser, struct stack *stack, struct span line)
{
    struct layer *layer = &parser->model->layers[stack->at[stack->n - 1].layer];
    if (layer->args.size == 0)
        layer->args = line;
    else if (span_find_text(line, parameter_sign) < line.size)
        layer->args.size = (size_t)(line.at + line.size - layer->args.at);
    else
        model_warn(parser->model, parser->line, "not a part of the module, ignored");
}

/* A transform of the input, which its container prints without a name: Resize(min_size=(800,)). */
static bool is_transform(struct span line)
{
    struct head head;
    struct span behind;
    return head_split(line, &head, &behind) && !head.open &&
           layer_kind_of(head.type) == LAYER_MERGE;
}

static int parse_line(struct parser *parser, struct stack *stack, struct span line)
{
    struct head head;
    struct span behind;
    if (span_starts(line, ")") && stack->n)
        return close_block(parser, stack, span_skip(line, 1));
    if ((stack->n == 0 || is_member(line) || is_transform(line)) &&
        head_split(line, &head, &behind))
        return open_head(parser, stack, &head, behind);
    if (line.size)
        take_arguments(parser, stack, line);
    return 0;
}

/* A container whose printed count is less than the sum of its children's: some of its children are
 * the same module. */
static void take_out_shared(struct model *model, int64_t total)
{
    int64_t sum = 0;
    for (size_t i = 0; i < model->n_layers; i++)
        if (__builtin_add_overflow(sum, model->layers[i].parameters, &sum))
            return;
    if (sum == total)
        return;
    model->parameters_shared = sum - total;
    model_warn(model, 0, "some modules stand in several places; their parameters are counted once");
}

static int parse(struct parser *parser)
{
    struct stack stack = {.n = 0};
    struct span line;
    do {
        if (!parser_next(parser, &line))
            break;
        int r = parse_line(parser, &stack, span_trim(line));
        if (r < 0)
            return r;
    } while (stack.n);
    if (stack.n)
        model_warn(parser->model, parser->line, "the summary is cut off: %d modules are still open",
            stack.n);
    parser->model->is_suspect |= stack.n > 0;
    while (stack.n) {
        int r = close_block(parser, &stack, (struct span){"", 0});
        if (r < 0)
            return r;
    }
    if (stack.n_uncounted)
        model_warn(parser->model, 0,
            "the parameters of %zu layers do not follow from what is printed of them",
            stack.n_uncounted);
    take_out_shared(parser->model, stack.total);
    return 0;
}

const struct model_format format_repr = {SUMMARY_REPR, detect, parse};
