/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Slurm's configuration files as Slurm's own parser does (its parse_config.c):
 * a comment is removed from each line of the file, then a backslash at its end joins the next line.
 *
 *     NodeName=gpu[01-04] CPUs=64 \      # two lines of the file, one logical line
 *         Gres=gpu:a100:4
 */
#include "slurmconf/conf_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/span_parts.h"

/* The bytes of a line without its comment: an odd number of backslashes before "#" protects it. */
static size_t size_without_comment(struct span line)
{
    size_t backslashes = 0;
    for (size_t i = 0; i < line.size; i++) {
        if (line.at[i] == '#' && backslashes % 2 == 0)
            return i;
        backslashes = line.at[i] == '\\' ? backslashes + 1 : 0;
    }
    return line.size;
}

/* Removes a continuation: an odd number of backslashes at the end, before white space. */
static bool take_continuation(struct span *line)
{
    size_t end = line->size, backslashes = 0;
    while (end > 0 && isspace((unsigned char)line->at[end - 1]))
        end--;
    while (backslashes < end && line->at[end - 1 - backslashes] == '\\')
        backslashes++;
    if (backslashes % 2 == 0)
        return false;
    line->size = end - 1;
    return true;
}

int conf_text_parse(struct span text, struct conf_text *ret_conf)
{
    *ret_conf = (struct conf_text){0};
    while (text.size > 0) {
        const char *begin = text.at;
        char *joined = malloc(text.size + 1);
        size_t size = 0;
        bool goes_on = true;
        if (!joined)
            return -ENOMEM;
        while (goes_on && text.size > 0) {
            struct span line = span_take_line(&text);
            line.size = size_without_comment(line);
            goes_on = take_continuation(&line);
            memcpy(joined + size, line.at, line.size);
            size += line.size;
        }
        struct span trimmed = span_trim((struct span){joined, size});
        char *copy = strndup(trimmed.at, trimmed.size);
        free(joined);
        struct conf_line line = {{begin, (size_t)(text.at - begin)}, copy};
        if (!copy || ARRAY_APPEND(ret_conf->lines, ret_conf->count, ret_conf->capacity, line) < 0) {
            free(copy);
            return -ENOMEM;
        }
    }
    return 0;
}

void conf_text_fini(struct conf_text *conf)
{
    for (size_t i = 0; i < conf->count; i++)
        free(conf->lines[i].text);
    free(conf->lines);
    *conf = (struct conf_text){0};
}

static bool is_key_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '/';
}

static void skip_bytes(struct span *rest, size_t count)
{
    rest->at += count;
    rest->size -= count;
}

static void skip_blanks(struct span *rest)
{
    while (rest->size > 0 && isspace((unsigned char)*rest->at))
        skip_bytes(rest, 1);
}

static size_t size_of_word(struct span rest)
{
    size_t size = 0;
    while (size < rest.size && !isspace((unsigned char)rest.at[size]))
        size++;
    return size;
}

static struct span take_value(struct span *rest)
{
    const char *quote = NULL;
    if (rest->size > 0 && *rest->at == '"')
        quote = memchr(rest->at + 1, '"', rest->size - 1);
    struct span value = {rest->at, size_of_word(*rest)};
    if (quote)
        value = (struct span){rest->at + 1, (size_t)(quote - rest->at) - 1};
    skip_bytes(rest, quote ? value.size + 2 : value.size);
    return value;
}

bool conf_next_pair(struct span *rest, struct span *ret_key, struct span *ret_value)
{
    for (skip_blanks(rest); rest->size > 0; skip_blanks(rest)) {
        struct span key = {rest->at, 0}, after;
        while (key.size < rest->size && is_key_byte(rest->at[key.size]))
            key.size++;
        after = (struct span){rest->at + key.size, rest->size - key.size};
        skip_blanks(&after);
        if (key.size > 0 && after.size > 0 && *after.at == '=') {
            skip_bytes(&after, 1);
            skip_blanks(&after);
            *rest = after;
            *ret_key = key;
            *ret_value = take_value(rest);
            return true;
        }
        skip_bytes(rest, size_of_word(*rest));
    }
    return false;
}

bool conf_find(const char *line, const char *key, struct span *ret_value)
{
    struct span rest = span_of(line), found, value;
    while (conf_next_pair(&rest, &found, &value)) {
        if (!span_is_nocase(found, key))
            continue;
        *ret_value = value;
        return true;
    }
    return false;
}

bool conf_begins_with(const char *line, const char *key, struct span *ret_value)
{
    struct span rest = span_of(line), found, value;
    bool is_first = conf_next_pair(&rest, &found, &value) && span_is_nocase(found, key);
    if (is_first)
        *ret_value = value;
    return is_first;
}

bool conf_included(const char *line, struct span *ret_file)
{
    static const char word[] = "include";
    size_t size = strlen(word);
    if (strncasecmp(line, word, size) != 0 || !isspace((unsigned char)line[size]))
        return false;
    struct span file = span_trim(span_of(line + size));
    if (file.size > 0)
        *ret_file = file;
    return file.size > 0;
}
