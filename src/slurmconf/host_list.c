/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of nodes. An entry is a name, or a name with ranges of numbers in brackets; the numbers of
 * a range have the width in which its first one is written: gpu[01-10] has gpu01, not gpu1.
 */
#include "slurmconf/host_list.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Commas inside brackets do not end an entry. */
static bool next_entry(struct span *rest, struct span *ret_entry)
{
    int depth = 0;
    size_t size = 0;
    while (rest->size > 0 && *rest->at == ',')
        *rest = (struct span){rest->at + 1, rest->size - 1};
    for (; size < rest->size && (depth > 0 || rest->at[size] != ','); size++)
        depth += (rest->at[size] == '[') - (rest->at[size] == ']');
    *ret_entry = (struct span){rest->at, size};
    *rest = (struct span){rest->at + size, rest->size - size};
    return size > 0;
}

/* "gpu", "01-04,09" and "" of "gpu[01-04,09]"; no ranges for a plain name. */
struct entry_parts {
    struct span prefix, ranges, suffix;
};

static struct entry_parts split_entry(struct span entry)
{
    const char *end = entry.at + entry.size;
    const char *open = memchr(entry.at, '[', entry.size);
    const char *close = open ? memchr(open, ']', (size_t)(end - open)) : NULL;
    if (!close)
        return (struct entry_parts){entry, {entry.at, 0}, {end, 0}};
    return (struct entry_parts){{entry.at, (size_t)(open - entry.at)},
        {open + 1, (size_t)(close - open) - 1}, {close + 1, (size_t)(end - close) - 1}};
}

static size_t count_digits(struct span text)
{
    size_t count = 0;
    while (count < text.size && isdigit((unsigned char)text.at[count]))
        count++;
    return count;
}

bool host_list_first(struct span list, char *name, size_t size)
{
    struct span entry;
    if (!next_entry(&list, &entry))
        return false;
    struct entry_parts parts = split_entry(entry);
    int n = snprintf(name, size, "%.*s%.*s%.*s", (int)parts.prefix.size, parts.prefix.at,
        (int)count_digits(parts.ranges), parts.ranges.at, (int)parts.suffix.size, parts.suffix.at);
    return n > 0 && (size_t)n < size;
}

/* "01-04": from 1 to 4, two digits wide. */
struct host_range {
    unsigned long first, last;
    size_t width;
};

enum { DIGITS_MAX = 9 };

/* Returns false for what is no range of numbers. */
static bool read_range(struct span text, struct host_range *ret_range)
{
    size_t width = count_digits(text);
    bool has_dash = width < text.size && text.at[width] == '-';
    size_t behind = width + has_dash;
    struct span last = {text.at + behind, text.size - behind};
    bool is_whole = count_digits(last) == last.size && last.size <= DIGITS_MAX;
    if (width == 0 || width > DIGITS_MAX || !is_whole || has_dash != (last.size > 0))
        return false;
    *ret_range = (struct host_range){.first = strtoul(text.at, NULL, 10), .width = width};
    ret_range->last = has_dash ? strtoul(last.at, NULL, 10) : ret_range->first;
    return ret_range->last >= ret_range->first;
}

static bool has_bracket(struct span text)
{
    return memchr(text.at, '[', text.size) || memchr(text.at, ']', text.size);
}

/* Returns how many nodes the entry has; 0: it is none. */
static unsigned long count_nodes(struct span entry)
{
    struct entry_parts parts = split_entry(entry);
    struct host_range range;
    struct span text;
    unsigned long n = 0;
    if (has_bracket(parts.prefix) || has_bracket(parts.suffix))
        return 0;
    if (parts.prefix.size == entry.size)
        return 1;
    while (next_entry(&parts.ranges, &text)) {
        if (!read_range(text, &range))
            return 0;
        n += range.last - range.first + 1;
    }
    return n;
}

bool host_list_is_valid(struct span list)
{
    struct span entry;
    unsigned long n = 0, of_entry = 1;
    while (of_entry > 0 && n <= HOST_NAMES_MAX && next_entry(&list, &entry))
        n += of_entry = count_nodes(entry);
    return of_entry > 0 && n > 0 && n <= HOST_NAMES_MAX;
}

/* Calls for each number of "01-04", with its width, between the other parts of the entry. */
static int for_each_number(struct entry_parts parts, struct span text,
    int (*on_name)(void *context, const char *name), void *context, int *left)
{
    char name[256];
    struct host_range range;
    int r = 0;
    if (!read_range(text, &range))
        return 0;
    for (unsigned long k = range.first; k <= range.last && r == 0 && *left > 0; k++, --*left) {
        snprintf(name, sizeof name, "%.*s%0*lu%.*s", (int)parts.prefix.size, parts.prefix.at,
            (int)range.width, k, (int)parts.suffix.size, parts.suffix.at);
        r = on_name(context, name);
    }
    return r;
}

int host_list_for_each(
    struct span list, int (*on_name)(void *context, const char *name), void *context)
{
    char name[256];
    struct span entry, range;
    int r = 0, left = HOST_NAMES_MAX;
    while (r == 0 && left > 0 && next_entry(&list, &entry)) {
        struct entry_parts parts = split_entry(entry);
        struct span ranges = parts.ranges;
        if (ranges.size == 0) {
            left--;
            r = span_copy(entry, name, sizeof name) ? on_name(context, name) : 0;
        }
        while (r == 0 && next_entry(&ranges, &range))
            r = for_each_number(parts, range, on_name, context, &left);
    }
    return r;
}

static bool ranges_have(struct span ranges, struct span number)
{
    struct span text;
    struct host_range range;
    unsigned long wanted = strtoul(number.at, NULL, 10);
    while (next_entry(&ranges, &text)) {
        if (!read_range(text, &range))
            continue;
        bool has_width = number.size == range.width ||
                         (number.size > range.width && *number.at != '0');
        if (has_width && wanted >= range.first && wanted <= range.last)
            return true;
    }
    return false;
}

static bool entry_has(struct span entry, const char *name)
{
    struct entry_parts parts = split_entry(entry);
    size_t size = strlen(name);
    if (parts.ranges.size == 0)
        return span_is(entry, name);
    if (size <= parts.prefix.size + parts.suffix.size ||
        memcmp(name, parts.prefix.at, parts.prefix.size) != 0 ||
        memcmp(name + size - parts.suffix.size, parts.suffix.at, parts.suffix.size) != 0)
        return false;
    struct span number = {name + parts.prefix.size, size - parts.prefix.size - parts.suffix.size};
    return count_digits(number) == number.size && ranges_have(parts.ranges, number);
}

bool host_list_has(struct span list, const char *name)
{
    struct span entry;
    while (next_entry(&list, &entry))
        if (entry_has(entry, name))
            return true;
    return false;
}
