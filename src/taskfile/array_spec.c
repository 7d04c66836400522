/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the indices of an array, 0-99%8. The text is read item by item. The number of indices is
 * checked before they are stored, so that 0-999999999 costs nothing. Then they are sorted, and
 * those named twice are dropped.
 *
 *     "7,0-4:2,3%2"  ->  0 2 3 4 7, two at a time  ->  "0-4:2,3,7" is written "0,2-4,7"
 */
#include "taskfile/array_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

static int refuse_array(const char *text, struct fault *fault)
{
    return fault_set(fault, EINVAL,
        "array=%.60s: must be indices and ranges such as 0-99, 1,3,7 or 0-10:2, with %%N behind "
        "them for at most N at a time",
        text);
}

/* Takes a number off the front. Returns 0, -EINVAL, or -ERANGE for more than ARRAY_INDEX_MAX. */
static int take_number(const char **at, int *ret_number)
{
    char digits[24];
    int64_t number;
    struct span word = {*at, strspn(*at, "0123456789")};
    if (word.size == 0)
        return -EINVAL;
    if (!span_copy(word, digits, sizeof digits) ||
        parse_int64(digits, 0, ARRAY_INDEX_MAX, &number) < 0)
        return -ERANGE;
    *at += word.size;
    *ret_number = (int)number;
    return 0;
}

struct range {
    int first, last, step;
};

/* "7", "0-99" or "0-10:2" */
static int take_range(const char **at, struct range *ret_range)
{
    int r = take_number(at, &ret_range->first);
    ret_range->last = ret_range->first;
    ret_range->step = 1;
    if (r < 0 || **at != '-')
        return r;
    ++*at;
    r = take_number(at, &ret_range->last);
    if (r == 0 && **at == ':') {
        ++*at;
        r = take_number(at, &ret_range->step);
    }
    return r == 0 && (ret_range->step < 1 || ret_range->last < ret_range->first) ? -EINVAL : r;
}

static int add_range(struct array_spec *spec, const struct range *range)
{
    int64_t n = (range->last - range->first) / range->step + 1;
    if (n > ARRAY_TASKS_MAX - spec->count)
        return -E2BIG;
    for (int64_t i = 0; i < n; i++)
        spec->indices[spec->count++] = range->first + (int)i * range->step;
    return 0;
}

static int compare_indices(const void *a, const void *b)
{
    int left = *(const int *)a, right = *(const int *)b;
    return left < right ? -1 : left > right;
}

static void sort_indices(struct array_spec *spec)
{
    int kept = 0;
    qsort(spec->indices, (size_t)spec->count, sizeof *spec->indices, compare_indices);
    for (int i = 0; i < spec->count; i++)
        if (kept == 0 || spec->indices[kept - 1] != spec->indices[i])
            spec->indices[kept++] = spec->indices[i];
    spec->count = kept;
}

static int parse_items(const char **at, struct array_spec *spec)
{
    for (;;) {
        struct range range;
        int r = take_range(at, &range);
        if (r == 0)
            r = add_range(spec, &range);
        if (r < 0 || **at != ',')
            return r;
        ++*at;
    }
}

static int parse_array(const char *text, struct array_spec *spec)
{
    const char *at = text;
    int r = parse_items(&at, spec);
    if (r == 0 && *at == '%') {
        at++;
        r = take_number(&at, &spec->limit);
        if (r == 0 && spec->limit == 0)
            r = -EINVAL;
    }
    return r == 0 && *at ? -EINVAL : r;
}

int array_spec_parse(const char *text, struct fault *fault, struct array_spec *ret_spec)
{
    *ret_spec = (struct array_spec){.indices = calloc(ARRAY_TASKS_MAX, sizeof(int))};
    if (!ret_spec->indices)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = parse_array(text, ret_spec);
    if (r == 0)
        sort_indices(ret_spec);
    if (r == -EINVAL)
        refuse_array(text, fault);
    else if (r == -ERANGE)
        fault_set(fault, ERANGE, "array=%.60s: an index is at most %d", text, ARRAY_INDEX_MAX);
    else if (r == -E2BIG)
        r = fault_set(
            fault, ERANGE, "array=%.60s: an array has at most %d tasks", text, ARRAY_TASKS_MAX);
    if (r < 0)
        array_spec_fini(ret_spec);
    return r;
}

void array_spec_fini(struct array_spec *spec)
{
    free(spec->indices);
    *spec = (struct array_spec){0};
}

/* How many of the indices from the first on have equal distances; 2 of them alone are no range. */
static int count_run(const int *indices, int count)
{
    int n = count > 1 ? 2 : 1;
    while (n < count && n > 1 && indices[n] - indices[n - 1] == indices[1] - indices[0])
        n++;
    return n > 2 || (n == 2 && indices[1] == indices[0] + 1) ? n : 1;
}

void array_indices_write(FILE *out, const int *indices, int count)
{
    for (int i = 0, n; i < count; i += n) {
        n = count_run(indices + i, count - i);
        fprintf(out, "%s%d", i ? "," : "", indices[i]);
        if (n > 1)
            fprintf(out, "-%d", indices[i + n - 1]);
        if (n > 1 && indices[i + 1] - indices[i] > 1)
            fprintf(out, ":%d", indices[i + 1] - indices[i]);
    }
}
