/* SPDX-License-Identifier: Apache-2.0 */
/* Output of the program: errors, text for a terminal, JSON and CSV for scripts. */
#ifndef COLLOC_CLI_PRINT_H
#define COLLOC_CLI_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/fault.h"

/* Prints "colloc: " and the text to stderr. */
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints untrusted text with control characters escaped (\x1b), so that it cannot control the
 * terminal. */
void print_safe(FILE *stream, const char *text);

/*
 * Prints the output of an untrusted program in the same way, but with its tabs, ends of lines and
 * returns of progress bars, and flushes the stream.
 *
 * bytes: any; what is no UTF-8 becomes '?'
 *
 * Returns 0 or -errno.
 */
int print_safe_output(FILE *stream, const char *bytes, size_t size);

/*
 * Prints text to stdout, wrapped, and ends the last line. Control characters are escaped; an empty
 * line separates paragraphs.
 *
 * column: the cursor is there; further lines are indented to it.
 * width:  of a line, in columns; 0: no limit.
 */
void print_wrapped(const char *text, int column, int width);

/* Is stdout a terminal, and NO_COLOR not set? */
bool output_has_colours(void);

/* Returns the columns of the terminal on stdout; 0 if stdout is no terminal. */
int output_width(void);

/* Prints a number or text as a CSV cell (RFC 4180), quoted where it has to be, without separator.
 * Control characters are escaped as by print_safe, and an apostrophe comes before a text that a
 * spreadsheet would run as a formula. Any other value, such as null, is an empty cell. */
void print_csv_cell(const json_t *value);

/* Prints a line by a format of the user, which may not be valid. Returns a negative value then. */
typedef int print_formatted(const void *context, FILE *out);

/* Is the format valid? The line is printed to nowhere: so nothing is printed before that is
 * known. */
bool print_is_format_valid(print_formatted *print, const void *context);

/* Prints the JSON, indented, and a newline. Returns EXIT_OK. */
int print_json(const json_t *json);

/* Prints the JSON and a newline, with control characters escaped. `layout`: JSON_INDENT(N) or
 * JSON_COMPACT. Returns EXIT_OK, or EXIT_REFUSED: memory is out. */
int print_json_to(FILE *stream, const json_t *json, size_t layout);

#endif
