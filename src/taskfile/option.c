/* SPDX-License-Identifier: Apache-2.0 */
/* Checks values of options by the option's kind. A mistake becomes a message that names the option
 * as the user wrote it, the value, and what is allowed. */
#include "taskfile/option.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/moment.h"
#include "base/units.h"
#include "taskfile/plain_text.h"

enum { VALUE_MAX_SIZE = 4096 };

const struct option_spec *option_find(
    const struct option_spec *specs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(specs[i].name, name) == 0 ||
            (specs[i].alias && strcmp(specs[i].alias, name) == 0))
            return &specs[i];
    return NULL;
}

const char *option_choice(const struct option_spec *spec, size_t i)
{
    if (spec->choice_at)
        return spec->choice_at(i);
    return spec->choices ? spec->choices[i] : NULL;
}

/* The choices of the option, comma-separated. */
static const char *list_choices(const struct option_spec *spec, char *buffer, size_t size)
{
    const char *choice;
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; used < size && (choice = option_choice(spec, i)); i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", i ? ", " : "", choice);
    return buffer;
}

const char *option_help_text(const struct option_spec *spec, char *buffer, size_t size)
{
    char choices[OPTION_HELP_MAX];
    const struct {
        const char *mark, *text;
    } parts[] = {{"{choices}", list_choices(spec, choices, sizeof choices)},
        {"{default}", spec->default_text}};
    size_t used = 0;
    for (const char *at = spec->help; *at && used + 1 < size;) {
        size_t part = 0;
        while (part < ARRAY_SIZE(parts) && strncmp(at, parts[part].mark, 9) != 0)
            part++;
        if (part == ARRAY_SIZE(parts)) {
            buffer[used++] = *at++;
            continue;
        }
        used += (size_t)snprintf(buffer + used, size - used, "%s", parts[part].text);
        at += strlen(parts[part].mark);
    }
    buffer[used < size ? used : size - 1] = '\0';
    return buffer;
}

static int parse_flag(const char *text, int64_t *ret)
{
    static const char *const words[] = {"no", "yes", "false", "true", "0", "1", "off", "on"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcasecmp(text, words[i]) == 0) {
            *ret = (int64_t)(i % 2);
            return 0;
        }
    return -EINVAL;
}

/* Writes millionths. */
static int parse_part(const char *text, double min, double max, int64_t *ret)
{
    double value;
    int r = parse_double(text, min, max, &value);
    if (r == 0)
        *ret = llround(value * MILLION);
    return r;
}

static int parse_moment(const char *text, int64_t *ret)
{
    int64_t seconds = 0;
    int r = moment_parse_ahead(text, clock_wall_us() / SECOND_US, &seconds);
    *ret = seconds * SECOND_US;
    return r;
}

static int parse_number(const struct option_spec *spec, const char *text, int64_t *ret)
{
    int r = 0;
    switch (spec->kind) {
    case OPTION_FLAG:
        return parse_flag(text, ret);
    case OPTION_SHARE:
        return parse_part(text, 0, 1, ret);
    case OPTION_TIMES:
        return parse_part(text, (double)spec->min / MILLION, (double)spec->max / MILLION, ret);
    case OPTION_MOMENT:
        r = parse_moment(text, ret);
        break;
    case OPTION_SIZE:
        r = parse_size(text, ret);
        break;
    case OPTION_DURATION:
        r = parse_duration(text, ret);
        break;
    default:
        return parse_int64(text, spec->min, spec->max, ret);
    }
    return r == 0 && (*ret < spec->min || *ret > spec->max) ? -ERANGE : r;
}

static const char *format_limit(int64_t us, char *buffer, size_t size)
{
    if (us >= DAY_US)
        snprintf(buffer, size, "%" PRId64 " days", us / DAY_US);
    else if (us >= SECOND_US || us == 0)
        snprintf(buffer, size, "%" PRId64 " s", us / SECOND_US);
    else
        snprintf(buffer, size, "%" PRId64 " ms", us / MS_US);
    return buffer;
}

