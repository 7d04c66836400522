/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for users whose length is not known before: reasons why a task waits. Each piece is
 * appended; once the buffer is full, further pieces are lost and the text ends there.
 */
#include "core/text_line.h"

#include <stdarg.h>
#include <stdio.h>

void text_line_add(struct text_line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line->text + line->used, line->size - line->used, format, args);
    va_end(args);
    line->used += (size_t)n;
    if (line->used >= line->size)
        line->used = line->size - 1;
}
