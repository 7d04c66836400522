/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a line into words as a shell does. They are copied without their quoting into one block,
 * behind the pointers to them. */
#include "taskfile/word_split.h"

#include <errno.h>
#include <stdlib.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Inside double quotes a backslash keeps its meaning only before these, as in POSIX shells. */
static bool is_escapable(char c)
{
    return c == '"' || c == '\\' || c == '$' || c == '`';
}

/* Copies one word to `out` without its quoting, with a NUL. Returns the position for the next word,
 * or NULL with a fault. */
static char *copy_word(struct span *line, char *out, struct fault *fault)
{
    char quote = 0;
    while (line->size && (quote || !is_blank(line->at[0]))) {
        char c = *line->at++;
        line->size--;
        if (c == quote) {
            quote = 0;
        } else if (!quote && (c == '\'' || c == '"')) {
            quote = c;
        } else if (c == '\\' && quote != '\'' &&
                   (!quote || (line->size && is_escapable(line->at[0])))) {
            if (line->size == 0) {
                fault_set(fault, EINVAL, "a backslash ends the line; lines cannot be continued");
                return NULL;
            }
            *out++ = *line->at++;
            line->size--;
        } else {
            *out++ = c;
        }
    }
    if (quote) {
        fault_set(fault, EINVAL, "the quote %c is not closed", quote);
        return NULL;
    }
    *out++ = '\0';
    return out;
}

static void skip_blanks(struct span *line)
{
    while (line->size && is_blank(line->at[0])) {
        line->at++;
        line->size--;
    }
}

int word_split(struct span line, struct fault *fault, const char ***ret_words)
{
    size_t most = line.size / 2 + 2;
    const char **words = malloc(most * sizeof *words + line.size + 2);
    if (!words)
        return fault_set(fault, ENOMEM, "out of memory");
    char *out = (char *)(words + most);
    int count = 0;
    for (skip_blanks(&line); line.size && line.at[0] != '#'; skip_blanks(&line)) {
        words[count++] = out;
        out = copy_word(&line, out, fault);
        if (!out) {
            free(words);
            return -EINVAL;
        }
    }
    words[count] = NULL;
    *ret_words = words;
    return count;
}
