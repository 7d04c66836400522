/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads tables in text files, a row at a time, in constant memory. The first line names the
 * columns; its separator is that of the table: "|", else commas, else blanks. Comma-separated
 * tables are RFC 4180's, with quoted fields. Blank lines and lines that begin with "#" are skipped.
 * An empty field and "-" mean no value.
 */
#ifndef COLLOC_BASE_COLUMNS_H
#define COLLOC_BASE_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fault.h"

/* Chosen: sacct --format=ALL has about 120. */
enum { COLUMNS_MAX = 256, COLUMNS_LINE_MAX = 1 << 16 };

struct columns {
    FILE *file;
    bool owned;       /* the file is closed by columns_close */
    const char *name; /* of the file, for faults; borrowed */
    int64_t lines;    /* read so far */
    int64_t number;   /* of the line in which the current row begins */
    char separator;   /* ' ' means any blanks */
    bool has_first;   /* `raw` is the first row: the table has no line of names */
    bool named;       /* the names are those of the caller */
    struct csv_parser *parser;
    char *raw;         /* the last line that was read */
    char *names, *row; /* the first row and the current one, split into fields */
    char *name_at[COLUMNS_MAX], *field[COLUMNS_MAX];
    int n; /* columns */
};

/* Opens a file ("-": standard input) and reads the names. Returns 0, or -errno with a fault.
 * columns_close must follow either way. */
int columns_open(struct columns *columns, const char *path, struct fault *fault);

/* The same for an open file, which is borrowed. */
int columns_open_file(struct columns *columns, FILE *file, const char *name, struct fault *fault);

/*
 * The same for a comma-separated file that may lack the line of names.
 *
 * path:  "-" is standard input
 * names: the names of its columns, comma-separated, for a file whose first line does not begin with
 *        the first of them
 */
int columns_open_named(
    struct columns *columns, const char *path, const char *names, struct fault *fault);
int columns_open_file_named(
    struct columns *columns, FILE *file, const char *name, const char *names, struct fault *fault);

/* The same for a text in memory, which is borrowed. */
int columns_open_text(
    struct columns *columns, const char *text, const char *name, struct fault *fault);
void columns_close(struct columns *columns);

/* Reads the next row. Returns 1, 0 at the end, or -errno with the line in the fault. */
int columns_next(struct columns *columns, struct fault *fault);

/* Returns the column of the first of these names that exists, or -1. `names` is NULL-terminated. */
int columns_find(const struct columns *columns, const char *const *names);

/* Returns the current row's value, valid until the next row; NULL: no value, or `column` is -1. */
const char *columns_get(const struct columns *columns, int column);

/* Parses the value as a number within [min, max]. Returns 1, 0 without a value (*ret_value is not
 * changed), or -errno with line and column in the fault. */
int columns_number(const struct columns *columns, int column, double min, double max,
    struct fault *fault, double *ret_value);

/* Writes a field of a comma-separated table, quoted if needed. */
void columns_print(FILE *out, const char *text);

/* The same for a text of a user in a table for spreadsheets: one that a spreadsheet would run as a
 * formula gets an apostrophe before it. A number stays. */
void columns_print_text(FILE *out, const char *text);

/* Sets a fault with the file and line of the current row. Returns -EINVAL. */
int columns_wrong(const struct columns *columns, struct fault *fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
