/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables on a terminal: columns as wide as their cells need; a narrow terminal drops, cuts or wraps
 * the columns that allow it. A text that people need whole goes on below its row:
 *
 *     ID NAME  USER STATE   TIME GPU(REASON)
 *     13 train ada  PENDING 0:41 (Resources)
 *         GPU 0: 3.1 GiB short; GPU 1: SMACT 92 % over 80 %
 */
#include "cli/table.h"

#include <libsmartcols.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/print.h"

/* Columns of a terminal; chosen. */
enum {
    BELOW_INDENT = 4,
    BELOW_LINES = 3,
    LAST_LEAST = 20,
    CUT_LEAST = 12,
    CUT_SHORT = 24,
    WIDE = 100,
    WIDEST = 150
};

static const char CUT_MARK[] = "...";

struct table {
    struct libscols_table *scols;
    struct libscols_line *line;
    const struct table_column *columns;
    size_t next; /* column of the next cell */
};

static bool is_left_out(const struct table_column *column)
{
    int least = column->flags & TABLE_WIDEST ? WIDEST : column->flags & TABLE_WIDE ? WIDE : 0;
    return output_width() && output_width() < least;
}

static void add_column(struct table *table, const struct table_column *column)
{
    int flags = column->flags & TABLE_RIGHT ? SCOLS_FL_RIGHT : 0;
    flags |= column->flags & TABLE_CUT ? SCOLS_FL_TRUNC : 0;
    flags |= column->flags & TABLE_WRAP ? SCOLS_FL_WRAP : 0;
    flags |= is_left_out(column) ? SCOLS_FL_HIDDEN : 0;
    struct libscols_column *added = scols_table_new_column(table->scols, column->header, 0, flags);
    if (column->flags & TABLE_WRAP) {
        scols_column_set_wrapfunc(added, scols_wrapnl_chunksize, scols_wrapnl_nextchunk, NULL);
        scols_column_set_safechars(added, "\n");
    }
}

struct table *table_create(const struct table_column *columns, size_t count)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->scols = scols_new_table();
    table->columns = columns;
    scols_table_enable_colors(table->scols, output_has_colours());
    for (size_t i = 0; i < count; i++)
        add_column(table, &columns[i]);
    return table;
}

void table_destroy(struct table *table)
{
    struct libscols_line *line;
    if (!table)
        return;
    for (size_t i = 0; (line = scols_table_get_line(table->scols, i)); i++)
        free(scols_line_get_userdata(line));
    scols_unref_table(table->scols);
    free(table);
}

void table_row(struct table *table)
{
    table->line = scols_table_new_line(table->scols, NULL);
    table->next = 0;
}

/* The characters that reorder a line are no ASCII. */
static bool is_ascii(const char *text)
{
    while (*text && !(*text & 0x80))
        text++;
    return !*text;
}

/* Escapes the characters that reorder a line; libsmartcols escapes control characters. Frees the
 * text. Returns the escaped one, or NULL without memory. */
static char *show_reordering(char *text)
{
    char *shown = NULL;
    size_t size, control;
    unsigned number;
    if (is_ascii(text)) /* a stream for each cell is a fifth of the time of a long table */
        return text;
    FILE *out = open_memstream(&shown, &size);
    for (const char *at = text; out && *at; at += control ? control : 1) {
        control = text_control(at, &number);
        if (control && number >= 0x100)
            fprintf(out, "\\u%04x", number);
        else
            fwrite(at, control ? control : 1, 1, out);
    }
    free(text);
    return out && fclose(out) == 0 ? shown : NULL;
}

void table_cell(struct table *table, const char *colour, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0 || !(text = show_reordering(text)))
        return;
    if (colour)
        scols_cell_set_color(scols_line_get_cell(table->line, table->next), colour);
    scols_line_refer_data(table->line, table->next++, text);
}

static size_t column_width(struct table *table, size_t i)
{
    struct libscols_iter *lines = scols_new_iter(SCOLS_ITER_FORWARD);
    struct libscols_line *line;
    size_t widest = strlen(table->columns[i].header);
    while (scols_table_next_line(table->scols, lines, &line) == 0) {
        const char *text = scols_cell_get_data(scols_line_get_cell(line, i));
        size_t width = text ? strlen(text) : 0;
        widest = width > widest ? width : widest;
    }
    scols_free_iter(lines);
    return widest;
}

/* Replaces the last blank before each `width` bytes by a line end. */
static void wrap_text(char *text, size_t width)
{
    char *begin = text, *blank = NULL;
    for (char *c = text; *c; c++) {
        if (*c == ' ' || *c == '\n') {
            *c = ' ';
            blank = c;
        }
        if ((size_t)(c - begin) >= width && blank) {
            *blank = '\n';
            begin = blank + 1;
            blank = NULL;
        }
    }
}

