/* SPDX-License-Identifier: Apache-2.0 */
/* Compares lines with the sentences of exec/sentences.def. */
#include "exec/pattern.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"

#define SENTENCE(kind, framework, where, source, ...)                                              \
    {LOG_CAUSE_##kind, framework, (where) == THROWN, source, {__VA_ARGS__}},

enum { ANYWHERE, THROWN };

static const struct pattern patterns[] = {
#include "exec/sentences.def"
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* "memoryerror" is in "MemoryError" and not in "OutOfMemoryError". */
static bool has_part(const char *line, const char *part)
{
    for (const char *at = line; (at = strstr(at, part)); at++)
        if (at == line || !is_word(at[-1]) || !is_word(part[0]))
            return true;
    return false;
}

static bool matches_line(const struct pattern *pattern, const char *line)
{
    for (size_t i = 0; i < ARRAY_SIZE(pattern->parts) && pattern->parts[i]; i++)
        if (!has_part(line, pattern->parts[i]))
            return false;
    return true;
}

void pattern_lower(const char *text, char *lower)
{
    do
        *lower++ = (char)tolower((unsigned char)*text);
    while (*text++);
}

const struct pattern *pattern_table(size_t *ret_n)
{
    *ret_n = ARRAY_SIZE(patterns);
    return patterns;
}

const struct pattern *pattern_find(const char *line, bool thrown)
{
    for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
        if ((thrown || !patterns[i].thrown_only) && matches_line(&patterns[i], line))
            return &patterns[i];
    return NULL;
}
