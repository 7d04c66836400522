/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torchinfo: a tree, "├─Conv2d: 1-1 [1, 64, 112, 112] 9,408". The user chooses the columns, so the
 * header is read for their names and order. Every cell is filled ("--" without a value), so that
 * cells can be split at blanks outside of brackets; not by position, which long cells shift. A
 * row's count is its own, except where the depth limit hides its layers. "(1,234)" is frozen,
 * "(recursive)" was counted before.
 */
#include <string.h>

#include "base/array.h"
#include "model/format.h"

enum column { COLUMN_OTHER, COLUMN_OUTPUT, COLUMN_COUNT, COLUMN_KERNEL, COLUMN_TRAINABLE };

enum { COLUMNS_MAX = 16 };

struct columns {
    enum column at[COLUMNS_MAX];
    int n;
    bool numbered; /* rows are numbered by depth: "2-1" */
};

/* The name part of a row. */
struct label {
    struct span type, name;
    int depth;
    bool numbered;
};

static bool is_header(struct span line)
{
    line = span_trim(line);
    return span_starts(line, "Layer (type:") || span_starts(line, "Layer (type (var_name)");
}

static struct columns read_header(struct span line)
{
    static const struct {
        const char *title;
        enum column column;
    } titles[] = {
        {"Input Shape", COLUMN_OTHER},
        {"Output Shape", COLUMN_OUTPUT},
        {"Param #", COLUMN_COUNT},
        {"Param %", COLUMN_OTHER},
        {"Kernel Shape", COLUMN_KERNEL},
        {"Groups", COLUMN_OTHER},
        {"Mult-Adds", COLUMN_OTHER},
        {"Trainable", COLUMN_TRAINABLE},
    };
    struct columns columns = {.numbered = span_find_text(line, "depth-idx") < line.size};
    while (line.size && columns.n < COLUMNS_MAX) {
        size_t used = 1;
        for (size_t i = 0; i < ARRAY_SIZE(titles); i++) {
            if (!span_starts(line, titles[i].title))
                continue;
            columns.at[columns.n++] = titles[i].column;
            used = strlen(titles[i].title);
            break;
        }
        line = span_skip(line, used);
    }
    return columns;
}

static bool is_branch(char c)
{
    return c == '|' || c == '+' || c == '-' || c == ' ';
}

/* Parses "1-12" at the front: the number before the dash is the depth. */
static bool take_depth(struct span *s, int *ret_depth)
{
    struct span word = span_take_word(s);
    size_t dash = span_find(word, '-');
    int64_t depth, index;
    if (dash == word.size || number_parse(span_first(word, dash), &depth) < 0 ||
        number_parse(span_skip(word, dash + 1), &index) < 0)
        return false;
    *ret_depth = depth < MODEL_DEPTH_MAX ? (int)depth : MODEL_DEPTH_MAX;
    return true;
}

/* Removes "|    +-Conv2d (conv1): 2-1" from the front. Each level of the tree is five characters
 * wide. */
static bool take_label(struct span *line, struct label *ret_label)
{
    struct label label = {.name = {line->at, 0}};
    size_t indent = 0;
    while (indent < line->size && is_branch(line->at[indent]))
        indent++;
    struct span s = span_skip(*line, indent);
    label.depth = (int)((indent + 3) / 5);
    label.type = span_take_identifier(&s);
    if (label.type.size == 0)
        return false;
    if (span_starts(s, " (")) {
        size_t close = span_find(s, ')');
        if (close == s.size)
            return false;
        label.name = (struct span){s.at + 2, close - 2};
        s = span_skip(s, close + 1);
    }
    if (span_starts(s, ":")) {
        s = span_skip(s, 1);
        if (!take_depth(&s, &label.depth))
            return false;
        label.numbered = true;
    }
    *line = s;
    *ret_label = label;
    return true;
}

static bool detect(struct span line, struct span rest)
{
    return is_header(line);
}

static int read_count(struct parser *parser, struct span cell, struct layer *layer)
{
    if (span_is(cell, "(recursive)")) {
        layer->shared = true;
        return 0;
    }
    if (span_starts(cell, "(") && span_ends(cell, ")")) {
        layer->trainable = TRISTATE_NO;
        cell = (struct span){cell.at + 1, cell.size - 2};
    }
    if (span_is(cell, "--"))
        return 0;
    if (layer->trainable == TRISTATE_UNKNOWN)
        layer->trainable = TRISTATE_YES;
    return parser_count(parser, cell, &layer->parameters);
}

static void read_kernel(struct span cell, struct layer *layer)
{
    int64_t size = 1, side;
    if (!span_starts(cell, "[") || !span_ends(cell, "]"))
        return;
    cell = (struct span){cell.at + 1, cell.size - 2};
    while (cell.size) {
        size_t end = span_find(cell, ',');
        if (number_parse(span_trim(span_first(cell, end)), &side) < 0 ||
            __builtin_mul_overflow(size, side, &size))
            return;
        cell = span_skip(cell, end + 1);
    }
    layer->kernel_size = size;
}

static int read_cell(
    struct parser *parser, enum column column, struct span cell, struct layer *layer)
{
    switch (column) {
    case COLUMN_OUTPUT:
        return span_starts(cell, "[") ? parser_shape(parser, cell, layer) : 0;
    case COLUMN_COUNT:
        return read_count(parser, cell, layer);
    case COLUMN_KERNEL:
        read_kernel(cell, layer);
        return 0;
    case COLUMN_TRAINABLE:
        layer->trainable = span_is(cell, "True")    ? TRISTATE_YES
                           : span_is(cell, "False") ? TRISTATE_NO
                                                    : layer->trainable;
        return 0;
    default:
        return 0;
    }
}

static int add_row(struct parser *parser, const struct columns *columns, const struct label *label,
    struct span cells)
{
    struct layer *layer;
    int r = parser_add(parser, label->type, label->depth, &layer);
    if (r < 0)
        return r;
    layer->name = label->name;
    for (int i = 0; i < columns->n; i++) {
        struct span cell = span_take_word(&cells);
        if (cell.size == 0) {
            model_warn(parser->model, parser->line, "fewer cells than the header has columns");
            break;
        }
        r = read_cell(parser, columns->at[i], cell, layer);
        if (r < 0)
            return r;
    }
    return 0;
}

/* If rows are numbered, only the root is not. */
static bool is_row(
    const struct parser *parser, const struct columns *columns, const struct label *label)
{
    return label->numbered || !columns->numbered || parser->model->n_layers == 0;
}

static int parse(struct parser *parser)
{
    struct span line;
    struct columns columns = {.n = 0};
    while (parser_next(parser, &line)) {
        struct label label;
        if (is_header(line)) {
            columns = read_header(line);
        } else if (span_trim(line).size == 0 || line_is_rule(line)) {
            continue;
        } else if (take_label(&line, &label) && is_row(parser, &columns, &label)) {
            int r = add_row(parser, &columns, &label, line);
            if (r < 0)
                return r;
        } else {
            model_warn(parser->model, parser->line, "not a row of the table, ignored");
        }
    }
    parser_mark_leaves(parser);
    return 0;
}

const struct model_format format_torchinfo = {SUMMARY_TORCHINFO, detect, parse};
