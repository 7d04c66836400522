/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks members of a request. Those of task options are checked by the option table, so that the
 * daemon accepts what `colloc submit` does: {"memory_mib": 12288} is --memory=12GiB.
 */
/* Checks of one field each: type, range, and what JSON allows but a text must not have (NUL). */
#include "daemon/http/request_fields.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

int field_wrong(struct fault *fault, const char *key, const char *wanted)
{
    return fault_set(fault, EINVAL, "%s: has to be %s", key, wanted);
}

int field_text(
    const json_t *body, const char *key, size_t max, struct fault *fault, const char **ret_text)
{
    const json_t *value = json_object_get(body, key);
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value) || json_string_length(value) != strlen(json_string_value(value)))
        return field_wrong(fault, key, "a text without NUL");
    if (json_string_length(value) > max)
        return fault_set(fault, EINVAL, "%s: longer than %zu bytes", key, max);
    *ret_text = json_string_value(value);
    return 0;
}

int field_number(const json_t *body, const char *key, double min, double max, struct fault *fault,
    bool *ret_given, double *ret_value)
{
    const json_t *value = json_object_get(body, key);
    *ret_given = false;
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_number(value) || !isfinite(json_number_value(value)))
        return field_wrong(fault, key, "a number");
    *ret_value = json_number_value(value);
    if (*ret_value < min || *ret_value > max)
        return fault_set(fault, EINVAL, "%s=%.15g: has to be between %.15g and %.15g", key,
            *ret_value, min, max);
    *ret_given = true;
    return 0;
}

int field_integer(const json_t *body, const char *key, double min, double max, struct fault *fault,
    bool *ret_given, int64_t *ret_value)
{
    double value;
    int r = field_number(body, key, min, max, fault, ret_given, &value);
    if (r == 0 && *ret_given) {
        if (floor(value) < value)
            return field_wrong(fault, key, "a whole number");
        *ret_value = (int64_t)value;
    }
    return r;
}

static int field_bool(const json_t *body, const char *key, struct fault *fault, bool *ret_value)
{
    const json_t *value = json_object_get(body, key);
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_boolean(value))
        return field_wrong(fault, key, "true or false");
    *ret_value = json_is_true(value);
    return 0;
}

/* How much of an option's number is 1 in JSON. */
static double unit_of(const struct option_spec *spec)
{
    switch (spec->kind) {
    case OPTION_SIZE:
        return (double)MIB;
    case OPTION_DURATION:
    case OPTION_MOMENT:
        return (double)SECOND_US;
    case OPTION_SHARE:
    case OPTION_TIMES:
        return MILLION;
    default:
        return 1;
    }
}

static int number_option(const json_t *body, const struct option_spec *spec, struct fault *fault,
    struct option_value *ret_value)
{
    double unit = unit_of(spec), value;
    double max = spec->kind == OPTION_SHARE ? 1 : (double)spec->max / unit;
    int r = spec->kind == OPTION_INTEGER ? field_integer(body, spec->field, (double)spec->min, max,
                                               fault, &ret_value->set, &ret_value->number)
                                         : field_number(body, spec->field, (double)spec->min / unit,
                                               max, fault, &ret_value->set, &value);
    if (r == 0 && ret_value->set && spec->kind != OPTION_INTEGER)
        ret_value->number = llround(value * unit);
    return r;
}

static int text_option(const json_t *body, const struct option_spec *spec, struct fault *fault,
    struct option_value *ret_value)
{
    const char *text = NULL, *name = NULL;
    int r = field_text(body, spec->field, option_text_max(spec), fault, &text);
    if (r < 0 || !text)
        return r;
    if (spec->kind == OPTION_CHOICE && !option_is_choice(spec, text))
        return option_refuse_choice(spec, spec->field, text, fault);
    if (spec->canonical)
        name = spec->canonical(text);
    ret_value->text = strdup(name ? name : text);
    ret_value->set = ret_value->text != NULL;
    return ret_value->set ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

static int flag_option(const json_t *body, const struct option_spec *spec, struct fault *fault,
    struct option_value *ret_value)
{
    const json_t *value = json_object_get(body, spec->field);
    bool flag = false;
    int r = field_bool(body, spec->field, fault, &flag);
    ret_value->set = r == 0 && value && !json_is_null(value);
    ret_value->number = flag;
    return r;
}

static bool is_text(enum option_kind kind)
{
    return kind == OPTION_TEXT || kind == OPTION_CHOICE || kind == OPTION_FILE;
}

int field_option(const json_t *body, const struct option_spec *spec, struct fault *fault,
    struct option_value *ret_value)
{
    int r = is_text(spec->kind)         ? text_option(body, spec, fault, ret_value)
            : spec->kind == OPTION_FLAG ? flag_option(body, spec, fault, ret_value)
                                        : number_option(body, spec, fault, ret_value);
    if (r < 0 || ret_value->set || !spec->default_text)
        return r;
    r = option_set_text(spec, spec->field, spec->default_text, ret_value, fault);
    ret_value->set = false;
    return r;
}
