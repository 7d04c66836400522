/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as lsblk prints them: fitted to the width of a terminal, uncut in a pipe. */
#ifndef COLLOC_CLI_TABLE_H
#define COLLOC_CLI_TABLE_H

#include <stddef.h>

enum table_flags {
    TABLE_RIGHT = 1,   /* numbers */
    TABLE_CUT = 2,     /* on a narrow terminal cut first, with "..." */
    TABLE_WRAP = 4,    /* last column: wrapped to the width that the others leave */
    TABLE_REST = 8,    /* last column: cut, with "...", to the width that the others leave */
    TABLE_WIDE = 16,   /* left out on a terminal with less than 100 columns */
    TABLE_WIDEST = 32, /* left out on a terminal with less than 150 columns */
    TABLE_BELOW = 64, /* last column: what the others leave no room for is on lines below the row */
};

struct table_column {
    const char *header;
    int flags;
};

struct table;

/* Creates a table without rows. `columns`: borrowed until table_destroy. Returns NULL without
 * memory. */
struct table *table_create(const struct table_column *columns, size_t count);
void table_destroy(struct table *table);

/* Begins a row. */
void table_row(struct table *table);

/* Adds the row's next cell. `colour`: a name such as "green", or NULL. */
void table_cell(struct table *table, const char *colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints the table to stdout; the text `none` if it has no row. */
void table_print(struct table *table, const char *none);

#endif
