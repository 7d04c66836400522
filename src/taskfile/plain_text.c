/* SPDX-License-Identifier: Apache-2.0 */
/* Tests whether bytes are text, by a strict UTF-8 decoder: overlong forms and surrogates are
 * refused. */
#include "taskfile/plain_text.h"

#include <errno.h>

/* Returns the size of the well-formed character at the front (Unicode 15, table 3-7), 0: none. */
static size_t character_size(const unsigned char *at, size_t size)
{
    unsigned char c = at[0];
    if (c < 0x80)
        return c != 0;
    size_t n = (size_t)text_character_size(c);
    if (n == 0 || n > size)
        return 0;
    unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* Returns the offset of the first byte that is not text, or the size. */
static size_t text_length(struct span text)
{
    size_t i = 0, n;
    while (i < text.size &&
           (n = character_size((const unsigned char *)text.at + i, text.size - i)) > 0)
        i += n;
    return i;
}

bool is_plain_text(struct span text)
{
    return text_length(text) == text.size;
}

int plain_text_check(const char *name, struct span text, struct fault *fault)
{
    size_t end = text_length(text);
    if (end == text.size)
        return 0;
    size_t line = 1;
    for (size_t i = 0; i < end; i++)
        line += text.at[i] == '\n';
    if (text.at[end] == '\0')
        return fault_set(
            fault, EILSEQ, "%s:%zu: has a NUL byte; this is binary, not text", name, line);
    return fault_set(fault, EILSEQ, "%s:%zu: is not UTF-8 text (byte 0x%02x); save it as UTF-8",
        name, line, (unsigned)(unsigned char)text.at[end]);
}
