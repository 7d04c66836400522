/* SPDX-License-Identifier: Apache-2.0 */
/* Spans, which are texts with a length, and UTF-8: see text.h. */
#include "base/text.h"

#include <string.h>

struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

struct span span_of_optional(const char *text)
{
    return span_of(text ? text : "");
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0';
}

struct span span_trim(struct span s)
{
    if (s.size >= 3 && memcmp(s.at, "\xef\xbb\xbf", 3) == 0) {
        s.at += 3;
        s.size -= 3;
    }
    while (s.size && is_blank(s.at[0])) {
        s.at++;
        s.size--;
    }
    while (s.size && is_blank(s.at[s.size - 1]))
        s.size--;
    return s;
}

int span_place(struct span s, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (names[i] && span_is(s, names[i]))
            return (int)i;
    return -1;
}

bool span_copy(struct span s, char *buffer, size_t size)
{
    if (size == 0)
        return false;
    size_t n = s.size < size - 1 ? s.size : size - 1;
    if (n)
        memcpy(buffer, s.at, n);
    buffer[n] = '\0';
    return n == s.size;
}

bool span_next_line(struct span *text, struct span *ret_line)
{
    if (text->size == 0)
        return false;
    const char *newline = memchr(text->at, '\n', text->size);
    size_t n = newline ? (size_t)(newline - text->at) : text->size;
    *ret_line = (struct span){text->at, n};
    if (n && text->at[n - 1] == '\r')
        ret_line->size--;
    size_t used = newline ? n + 1 : n;
    text->at += used;
    text->size -= used;
    return true;
}

int text_character_size(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    if (first < 0xe0)
        return 2;
    return first < 0xf0 ? 3 : 4;
}

/* Returns the number of bytes after the first one of a character; -1: it begins none. Overlong
 * forms and surrogates are accepted. */
static int continuation_bytes(unsigned char first)
{
    return text_character_size(first) - 1;
}

static bool reorders_text(unsigned number)
{
    return number == 0x61c || number == 0x200e || number == 0x200f ||
           (number >= 0x2028 && number <= 0x202e) || (number >= 0x2066 && number <= 0x2069);
}

size_t text_control(const char *text, unsigned *ret_number)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t size = 1;
    unsigned number = c[0];
    if (c[0] >= 0xc2 && c[0] <= 0xdf && (c[1] & 0xc0) == 0x80) {
        size = 2;
        number = (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
    } else if (c[0] == 0xe2 && (c[1] & 0xc0) == 0x80 && (c[2] & 0xc0) == 0x80) {
        size = 3;
        number = (c[0] & 0xfu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
    }
    bool is_c1 = size == 2 && number >= 0x80 && number < 0xa0;
    *ret_number = number;
    return number < ' ' || number == 0x7f || is_c1 || reorders_text(number) ? size : 0;
}

void text_mend(char *text)
{
    while (*text) {
        int wanted = continuation_bytes((unsigned char)*text), n = 0;
        while (n < wanted && ((unsigned char)text[n + 1] & 0xc0) == 0x80)
            n++;
        if (n != wanted)
            *text++ = '?';
        else
            text += wanted + 1;
    }
}

void text_make_printable(char *text, char instead)
{
    unsigned number;
    text_mend(text);
    for (size_t size; *text; text += size) {
        size = text_control(text, &number);
        memset(text, instead, size);
        size = size ? size : 1;
    }
}
