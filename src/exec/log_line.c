/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes: the first removes escape sequences, the second whatever is not valid UTF-8 or is a
 * control character.
 */
#include "exec/log_line.h"

#include <stdbool.h>
#include <string.h>

/* Returns the length of the escape sequence at the start of `s`: "ESC [ ... letter", "ESC ] ...
 * BEL", or ESC and one byte. */
static size_t escape_length(struct span s)
{
    size_t i = 2;
    if (s.size < 2)
        return s.size;
    if (s.at[1] == '[') {
        while (i < s.size && (s.at[i] < '@' || s.at[i] > '~'))
            i++;
    } else if (s.at[1] == ']') {
        while (i < s.size && s.at[i] != '\a')
            i++;
    } else {
        return 2;
    }
    return i < s.size ? i + 1 : i;
}

size_t log_line_strip(struct span line, char *buffer, size_t size)
{
    size_t n = 0;
    while (line.size && n + 1 < size) {
        size_t used = 1;
        if (line.at[0] == '\033')
            used = escape_length(line);
        else if (line.at[0] == '\t')
            buffer[n++] = ' ';
        else if (line.at[0] != '\0')
            buffer[n++] = line.at[0];
        line.at += used;
        line.size -= used;
    }
    buffer[n] = '\0';
    return n;
}

/* Returns the bytes of the printable UTF-8 character that starts here; 0 if there is none. */
static size_t character_length(const char *at)
{
    const unsigned char *s = (const unsigned char *)at;
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xed && s[1] >= 0xa0;
    bool beyond = s[0] == 0xf4 && s[1] >= 0x90;
    unsigned number;
    return overlong || surrogate || beyond || text_control(at, &number) ? 0 : n;
}

/* Ends a line that was cut with " ..." after its last whole word. */
static void mark_cut(char *evidence, size_t n)
{
    static const char mark[] = " ...";
    size_t end = n < EVIDENCE_MAX - sizeof mark ? n : EVIDENCE_MAX - sizeof mark;
    while (end > 0 && evidence[end] != ' ')
        end--;
    if (end > EVIDENCE_MAX / 2)
        memcpy(evidence + end, mark, sizeof mark);
}

void log_line_clean(struct span line, char evidence[EVIDENCE_MAX])
{
    char plain[EVIDENCE_MAX * 2];
    log_line_strip(span_trim(line), plain, sizeof plain);
    size_t n = 0;
    const char *at = plain;
    while (*at) {
        size_t used = character_length(at);
        if (n + (used ? used : 1) >= EVIDENCE_MAX)
            break;
        if (used)
            memcpy(evidence + n, at, used);
        else
            evidence[n] = '?';
        n += used ? used : 1;
        at += used ? used : 1;
    }
    evidence[n] = '\0';
    if (*at)
        mark_cut(evidence, n);
}
