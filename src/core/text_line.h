/* SPDX-License-Identifier: Apache-2.0 */
/* A text that is written piece by piece into a buffer of its caller, and cut where that is full. */
#ifndef COLLOC_CORE_TEXT_LINE_H
#define COLLOC_CORE_TEXT_LINE_H

#include <stddef.h>

/* Start with {buffer, size, 0}, the buffer empty. */
struct text_line {
    char *text;
    size_t size, used; /* used: without the NUL */
};

/* Adds a piece, formatted as by printf. */
void text_line_add(struct text_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
