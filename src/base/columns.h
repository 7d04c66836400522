/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables in text files, a row at a time, whatever the size of the file. The first line names the
 * columns and says what separates them: "|", else commas, else blanks. Comma-separated tables are
 * RFC 4180's, with quoted fields. Blank lines and lines that begin with "#" are skipped. An empty
 * field and "-" are no value.
 */
#ifndef COLLOC_BASE_COLUMNS_H
#define COLLOC_BASE_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fault.h"

enum { COLUMNS_MAX = 256, COLUMNS_LINE_MAX = 1 << 16 };

struct columns {
    FILE *file;
    bool owned;       /* the file is closed by columns_close */
    const char *name; /* of the file, for faults; borrowed */
    int64_t lines;    /* read so far */
    int64_t number;   /* of the line in which the present row begins */
    char separator;   /* ' ' is any blanks */
    struct csv_parser *parser;
    char *raw;         /* the last line that was read */
    char *names, *row; /* the text of the first row and of the present one, cut into fields */
    char *name_at[COLUMNS_MAX], *field[COLUMNS_MAX];
    int n;
};

/* Opens the file ("-" is standard input) and reads the names. 0 or -errno with a fault. Ended by
 * columns_close either way. */
int columns_open(struct columns *columns, const char *path, struct fault *fault);

/* The same over an open file (borrowed). */
int columns_open_file(struct columns *columns, FILE *file, const char *name, struct fault *fault);

/* The same over a text in memory (borrowed). */
int columns_open_text(
    struct columns *columns, const char *text, const char *name, struct fault *fault);
void columns_close(struct columns *columns);

/* 1: there is a row; 0: the end; or -errno with the line in the fault. */
int columns_next(struct columns *columns, struct fault *fault);

/* The column of the first of these names that there is, or -1. The names are ended by NULL. */
int columns_find(const struct columns *columns, const char *const *names);

/* The present row's value in that column; NULL when it has none, or `column` is -1. */
const char *columns_get(const struct columns *columns, int column);

/* As a number within [min, max]: 1, 0 without a value (*ret_value stays), or -errno with line and
 * column in the fault.
 */
int columns_number(const struct columns *columns, int column, double min, double max,
    struct fault *fault, double *ret_value);

/*
 * Writes one field so that a comma-separated table gives it back: in quotation marks where it needs
 * them.
 */
void columns_print(FILE *out, const char *text);

/* A fault of the present row. Returns -EINVAL. */
int columns_wrong(const struct columns *columns, struct fault *fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
