/* SPDX-License-Identifier: Apache-2.0 */
/* Spans: text with a length instead of a NUL, on which all parsers are built; and its lines. */
#ifndef COLLOC_BASE_TEXT_H
#define COLLOC_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *at;
    size_t size;
};

struct span span_of(const char *text);          /* a whole NUL-terminated string, borrowed */
struct span span_of_optional(const char *text); /* the same; of NULL an empty span */
struct span span_trim(struct span s);           /* without white space, NUL and BOM at both ends */

/* Comparisons with a text, here since the compiler then knows the length of a literal: most of them
 * end with it or with the first character. */
static inline bool span_starts(struct span s, const char *prefix)
{
    size_t n = strlen(prefix);
    return n == 0 || (n <= s.size && s.at[0] == prefix[0] && memcmp(s.at, prefix, n) == 0);
}

static inline bool span_is(struct span s, const char *text)
{
    if (s.size == 0 || s.at[0] != text[0]) /* before the length of what is no literal */
        return s.size == 0 && text[0] == '\0';
    return strlen(text) == s.size && memcmp(s.at, text, s.size) == 0;
}

/* Returns the place of the span among `n` names, of which some may be NULL; -1: it is none of
 * them. */
int span_place(struct span s, const char *const *names, size_t n);

/* Does the text end so, behind something else? */
static inline bool text_ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && memcmp(text + n - m, end, m) == 0;
}

/* Copies at most size - 1 bytes and a NUL. Returns false when the span was truncated. */
bool span_copy(struct span s, char *buffer, size_t size);

/* Returns the size of the UTF-8 character that begins with the byte, 1 to 4; 0: none does. */
int text_character_size(unsigned char first);

/* Replaces every byte that is not part of a complete UTF-8 character by '?', for example after
 * truncation. */
void text_mend(char *text);

/*
 * Does the text begin with a character that controls a terminal: C0, DEL, C1, or one that reorders
 * or breaks the text around it (U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069)?
 *
 * Returns its size in bytes, with its code point in *ret_number; or 0.
 */
size_t text_control(const char *text, unsigned *ret_number);

/* text_mend, and replaces each byte of a character that text_control finds: the text is on one
 * line. */
void text_make_printable(char *text, char instead);

/* Returns what follows the last '/' of a path: "train.py" of "/home/ada/train.py". */
static inline const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Removes the next line from the front of `text`, without its "\n" or "\r\n". A last line may lack
 * a newline; an empty text has no line. Returns false at the end. */
bool span_next_line(struct span *text, struct span *ret_line);

#endif
