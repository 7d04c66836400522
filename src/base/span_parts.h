/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of spans (text.h). A parser takes one after the other from the front:
 *
 *     "colloc v1 gpu=0"    span_take_until(&text, ' ') is "colloc", and leaves "v1 gpu=0"
 */
#ifndef COLLOC_BASE_SPAN_PARTS_H
#define COLLOC_BASE_SPAN_PARTS_H

#include "base/text.h"

static inline bool span_equals(struct span a, struct span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.at, b.at, a.size) == 0);
}

bool span_is_nocase(struct span s, const char *text); /* the same text but for case */
bool span_ends(struct span s, const char *suffix);

struct span span_skip(struct span s, size_t n);         /* without its first n bytes */
struct span span_first(struct span s, size_t n);        /* its first n bytes */
size_t span_find(struct span s, char c);                /* offset; s.size when it is missing */
size_t span_find_text(struct span s, const char *text); /* the same for a text */

/* Removes the text before the separator from the front, with the separator. Without one it is all
 * of the text. */
struct span span_take_until(struct span *text, char separator);

/* Removes the next line from the front with its line end, if it has one; empty at the end. */
struct span span_take_line(struct span *text);

#endif
