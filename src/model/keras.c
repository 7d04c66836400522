/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keras 2 and 3: "conv2d (Conv2D)   (None, 26, 26, 32)   320". Keras 2 places cells under the
 * header's titles, Keras 3 between vertical bars. A cell that is too long continues on the next
 * line, where the count's cell is empty. The rows of an expanded nested model are indented by tree
 * characters.
 */
#include <string.h>

#include "base/array.h"
#include "model/format.h"

enum cell { CELL_LABEL, CELL_SHAPE, CELL_COUNT, CELL_TRAINABLE, CELLS };

enum { COLUMNS_MAX = 8, PIECES_MAX = 512 };

/* Where the cells are: titles in their order, and for Keras 2 where each begins. */
struct table {
    bool boxed;
    size_t start[COLUMNS_MAX + 1];
    enum cell cell[COLUMNS_MAX]; /* CELLS: a column that is not read */
    int n;
};

/* The cells of a row, joined from the lines read so far. */
struct pending {
    char text[CELLS][PIECES_MAX];
    size_t size[CELLS];
    int depth;
    int line; /* 0: none */
};

static bool is_header(struct span line)
{
    line = span_trim(line);
    if (span_starts(line, "|"))
        line = span_trim(span_skip(line, 1));
    return span_starts(line, "Layer (type)") && span_find_text(line, "Param #") < line.size;
}

/* torchsummary's header reads the same, but no row of it has a parenthesis. */
static bool detect(struct span line, struct span rest)
{
    if (!is_header(line))
        return false;
    if (span_starts(span_trim(line), "|"))
        return true;
    struct span row;
    for (int i = 0; i < 3 && span_next_line(&rest, &row); i++)
        if (row.size <= MODEL_LINE_MAX && !line_is_rule(row) && span_trim(row).size)
            return span_find(row, '(') < row.size;
    return false;
}

static enum cell cell_of(struct span title)
{
    static const char *const titles[CELLS] = {
        "Layer (type", "Output Shape", "Param #", "Trainable"};
    for (int i = 0; i < CELLS; i++)
        if (span_starts(title, titles[i]))
            return (enum cell)i;
    return CELLS;
}

/*
 * Where each column begins, and which it is, by its title: order and number differ between
 * versions.
 *
 *     Layer (type)        Output Shape         Param #   Connected to
 *     |                   |                    |         |
 *     LABEL               SHAPE                COUNT     LINKS
 */
static void read_header(struct span line, struct table *ret_table)
{
    static const char *const titles[] = {
        "Layer (type", "Output Shape", "Param #", "Connected to", "Trainable"};
    struct table table = {.boxed = span_starts(span_trim(line), "|")};
    for (size_t i = 0; i < line.size && table.n < COLUMNS_MAX; i++) {
        struct span here = span_skip(line, i);
        for (size_t t = 0; t < ARRAY_SIZE(titles); t++) {
            if (!span_starts(here, titles[t]))
                continue;
            table.start[table.n] = i;
            table.cell[table.n++] = cell_of(here);
            break;
        }
    }
    table.start[0] = 0;
    *ret_table = table;
}

/* Returns cell number `i` of a line; *rest is the rest of the line. */
static struct span take_cell(const struct table *table, int i, struct span line, struct span *rest)
{
    struct span cell;
    if (table->boxed) {
        size_t bar = span_find(*rest, '|');
        cell = span_first(*rest, bar);
        *rest = span_skip(*rest, bar + 1);
    } else {
        size_t end = i + 1 < table->n ? table->start[i + 1] : line.size;
        cell = span_first(span_skip(line, table->start[i]), end - table->start[i]);
    }
    return cell;
}

/* Removes the tree characters before the row of a nested model. */
static int take_indent(struct span *label)
{
    int depth = 0;
    size_t i = 0;
    for (; i < label->size && strchr("|+- ", label->at[i]); i++)
        depth += label->at[i] != ' ' && label->at[i] != '-';
    *label = span_skip(*label, i);
    return depth;
}

static void append_piece(struct pending *pending, enum cell cell, struct span piece)
{
    size_t room = PIECES_MAX - pending->size[cell];
    piece = span_first(piece, room);
    memcpy(pending->text[cell] + pending->size[cell], piece.at, piece.size);
    pending->size[cell] += piece.size;
}

