/* SPDX-License-Identifier: Apache-2.0 */
/* What the program says: to people on a terminal, to scripts in a pipe. */
#ifndef COLLOC_CLI_PRINT_H
#define COLLOC_CLI_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/fault.h"

/* "colloc: text" on stderr. */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes text of others with its control characters made visible (\x1b): it cannot move the cursor
 * or recolour. */
void print_safe(FILE *stream, const char *text);

/*
 * Writes text to stdout from `column` on, in lines of at most `width` (0: however long), the
 * further ones indented to there, and ends the line. An empty line parts paragraphs. Control
 * characters are made visible.
 */
void print_wrapped(const char *text, int column, int width);

/* Colours are for a terminal, and not when NO_COLOR is set. */
bool output_has_colours(void);

/* Columns of the terminal on stdout; 0 when it is none. */
int output_width(void);

/* A number or text as a cell of RFC 4180, without the end of a line; nothing for anything else: what
 * is not known is empty. */
void print_csv_cell(const json_t *value);

/* The JSON and a newline. Returns EXIT_OK. */
int print_json(const json_t *json);

#endif
