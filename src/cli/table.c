#include "cli/table.h"

#include <libsmartcols.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

enum { LAST_LEAST = 24, CUT_WIDEST = 16, WIDE = 100 };

struct table {
    struct libscols_table *scols;
    struct libscols_line *line;
    const struct table_column *columns;
    size_t next; /* column of the next cell */
};

static bool is_left_out(const struct table_column *column)
{
    return column->flags & TABLE_WIDE && output_width() && output_width() < WIDE;
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
    if (!table)
        return;
    scols_unref_table(table->scols);
    free(table);
}

void table_row(struct table *table)
{
    table->line = scols_table_new_line(table->scols, NULL);
    table->next = 0;
}

void table_cell(struct table *table, const char *colour, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        return;
    if (colour)
        scols_cell_set_color(scols_line_get_cell(table->line, table->next), colour);
    scols_line_refer_data(table->line, table->next++, text);
}

/* Columns a cell takes at most; what gives way on a narrow terminal counts up to CUT_WIDEST. */
static size_t cell_width(const char *text, int flags)
{
    size_t width = text ? strlen(text) : 0;
    return flags & TABLE_CUT && width > CUT_WIDEST ? CUT_WIDEST : width;
}

static size_t column_width(struct table *table, size_t i)
{
    struct libscols_iter *lines = scols_new_iter(SCOLS_ITER_FORWARD);
    struct libscols_line *line;
    size_t widest = strlen(table->columns[i].header);
    while (scols_table_next_line(table->scols, lines, &line) == 0) {
        size_t width = cell_width(
            scols_cell_get_data(scols_line_get_cell(line, i)), table->columns[i].flags);
        widest = width > widest ? width : widest;
    }
    scols_free_iter(lines);
    return widest;
}

/* Puts line ends in place of the blanks nearest before every `width` bytes. */
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

/* Ends the text after at most `width` bytes, not inside a character. */
static void cut_text(char *text, size_t width)
{
    if (strlen(text) <= width)
        return;
    while (width && ((unsigned char)text[width] & 0xc0) == 0x80)
        width--;
    text[width] = '\0';
}

static void fit_last_column(struct table *table, size_t last)
{
    size_t others = 0, width = (size_t)output_width();
    for (size_t i = 0; i < last; i++)
        others += is_left_out(&table->columns[i]) ? 0 : column_width(table, i) + 1;
    size_t left = width > others + LAST_LEAST ? width - others : LAST_LEAST;

    struct libscols_iter *lines = scols_new_iter(SCOLS_ITER_FORWARD);
    struct libscols_line *line;
    while (scols_table_next_line(table->scols, lines, &line) == 0) {
        struct libscols_cell *cell = scols_line_get_cell(line, last);
        char *text = strdup(scols_cell_get_data(cell) ? scols_cell_get_data(cell) : "");
        if (!text)
            continue;
        if (table->columns[last].flags & TABLE_WRAP)
            wrap_text(text, width ? left : SIZE_MAX);
        else if (width)
            cut_text(text, left);
        scols_cell_refer_data(cell, text);
    }
    scols_free_iter(lines);
}

void table_print(struct table *table, const char *none)
{
    if (scols_table_is_empty(table->scols)) {
        puts(none);
        return;
    }
    size_t last = scols_table_get_ncols(table->scols) - 1;
    if (table->columns[last].flags & (TABLE_WRAP | TABLE_REST))
        fit_last_column(table, last);
    scols_print_table(table->scols);
}