static int number_fault(
    const struct option_spec *spec, const char *shown, const char *text, int r, struct fault *fault)
{
    static const char *const forms[] = {
        [OPTION_FLAG] = "not yes or no",
        [OPTION_INTEGER] = "not a whole number",
        [OPTION_SIZE] = "not a size; write 512MiB, 12GiB or 12GB",
        [OPTION_DURATION] =
            "not a duration; write 90s, 30m, 8h30m, HH:MM:SS, D-HH:MM:SS or a number of minutes",
        [OPTION_SHARE] = "not a number from 0 to 1",
        [OPTION_TIMES] = "not a number",
        [OPTION_MOMENT] = "not a moment to come; write 16:00, now+2h, tomorrow or 2030-01-31T08:00",
    };
    char low[32], high[32];
    const char *wrong_part = spec->wrong_part ? spec->wrong_part(text) : NULL;
    if (wrong_part)
        return fault_set(fault, EINVAL, "%s=%.80s: %s", shown, text, wrong_part);
    if (spec->kind == OPTION_TIMES)
        return fault_set(fault, EINVAL, "%s=%.80s: must be a number from %.6g to %.6g", shown, text,
            (double)spec->min / MILLION, (double)spec->max / MILLION);
    if (r != -ERANGE || spec->kind == OPTION_SHARE || spec->kind == OPTION_MOMENT)
        return fault_set(fault, EINVAL, "%s=%.80s: %s", shown, text, forms[spec->kind]);
    if (spec->kind == OPTION_INTEGER)
        return fault_set(fault, ERANGE, "%s=%.80s: must be from %" PRId64 " to %" PRId64, shown,
            text, spec->min, spec->max);
    if (spec->kind == OPTION_SIZE)
        return fault_set(fault, ERANGE, "%s=%.80s: must be from %s to %s", shown, text,
            format_size(spec->min, low, sizeof low), format_size(spec->max, high, sizeof high));
    return fault_set(fault, ERANGE, "%s=%.80s: must be from %s to %s", shown, text,
        format_limit(spec->min, low, sizeof low), format_limit(spec->max, high, sizeof high));
}

bool option_is_choice(const struct option_spec *spec, const char *text)
{
    const char *choice;
    if (spec->canonical && spec->canonical(text))
        return true;
    for (size_t i = 0; (choice = option_choice(spec, i)); i++)
        if (strcmp(text, choice) == 0)
            return true;
    return false;
}

int option_refuse_choice(
    const struct option_spec *spec, const char *shown, const char *text, struct fault *fault)
{
    char all[OPTION_HELP_MAX];
    const char *wrong = spec->wrong_part ? spec->wrong_part(text) : NULL;
    if (wrong)
        return fault_set(fault, EINVAL, "%s=%.80s: %s", shown, text, wrong);
    return fault_set(fault, EINVAL, "%s=%.80s: must be one of %s", shown, text,
        list_choices(spec, all, sizeof all));
}

size_t option_text_max(const struct option_spec *spec)
{
    return spec->max > 0 ? (size_t)spec->max : VALUE_MAX_SIZE;
}

static int check_text(
    const struct option_spec *spec, const char *shown, const char *text, struct fault *fault)
{
    size_t size = strlen(text), max = option_text_max(spec);
    if (size == 0 && !spec->is_optional)
        return fault_set(fault, EINVAL, "%s: needs a value", shown);
    if (size > max)
        return fault_set(fault, E2BIG, "%s: value of %zu bytes; at most %zu", shown, size, max);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return fault_set(fault, EINVAL, "%s: has a control character in its value", shown);
    if (!is_plain_text((struct span){text, size}))
        return fault_set(fault, EILSEQ, "%s: is not UTF-8 text", shown);
    if (spec->kind == OPTION_CHOICE && !option_is_choice(spec, text))
        return option_refuse_choice(spec, shown, text, fault);
    return 0;
}

static bool is_textual(enum option_kind kind)
{
    return kind == OPTION_TEXT || kind == OPTION_CHOICE || kind == OPTION_FILE;
}

int option_set_text(const struct option_spec *spec, const char *shown, const char *text,
    struct option_value *value, struct fault *fault)
{
    if (!is_textual(spec->kind)) {
        int64_t number;
        int r = parse_number(spec, text, &number);
        if (r < 0)
            return number_fault(spec, shown, text, r, fault);
        *value = (struct option_value){.set = true, .number = number};
        return 0;
    }
    int r = check_text(spec, shown, text, fault);
    if (r < 0)
        return r;
    const char *name = spec->canonical ? spec->canonical(text) : NULL;
    char *copy = strdup(name ? name : text);
    if (!copy)
        return fault_set(fault, ENOMEM, "%s: out of memory", shown);
    free(value->text);
    *value = (struct option_value){.set = true, .text = copy};
    return 0;
}

int option_values_overlay(
    struct option_value *values, const struct option_value *winners, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!winners[i].set)
            continue;
        char *text = winners[i].text ? strdup(winners[i].text) : NULL;
        if (winners[i].text && !text)
            return -ENOMEM;
        free(values[i].text);
        values[i] = winners[i];
        values[i].text = text;
    }
    return 0;
}

void option_values_fini(struct option_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(values[i].text);
        values[i] = (struct option_value){0};
    }
}
