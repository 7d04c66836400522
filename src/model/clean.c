/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleans a summary's text, so that the readers of the forms see plain lines: removes what terminals
 * and editors add (escape sequences, overwritten progress bars, carriage returns, the signs of a
 * comment before each line) and replaces box-drawing characters by ASCII. Every line keeps its
 * number, which messages name.
 */
#include <errno.h>
#include <string.h>

#include "model/format.h"

enum { ESCAPE = 0x1b, BELL = 0x07, DELETE = 0x7f };

/* Length of the terminal sequence at `s`, which begins with ESC; never runs over the end of the
 * line. */
static size_t escape_size(struct span s)
{
    size_t i = 1;
    if (i < s.size && s.at[i] == '[') {
        for (i++; i < s.size && s.at[i] != '\n'; i++)
            if (s.at[i] >= '@' && s.at[i] <= '~')
                return i + 1;
        return i;
    }
    if (i < s.size && s.at[i] == ']') {
        for (i++; i < s.size && s.at[i] != '\n'; i++)
            if (s.at[i] == BELL)
                return i + 1;
        return i;
    }
    return i < s.size && s.at[i] != '\n' ? i + 1 : i;
}

/* The ASCII character for U+2500..U+257F (box drawing). */
static char box_as_ascii(unsigned code)
{
    static const char lines[] = "--||--||--||"; /* U+2500..U+250B */
    unsigned i = code - 0x2500;
    if (i < sizeof lines - 1)
        return lines[i];
    if (code == 0x254c || code == 0x254d || code == 0x2550)
        return '-';
    if (code == 0x254e || code == 0x254f || code == 0x2551)
        return '|';
    return '+';
}

/* Returns the size of the character at `s` when it has an ASCII replacement, which *ret is then; 0:
 * the byte is copied unchanged. */
static size_t stand_in(struct span s, char *ret_char)
{
    const unsigned char *at = (const unsigned char *)s.at;
    if (s.size >= 3 && at[0] == 0xe2 && (at[1] == 0x94 || at[1] == 0x95) &&
        (at[2] & 0xc0) == 0x80) {
        *ret_char = box_as_ascii(0x2500u + (at[1] - 0x94u) * 0x40u + (at[2] & 0x3fu));
        return 3;
    }
    if (s.size >= 2 && at[0] == 0xc2 && at[1] == 0xa0) { /* a blank that does not break */
        *ret_char = ' ';
        return 2;
    }
    return 0;
}

/* Returns how many bytes at the front can be copied unchanged: most can, in one memcpy. */
static size_t plain_run(struct span s)
{
    size_t n = 0;
    while (n < s.size && s.at[n] >= ' ' && s.at[n] < DELETE)
        n++;
    return n;
}

/* Bytes of a comment's sign at the start of a line, "# " or "#": a summary may stand in a comment of
 * Python. */
static size_t comment_sign(struct span s)
{
    size_t n = 0;
    while (n < s.size && s.at[n] == '#')
        n++;
    return n && n < s.size && s.at[n] == ' ' ? n + 1 : n;
}

static bool ends_line(struct span s)
{
    size_t i = 0;
    while (i < s.size && s.at[i] == '\r')
        i++;
    return i == s.size || s.at[i] == '\n';
}

/* Reduces the text to printable ASCII and line ends, with as many bytes or fewer: colours and
 * progress bars of a terminal's log are removed, the boxes of Keras become | and -. Other control
 * characters mean that the file is not a text. */
int text_clean(const char *text, size_t size, char *out, struct fault *fault, size_t *ret_size)
{
    struct span s = {text, size};
    size_t n = 0, line_start = 0;
    int line = 1;
    if (span_starts(s, "\xef\xbb\xbf"))
        s = span_skip(s, 3);
    while (s.size) {
        if (n == line_start)
            s = span_skip(s, comment_sign(s));
        if (!s.size)
            break;
        unsigned char c = (unsigned char)s.at[0];
        size_t used = 1;
        if (c >= ' ' && c < DELETE) {
            used = plain_run(s);
            memcpy(out + n, s.at, used);
            n += used;
        } else if (c == '\n') {
            out[n++] = '\n';
            line_start = n;
            line++;
        } else if (c == '\r') {
            /* A carriage return alone moves the cursor to the start of the line: what follows
             * overwrites the line, as progress bars do. */
            while (used < s.size && s.at[used] == '\r')
                used++;
            if (!ends_line(s))
                n = line_start;
        } else if (c == '\t' || c == '\v' || c == '\f') {
            out[n++] = ' ';
        } else if (c == ESCAPE) {
            used = escape_size(s);
        } else if (c >= 0x80) {
            char ascii = (char)c;
            size_t of_box = stand_in(s, &ascii);
            used = of_box ? of_box : 1;
            out[n++] = ascii;
        } else if (c != '\b' && c != BELL && c != DELETE) {
            return fault_set(fault, EINVAL,
                "line %d: byte 0x%02x: this is a binary file, not a model summary", line, c);
        }
        s = span_skip(s, used);
    }
    *ret_size = n;
    return 0;
}
