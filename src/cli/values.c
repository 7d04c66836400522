/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of option values for `sweep`: comma-separated, each a number, a word or a range
 * FROM:TO:STEP.
 */
#include "cli/values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* ---- names ---- */

/* "magm,lug"; an empty name, as in "magm,,lug", is a fault. */
int names_parse(const char *option, const char *text, struct fault *fault, struct names *ret_names)
{
    char *rest;
    *ret_names = (struct names){.text = strdup(text)};
    ret_names->name = calloc(strlen(text) + 1, sizeof *ret_names->name);
    if (!ret_names->text || !ret_names->name)
        return fault_set(fault, ENOMEM, "out of memory");
    rest = ret_names->text;
    while (rest) {
        const char *name = strsep(&rest, ",");
        if (!*name)
            return fault_set(fault, EINVAL, "--%s=%.60s: empty value in the list", option, text);
        ret_names->name[ret_names->n++] = name;
    }
    return 0;
}

void names_fini(struct names *names)
{
    free(names->text);
    free(names->name);
}

/* ---- numbers ---- */

struct range {
    double from, to, step;
};

/* Every number is written and read again with 12 digits. */
static int add_range(struct values *values, const struct range *range)
{
    double steps = floor((range->to - range->from) / range->step + 1e-9);
    if (steps >= VALUES_MAX - values->n)
        return -E2BIG;
    double *value = realloc(values->value, (size_t)(values->n + (int)steps + 1) * sizeof *value);
    if (!value)
        return -ENOMEM;
    values->value = value;
    for (int i = 0; i <= (int)steps; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.12g",
            range->from + i * range->step); /* 0.3, where adding up gives 0.30000...04 */
        values->value[values->n++] = strtod(text, NULL);
    }
    return 0;
}

/* "0.7" is 0.7 alone, "1:3" is 1, 2, 3, and "0.6:0.9:0.1" has its step. */
static int parse_range(const char *option, const char *word, double min, double max,
    struct fault *fault, struct range *ret_range)
{
    char copy[128];
    double number[3] = {0, 0, 1};
    int n = 0;
    snprintf(copy, sizeof copy, "%s", word);
    for (char *rest = copy; rest; n++) {
        const char *part = strsep(&rest, ":");
        if (n == 3 || parse_double(part, n < 2 ? min : 0, n < 2 ? max : 1e12, &number[n]) < 0)
            return fault_set(fault, EINVAL,
                "--%s: invalid value \"%.60s\": give numbers from %g to %g or a "
                "range FROM:TO:STEP",
                option, word, min, max);
    }
    *ret_range = (struct range){number[0], n == 1 ? number[0] : number[1], number[2]};
    if (ret_range->step == 0 || ret_range->from > ret_range->to)
        return fault_set(
            fault, EINVAL, "--%s: the range \"%.60s\" is empty: give FROM:TO:STEP", option, word);
    return 0;
}

int values_parse(const char *option, const char *text, double min, double max, struct fault *fault,
    struct values *ret_values)
{
    struct names words;
    *ret_values = (struct values){0};
    int r = names_parse(option, text, fault, &words);
    for (int i = 0; i < words.n && r == 0; i++) {
        struct range range = {0};
        r = parse_range(option, words.name[i], min, max, fault, &range);
        if (r < 0)
            break;
        r = add_range(ret_values, &range);
        if (r == -E2BIG)
            fault_set(fault, E2BIG, "--%s=%.60s: more than %d values: give fewer", option, text,
                VALUES_MAX);
        else if (r < 0)
            fault_set(fault, ENOMEM, "out of memory");
    }
    names_fini(&words);
    return r;
}

void values_fini(struct values *values)
{
    free(values->value);
}
