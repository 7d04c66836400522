/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/http/request_fields.h"

#include <errno.h>
#include <math.h>
#include <string.h>

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

int field_bool(const json_t *body, const char *key, struct fault *fault, bool *ret_value)
{
    const json_t *value = json_object_get(body, key);
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_boolean(value))
        return field_wrong(fault, key, "true or false");
    *ret_value = json_is_true(value);
    return 0;
}