static struct span joined_cell(const struct pending *pending, enum cell cell)
{
    return span_trim((struct span){pending->text[cell], pending->size[cell]});
}

/* Splits "conv2d (Conv2D)" into name and type, which live as long as the model. */
static void split_label(
    struct parser *parser, struct span label, struct span *ret_name, struct span *ret_type)
{
    memcpy(parser->scratch, label.at, label.size);
    label.at = parser->scratch;
    parser->scratch += label.size;
    const char *open = memrchr(label.at, '(', label.size);
    if (!open) { /* Keras has shortened it before its type */
        *ret_name = label;
        *ret_type = span_first(label, 0);
        return;
    }
    *ret_name = span_trim(span_first(label, (size_t)(open - label.at)));
    *ret_type = span_skip(label, (size_t)(open - label.at) + 1);
    *ret_type = span_trim(span_first(*ret_type, span_find(*ret_type, ')')));
}

/* Makes a layer of the joined row. */
static int flush_row(struct parser *parser, struct pending *pending)
{
    struct span name, type, count = joined_cell(pending, CELL_COUNT),
                            trainable = joined_cell(pending, CELL_TRAINABLE);
    struct layer *layer;
    if (pending->line == 0)
        return 0;
    split_label(parser, joined_cell(pending, CELL_LABEL), &name, &type);
    int last_line = parser->line;
    parser->line = pending->line;
    int r = parser_add(parser, type, pending->depth, &layer);
    if (r < 0)
        return r;
    layer->name = name;
    if (span_is(type, "Conv1D"))
        layer->kind = LAYER_CONV; /* in the other forms, Conv1D is Hugging Face's linear layer */
    layer->trainable = span_is(trainable, "Y")   ? TRISTATE_YES
                       : span_is(trainable, "N") ? TRISTATE_NO
                                                 : TRISTATE_UNKNOWN;
    count = span_take_word(&count);
    if (span_is(count, "?"))
        model_warn(parser->model, pending->line,
            "a layer that was not built: its parameters are not known");
    else
        r = parser_count(parser, count, &layer->parameters);
    if (r == 0)
        r = parser_shape(parser, joined_cell(pending, CELL_SHAPE), layer);
    parser->line = last_line;
    memset(pending->size, 0, sizeof pending->size);
    pending->line = 0;
    return r;
}

/* Long cells go on in the next lines, whose count is empty: pieces are collected until a line with
 * a count begins the next row. */
static int take_line(
    struct parser *parser, const struct table *table, struct pending *pending, struct span line)
{
    struct span cells[CELLS] = {{"", 0}, {"", 0}, {"", 0}, {"", 0}}, rest = line;
    if (table->boxed)
        rest = span_skip(rest, span_find(rest, '|') + 1);
    for (int i = 0; i < table->n; i++) {
        struct span cell = take_cell(table, i, line, &rest);
        if (table->cell[i] < CELLS)
            cells[table->cell[i]] = span_trim(cell);
    }
    int depth = take_indent(&cells[CELL_LABEL]);
    struct span count = cells[CELL_COUNT];
    if (count.size && count.at[0] != '?' && (count.at[0] < '0' || count.at[0] > '9')) {
        model_warn(parser->model, parser->line, "not a row of the table, ignored");
        return 0;
    }
    if (count.size) {
        int r = flush_row(parser, pending);
        if (r < 0)
            return r;
        pending->line = parser->line;
        pending->depth = depth;
    }
    for (int i = 0; pending->line && i < CELLS; i++)
        append_piece(pending, (enum cell)i, cells[i]);
    return 0;
}

/* A rule ends a row. What follows the table is read by the totals (totals.c). */
static int parse(struct parser *parser)
{
    struct table table = {.n = 0};
    struct pending pending = {.line = 0};
    struct span line;
    int r = 0;
    while (r == 0 && parser_next(parser, &line)) {
        if (is_header(line))
            read_header(line, &table);
        else if (line_is_rule(line))
            r = flush_row(parser, &pending);
        else
            r = take_line(parser, &table, &pending, line);
    }
    if (r == 0)
        r = flush_row(parser, &pending);
    if (r == 0)
        parser_mark_leaves(parser);
    return r;
}

const struct model_format format_keras = {SUMMARY_KERAS, detect, parse};
