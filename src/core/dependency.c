/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meaning of a dependency, and its text.
 *
 *     ok:12        task 12 has completed        never, if it ends otherwise
 *     any:12       task 12 has ended
 *     notok:12     task 12 has failed           never, if it completes
 *
 *     each:12      of an array: task 12_7 has completed, for the task with index 7
 *
 * Of several tasks (an array), ok requires all of them, and notok requires one. So both can be
 * decided before all have ended, without a count of the tasks that ended before.
 */
#include "core/dependency.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "base/units.h"

static const char *const names[DEPENDENCY_KINDS] = {
    [DEPENDENCY_OK] = "ok",
    [DEPENDENCY_ANY] = "any",
    [DEPENDENCY_NOT_OK] = "notok",
};

const char *dependency_kind_name(int kind)
{
    return names[kind];
}

enum dependency_answer dependency_judge(enum dependency_kind kind, int64_t n_live, int64_t n_failed)
{
    if (kind == DEPENDENCY_OK && n_failed > 0)
        return DEPENDENCY_NEVER;
    if (kind == DEPENDENCY_NOT_OK && n_failed > 0)
        return DEPENDENCY_HOLDS;
    if (n_live > 0)
        return DEPENDENCY_WAITS;
    return kind == DEPENDENCY_NOT_OK ? DEPENDENCY_NEVER : DEPENDENCY_HOLDS;
}

/* "ok", "afterok" or "each". */
static int find_kind(struct span word, struct dependency_term *ret_term)
{
    size_t skipped = span_starts(word, "after") ? strlen("after") : 0;
    struct span name = {word.at + skipped, word.size - skipped};
    ret_term->each = span_is(name, "each") || span_is(name, "corr");
    ret_term->kind = DEPENDENCY_OK;
    for (size_t i = 0; i < ARRAY_SIZE(names) && !ret_term->each; i++) {
        if (span_is(name, names[i])) {
            ret_term->kind = (enum dependency_kind)i;
            return 0;
        }
    }
    return ret_term->each ? 0 : -EINVAL;
}

/* Takes the text up to one of `ends` off the front, with the character that ended it. */
static struct span take_word(const char **at, const char *ends)
{
    struct span word = {*at, strcspn(*at, ends)};
    *at += word.size;
    return word;
}

static int refuse_dependency(struct span item, struct fault *fault)
{
    return fault_set(fault, EINVAL,
        "after=%.*s: must be ok:ID, any:ID or notok:ID, or several of them with commas",
        item.size < 40 ? (int)item.size : 40, item.at);
}

static int parse_number(struct span word, int64_t min, int64_t max, int64_t *ret_number)
{
    char digits[24];
    return span_copy(word, digits, sizeof digits) ? parse_int64(digits, min, max, ret_number)
                                                  : -EINVAL;
}

/* "12", or "12_7" unless it is of "each". */
static int parse_task(struct span word, struct dependency_term *term)
{
    int64_t id, index = -1;
    const char *mark = memchr(word.at, '_', word.size);
    size_t size = mark ? (size_t)(mark - word.at) : word.size;
    if (parse_number((struct span){word.at, size}, 1, INT64_MAX, &id) < 0)
        return -EINVAL;
    if (mark && (term->each || parse_number((struct span){mark + 1, word.size - size - 1}, 0,
                                   INT32_MAX, &index) < 0))
        return -EINVAL;
    term->id = (uint64_t)id;
    term->index = (int)index;
    return 0;
}

/* "ok:12:13": one dependency for each id. Returns how many, or -EINVAL. */
static int parse_item(
    const char **at, int limit, struct fault *fault, struct dependency_term *ret_list)
{
    struct span all = {*at, strcspn(*at, ",")};
    struct dependency_term term;
    int n = 0;
    if (find_kind(take_word(at, ":,"), &term) < 0 || **at != ':')
        return refuse_dependency(all, fault);
    while (**at == ':') {
        ++*at;
        if (parse_task(take_word(at, ":,"), &term) < 0)
            return refuse_dependency(all, fault);
        if (n == limit)
            return fault_set(fault, EINVAL, "after: more than %d dependencies", DEPENDENCIES_MAX);
        ret_list[n++] = term;
    }
    return n;
}

int dependency_parse(const char *text, struct fault *fault, struct dependency_term *ret_list)
{
    int n = 0;
    for (const char *at = text;; at++) {
        int more = parse_item(&at, DEPENDENCIES_MAX - n, fault, ret_list + n);
        if (more < 0)
            return more;
        n += more;
        if (*at != ',')
            return n;
    }
}

bool dependency_is_same(const struct dependency *a, const struct dependency *b)
{
    return a->kind == b->kind && a->first == b->first && a->last == b->last;
}

const char *dependency_format(const struct dependency *dependency, char *buffer, size_t size)
{
    int used = snprintf(buffer, size, "%s:%" PRIu64, names[dependency->kind], dependency->first);
    if (dependency->last != dependency->first && used > 0 && (size_t)used < size)
        snprintf(buffer + used, size - (size_t)used, "-%" PRIu64, dependency->last);
    return buffer;
}
