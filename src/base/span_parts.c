/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons and parts of spans, each a few bytes' work without a copy. */
#include "base/span_parts.h"

#include <strings.h>

bool span_is_nocase(struct span s, const char *text)
{
    return strlen(text) == s.size && (s.size == 0 || strncasecmp(s.at, text, s.size) == 0);
}

bool span_ends(struct span s, const char *suffix)
{
    size_t n = strlen(suffix);
    return n <= s.size && memcmp(s.at + s.size - n, suffix, n) == 0;
}

struct span span_skip(struct span s, size_t n)
{
    n = n < s.size ? n : s.size;
    return n ? (struct span){s.at + n, s.size - n} : s;
}

struct span span_first(struct span s, size_t n)
{
    return (struct span){s.at, n < s.size ? n : s.size};
}

size_t span_find(struct span s, char c)
{
    const char *at = s.size ? memchr(s.at, c, s.size) : NULL;
    return at ? (size_t)(at - s.at) : s.size;
}

size_t span_find_text(struct span s, const char *text)
{
    const char *at = s.size ? memmem(s.at, s.size, text, strlen(text)) : NULL;
    return at ? (size_t)(at - s.at) : s.size;
}

struct span span_take_until(struct span *text, char separator)
{
    struct span taken = span_first(*text, span_find(*text, separator));
    *text = span_skip(*text, taken.size + 1);
    return taken;
}

struct span span_take_line(struct span *text)
{
    struct span line = span_first(*text, span_find(*text, '\n') + 1);
    *text = span_skip(*text, line.size);
    return line;
}
