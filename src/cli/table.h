/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as lsblk prints them: fitted to the terminal, whole in a pipe. */
#ifndef COLLOC_CLI_TABLE_H
#define COLLOC_CLI_TABLE_H

#include <stddef.h>

enum table_flags {
    TABLE_RIGHT = 1,   /* numbers */
    TABLE_CUT = 2,     /* gives way when the terminal is narrow: cut, with "..." */
    TABLE_WRAP = 4,    /* the last column: at blanks, to the width that the others leave */
    TABLE_REST = 8,    /* the last column: cut, with "...", to the width that the others leave */
    TABLE_WIDE = 16,   /* left out on a terminal of less than 100 columns */
    TABLE_WIDEST = 32, /* of less than 150 */
};

struct table_column {
    const char *header;
    int flags;
};

struct table;

/* NULL when memory is short. `columns` must live as long as the table. */
struct table *table_create(const struct table_column *columns, size_t count);
void table_destroy(struct table *table);

/* Begins a row. */
void table_row(struct table *table);

/* The row's next cell. `colour` is a name such as "green", or NULL. */
void table_cell(struct table *table, const char *colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* To stdout; when there is no row, `none` in its stead. */
void table_print(struct table *table, const char *none);

#endif
