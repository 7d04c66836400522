/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for parsers of the summary forms: brackets, words and identifiers in spans. */
#include "model/format.h"

size_t span_find_close(struct span s)
{
    int open = 0;
    for (size_t i = 0; i < s.size; i++) {
        char c = s.at[i];
        if (c == '(' || c == '[' || c == '{')
            open++;
        else if ((c == ')' || c == ']' || c == '}') && --open <= 0)
            return i;
    }
    return s.size;
}

struct span span_take_word(struct span *s)
{
    int open = 0;
    *s = span_trim(*s);
    size_t n = 0;
    for (; n < s->size && (open > 0 || s->at[n] != ' '); n++) {
        char c = s->at[n];
        open += (c == '(' || c == '[') - (c == ')' || c == ']');
    }
    struct span word = span_first(*s, n);
    *s = span_skip(*s, n);
    return word;
}

static bool is_identifier(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

struct span span_take_identifier(struct span *s)
{
    size_t n = 0;
    while (n < s->size && is_identifier(s->at[n]))
        n++;
    struct span word = span_first(*s, n);
    *s = span_skip(*s, n);
    return word;
}
