/* SPDX-License-Identifier: Apache-2.0 */
/* A span of text that need not end in NUL, and a reader of its lines: what every parser here stands
 * on. */
#ifndef COLLOC_BASE_TEXT_H
#define COLLOC_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct span {
    const char *at;
    size_t size;
};

struct span span_of(const char *text); /* all of a NUL-terminated string */
struct span span_trim(struct span s);  /* without white space (and NUL, BOM) at both ends */
bool span_is(struct span s, const char *text);
bool span_starts(struct span s, const char *prefix);

/* Copies at most size - 1 bytes and ends them with NUL. Returns false when the span was cut. */
bool span_copy(struct span s, char *buffer, size_t size);

/* Puts '?' in the place of every byte that belongs to no whole UTF-8 character: what was cut at a
 * buffer's end. */
void text_mend(char *text);

/*
 * A character that a terminal obeys instead of showing it: a control character (C0, DEL, C1), or
 * one that reorders or breaks the text around it (U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066
 * to U+2069). Returns its bytes at the begin of `text` and its number, or 0: another character.
 */
size_t text_control(const char *text, unsigned *ret_number);

/*
 * Takes the next line (without its "\n" or "\r\n") off the front of `text`. False at the end. A
 * last line without a newline counts; an empty text has no line.
 */
bool span_next_line(struct span *text, struct span *ret_line);

#endif
