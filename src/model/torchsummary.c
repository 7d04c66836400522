/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torchsummary: one row per module in the order of execution, "Conv2d-1 [-1, 64, 112, 112] 9,408".
 * A container has a row after its last child, and repeats that child's output; only the name of its
 * type distinguishes it from a layer. torchsummary counts `.weight` and `.bias` only, so the packed
 * weights of attention and recurrent layers are missing.
 */
#include <string.h>

#include "model/format.h"

struct row {
    struct span type, shape, count;
};

static size_t digits_at_end(struct span s)
{
    size_t n = 0;
    while (n < s.size && s.at[s.size - 1 - n] >= '0' && s.at[s.size - 1 - n] <= '9')
        n++;
    return n;
}

static bool row_split(struct span line, struct row *ret_row)
{
    line = span_trim(line);
    size_t open = span_find(line, '[');
    const char *close = memrchr(line.at, ']', line.size);
    if (open == line.size || !close)
        return false;
    size_t end = (size_t)(close - line.at) + 1;
    struct span label = span_trim(span_first(line, open));
    size_t digits = digits_at_end(label);
    if (end < open || digits == 0 || label.size < digits + 2 ||
        label.at[label.size - digits - 1] != '-')
        return false;
    ret_row->type = span_first(label, label.size - digits - 1);
    ret_row->shape = (struct span){line.at + open, end - open};
    ret_row->count = span_trim(span_skip(line, end));
    struct span type = ret_row->type;
    return span_take_identifier(&type).size == ret_row->type.size && ret_row->count.size > 0 &&
           span_find(ret_row->count, ' ') == ret_row->count.size;
}

static bool detect(struct span line, struct span rest)
{
    struct row row;
    return row_split(line, &row);
}

static int add_row(struct parser *parser, const struct row *row)
{
    struct layer *layer;
    int r = parser_add(parser, row->type, 0, &layer);
    if (r < 0)
        return r;
    r = parser_count(parser, row->count, &layer->parameters);
    if (r < 0)
        return r;
    bool known = layer->kind != LAYER_OTHER && layer->kind != LAYER_CONTAINER;
    layer->leaf = known || layer->parameters > 0;
    if ((layer->kind == LAYER_ATTENTION || layer->kind == LAYER_RECURRENT) &&
        layer->parameters == 0)
        model_warn(parser->model, parser->line,
            "torchsummary does not count the parameters of %.*s", (int)row->type.size,
            row->type.at);
    return parser_shape(parser, row->shape, layer);
}

static int parse(struct parser *parser)
{
    struct span line;
    while (parser_next(parser, &line)) {
        struct row row;
        if (row_split(line, &row)) {
            int r = add_row(parser, &row);
            if (r < 0)
                return r;
        } else if (span_trim(line).size && !line_is_rule(line)) {
            model_warn(parser->model, parser->line, "not a row of the table, ignored");
        }
    }
    return 0;
}

const struct model_format format_torchsummary = {SUMMARY_TORCHSUMMARY, detect, parse};
