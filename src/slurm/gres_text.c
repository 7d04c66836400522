/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An item is a prefix "gres:" or "gres/" that may be missing, then a name, a type and a count with
 * colons between. The type or the count may be missing: a number is the count (gpu:2), anything
 * else the type (gpu:a100). A suffix in parentheses, which may contain commas, is skipped.
 */
#include "slurm/gres_text.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* The text up to the next comma outside of parentheses. */
static struct span take_word(struct span *text)
{
    struct span word = {text->at, 0};
    int depth = 0;
    while (word.size < text->size) {
        char c = text->at[word.size];
        if (c == ',' && depth == 0)
            break;
        depth += c == '(' ? 1 : c == ')' && depth > 0 ? -1 : 0;
        word.size++;
    }
    size_t taken = word.size + (word.size < text->size);
    text->at += taken;
    text->size -= taken;
    const char *suffix = memchr(word.at, '(', word.size);
    if (suffix)
        word.size = (size_t)(suffix - word.at);
    return span_trim(word);
}

/* Removes the part before the next colon, or all. */
static struct span take_part(struct span *word)
{
    const char *colon = memchr(word->at, ':', word->size);
    struct span part = {word->at, colon ? (size_t)(colon - word->at) : word->size};
    size_t taken = part.size + (colon != NULL);
    word->at += taken;
    word->size -= taken;
    return part;
}

static bool read_count(struct span part, int64_t *ret_count)
{
    char text[24];
    return part.size > 0 && span_copy(part, text, sizeof text) &&
           parse_int64(text, 0, INT32_MAX, ret_count) == 0;
}

static bool read_item(struct span word, struct gres_item *ret_item)
{
    if (span_starts(word, "gres:") || span_starts(word, "gres/")) {
        word.at += strlen("gres:");
        word.size -= strlen("gres:");
    }
    struct gres_item item = {.count = 1};
    struct span name = take_part(&word), type = {"", 0};
    if (name.size == 0 || !span_copy(name, item.name, sizeof item.name))
        return false;
    struct span second = take_part(&word);
    if (second.size > 0 && !read_count(second, &item.count)) {
        type = second;
        struct span third = take_part(&word);
        if (third.size > 0 && !read_count(third, &item.count))
            return false;
    }
    if (word.size > 0 || !span_copy(type, item.type, sizeof item.type))
        return false;
    *ret_item = item;
    return true;
}

bool gres_next(struct span *text, struct gres_item *ret_item)
{
    while (text->size > 0)
        if (read_item(take_word(text), ret_item))
            return true;
    return false;
}

int gres_type_index(const char *type)
{
    int64_t index;
    if (type[0] != 'i' || parse_int64(type + 1, 0, GRES_INDEX_MAX - 1, &index) < 0)
        return -1;
    return (int)index;
}

int64_t gres_count(const char *text, const char *name)
{
    struct span rest = span_of(text ? text : "");
    struct gres_item item;
    int64_t count = 0;
    while (gres_next(&rest, &item))
        if (strcmp(item.name, name) == 0)
            count += item.count;
    return count;
}

int gres_counts_by_index(
    const char *text, const char *name, int64_t ret_counts[static GRES_INDEX_MAX])
{
    struct span rest = span_of(text ? text : "");
    struct gres_item item;
    int n = 0;
    memset(ret_counts, 0, GRES_INDEX_MAX * sizeof *ret_counts);
    while (gres_next(&rest, &item)) {
        int index = strcmp(item.name, name) == 0 ? gres_type_index(item.type) : -1;
        if (index >= 0)
            ret_counts[index] += item.count;
    }
    for (int i = 0; i < GRES_INDEX_MAX; i++)
        n += ret_counts[i] > 0;
    return n;
}

bool gres_format_shards(uint64_t indices, int64_t shards, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < GRES_INDEX_MAX; i++) {
        if (!(indices >> i & 1))
            continue;
        int n = snprintf(text + used, size - used, "%sgres:shard:i%d:%lld", used ? "," : "", i,
            (long long)shards);
        if (n < 0 || (size_t)n >= size - used)
            return false;
        used += (size_t)n;
    }
    return true;
}
