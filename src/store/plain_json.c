/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At a restart the log of 10,000 queued tasks is read, and half of that time was jansson's parser,
 * which takes some 250 instructions for a byte: it decodes UTF-8 and collects each token byte by
 * byte. Nearly all rows are as json_dumps with JSON_COMPACT wrote them, without escapes. Of these a
 * token is a part of the text. Where anything else is met, the whole text is left to jansson, which
 * also judges what is wrong with it.
 *
 *     {"uid":0,"need":"unknown"}      parsed here
 *     {"name":"a \"b\""}              NULL: an escape
 *     {"bytes":1.5}                   NULL: a number with a fraction
 */
#include "store/plain_json.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    DEPTH_MAX = 32,  /* chosen: rows have 4 levels */
    DIGITS_MAX = 18, /* an int64 holds all of them */
    KEY_MAX = 63     /* chosen: keys are shorter */
};

struct plain_text {
    const char *at, *end;
    int depth;
};

static json_t *parse_value(struct plain_text *text);

static bool take(struct plain_text *text, char c)
{
    if (text->at == text->end || *text->at != c)
        return false;
    text->at++;
    return true;
}

static bool take_word(struct plain_text *text, const char *word, size_t size)
{
    if ((size_t)(text->end - text->at) < size || memcmp(text->at, word, size) != 0)
        return false;
    text->at += size;
    return true;
}

/* Takes a string with its quotes. Returns its first byte, or NULL. */
static const char *take_string(struct plain_text *text, size_t *ret_size)
{
    if (!take(text, '"'))
        return NULL;
    const char *first = text->at;
    while (text->at < text->end && *text->at >= ' ' && *text->at < 0x7f && *text->at != '"' &&
           *text->at != '\\')
        text->at++;
    *ret_size = (size_t)(text->at - first);
    return take(text, '"') ? first : NULL;
}

static json_t *parse_string(struct plain_text *text)
{
    size_t size;
    const char *first = take_string(text, &size);
    return first ? json_stringn_nocheck(first, size) : NULL;
}

/* What follows has to be the end of a value: '.' or 'e' is refused there. */
static json_t *parse_integer(struct plain_text *text)
{
    bool is_negative = take(text, '-');
    const char *first = text->at;
    int64_t value = 0;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9' &&
           text->at - first < DIGITS_MAX)
        value = value * 10 + (*text->at++ - '0');
    bool is_zero_first = text->at > first && *first == '0';
    if (text->at == first || (is_zero_first && (text->at - first > 1 || is_negative)))
        return NULL;
    return json_integer(is_negative ? -value : value);
}

static bool add_member(struct plain_text *text, json_t *object)
{
    char key[KEY_MAX + 1];
    size_t size;
    const char *first = take_string(text, &size);
    if (!first || size > KEY_MAX || !take(text, ':'))
        return false;
    memcpy(key, first, size);
    key[size] = '\0';
    json_t *value = parse_value(text);
    return value && json_object_set_new_nocheck(object, key, value) == 0;
}

static bool add_element(struct plain_text *text, json_t *array)
{
    json_t *value = parse_value(text);
    return value && json_array_append_new(array, value) == 0;
}

/* Parses what is between the brackets of an object or an array, and the second one. */
static json_t *parse_list(struct plain_text *text, json_t *list, char end,
    bool (*add)(struct plain_text *text, json_t *list))
{
    bool is_good = list && ++text->depth <= DEPTH_MAX;
    if (is_good && !take(text, end)) {
        do
            is_good = add(text, list);
        while (is_good && take(text, ','));
        is_good = is_good && take(text, end);
    }
    text->depth--;
    if (is_good)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *parse_value(struct plain_text *text)
{
    if (take(text, '{'))
        return parse_list(text, json_object(), '}', add_member);
    if (take(text, '['))
        return parse_list(text, json_array(), ']', add_element);
    if (text->at < text->end && *text->at == '"')
        return parse_string(text);
    if (take_word(text, "true", 4))
        return json_true();
    if (take_word(text, "false", 5))
        return json_false();
    if (take_word(text, "null", 4))
        return json_null();
    return parse_integer(text);
}

json_t *plain_json_load(const char *text, size_t size)
{
    struct plain_text rest = {text, text + size, 0};
    if (size == 0 || (*text != '{' && *text != '['))
        return NULL;
    json_t *json = parse_value(&rest);
    if (json && rest.at == rest.end)
        return json;
    json_decref(json);
    return NULL;
}