/* Cuts the text to at most `width` bytes, "..." included, and between characters. */
static void cut_text(char *text, size_t width)
{
    size_t mark = sizeof CUT_MARK - 1;
    if (strlen(text) <= width || width < mark)
        return;
    size_t end = width - mark;
    while (end && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    strcpy(text + end, CUT_MARK);
}

/* Rewrites each cell of column `i` for `width` bytes. */
static void fit_column(struct table *table, size_t i, size_t width)
{
    struct libscols_iter *lines = scols_new_iter(SCOLS_ITER_FORWARD);
    struct libscols_line *line;
    while (scols_table_next_line(table->scols, lines, &line) == 0) {
        struct libscols_cell *cell = scols_line_get_cell(line, i);
        char *text = strdup(scols_cell_get_data(cell) ? scols_cell_get_data(cell) : "");
        if (!text)
            continue;
        if (table->columns[i].flags & TABLE_WRAP)
            wrap_text(text, width);
        else
            cut_text(text, width);
        scols_cell_refer_data(cell, text);
    }
    scols_free_iter(lines);
}

/* Returns the width of the columns before `last` without column `without`, with the blanks between.
 */
static size_t width_of_others(struct table *table, size_t last, size_t without)
{
    size_t others = 0;
    for (size_t i = 0; i < last; i++)
        if (i != without && !is_left_out(&table->columns[i]))
            others += column_width(table, i) + 1;
    return others;
}

/* Returns a - b, or 0 if b is larger. */
static size_t subtract_or_zero(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

static size_t larger_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/*
 * Returns the width of a column with TABLE_CUT.
 *
 * `left`: the width for it and the last column together. It gets the rest of the last column; but
 * at least the width of a short name, if LAST_LEAST remains for the last column.
 */
static size_t cut_width(size_t left, size_t last_width)
{
    size_t short_name = smaller_of(
        CUT_SHORT, subtract_or_zero(left, smaller_of(last_width, LAST_LEAST)));
    return larger_of(CUT_LEAST, larger_of(subtract_or_zero(left, last_width), short_name));
}

/* Leaves in the cell a word in parentheses, or the words that `width` bytes hold, and notes the
 * others at the line. */
static void split_cell(struct libscols_line *line, struct libscols_cell *cell, size_t width)
{
    const char *text = scols_cell_get_data(cell);
    size_t end = text && strlen(text) > width ? width : 0;
    if (end && *text == '(')
        end = smaller_of(width, strcspn(text, " "));
    while (end && text[end] != ' ')
        end--;
    if (!end)
        return;
    char *rest = strdup(text + end + 1);
    char *begin = strndup(text, end);
    if (rest)
        cut_text(rest, BELOW_LINES * (size_t)(output_width() - BELOW_INDENT));
    if (rest && begin && scols_line_set_userdata(line, rest) == 0)
        scols_cell_refer_data(cell, begin);
    else
        free(begin), free(rest);
}

static void split_column(struct table *table, size_t i, size_t width)
{
    struct libscols_line *line;
    for (size_t k = 0; (line = scols_table_get_line(table->scols, k)); k++)
        split_cell(line, scols_line_get_cell(line, i), width);
}

/* The rows, each with what is below it. */
static void print_rows(struct table *table)
{
    struct libscols_line *line;
    for (size_t i = 0; (line = scols_table_get_line(table->scols, i)); i++) {
        const char *rest = scols_line_get_userdata(line);
        scols_table_print_range(table->scols, line, line);
        if (!scols_table_get_line(table->scols, i + 1)) /* else the range ends its line */
            putchar('\n');
        if (!rest)
            continue;
        printf("%*s", BELOW_INDENT, "");
        print_wrapped(rest, BELOW_INDENT, output_width());
    }
}

static void fit_to_terminal(struct table *table, size_t last)
{
    size_t width = (size_t)output_width(), last_width = column_width(table, last);
    for (size_t i = 0; i < last; i++)
        if (table->columns[i].flags & TABLE_CUT)
            fit_column(table, i,
                cut_width(
                    subtract_or_zero(width, width_of_others(table, last, i) + 1), last_width));
    size_t others = width_of_others(table, last, last);
    size_t left = larger_of(subtract_or_zero(width, others), LAST_LEAST);
    if (table->columns[last].flags & (TABLE_WRAP | TABLE_REST))
        fit_column(table, last, left);
    else if (table->columns[last].flags & TABLE_BELOW && width > LAST_LEAST)
        split_column(table, last, left);
}

void table_print(struct table *table, const char *none)
{
    if (scols_table_is_empty(table->scols)) {
        puts(none);
        return;
    }
    size_t last = scols_table_get_ncols(table->scols) - 1;
    if (output_width())
        fit_to_terminal(table, last);
    else if (table->columns[last].flags & TABLE_WRAP)
        fit_column(table, last, SIZE_MAX);
    if (output_width() && table->columns[last].flags & TABLE_BELOW)
        print_rows(table);
    else
        scols_print_table(table->scols);
}
