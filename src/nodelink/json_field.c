/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks that every decoder of the link needs. A report comes from a machine that may run
 * another version, or be broken: nothing of it is taken before its type and range are known.
 */
#include "nodelink/json_field.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static int parse_object(
    const char *text, size_t size, size_t size_max, struct fault *fault, json_t **ret_object)
{
    json_error_t error;
    *ret_object = NULL;
    if (size > size_max)
        return fault_set(fault, EMSGSIZE, "%zu bytes, at most %zu are accepted", size, size_max);
    json_t *value = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!value)
        return fault_set(fault, EINVAL, "not JSON: %s", error.text);
    if (!json_is_object(value)) {
        json_decref(value);
        return fault_set(fault, EINVAL, "not a JSON object");
    }
    *ret_object = value;
    return 0;
}

static int check_version(const json_t *object, int version, struct fault *fault)
{
    const json_t *value = json_object_get(object, "v");
    if (json_is_integer(value) && json_integer_value(value) == version)
        return 0;
    return fault_set(fault, EPROTO,
        "not in version %d of the format: install the same colloc on the node and on the "
        "controller",
        version);
}

int json_field_decode(const struct json_format *format, const char *text, size_t size,
    struct fault *fault, void *ret_value)
{
    json_t *object;
    int r = parse_object(text, size, format->size_max, fault, &object);
    if (r == 0)
        r = check_version(object, format->version, fault);
    if (r == 0)
        r = format->read(object, fault, ret_value);
    json_decref(object);
    return r;
}

int json_field_text(
    const json_t *object, const char *key, struct fault *fault, char *ret_text, size_t size)
{
    const json_t *value = json_object_get(object, key);
    *ret_text = '\0';
    if (!value)
        return 0;
    if (!json_is_string(value) || json_string_length(value) >= size)
        return fault_set(fault, EINVAL, "%s: not a text of less than %zu bytes", key, size);
    memcpy(ret_text, json_string_value(value), json_string_length(value) + 1);
    return 0;
}

int json_field_integer(const json_t *object, const char *key, int64_t min, int64_t max,
    struct fault *fault, int64_t *ret_value)
{
    const json_t *value = json_object_get(object, key);
    *ret_value = 0;
    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max)
        return fault_set(fault, EINVAL, "%s: not an integer from %lld to %lld", key, (long long)min,
            (long long)max);
    *ret_value = json_integer_value(value);
    return 0;
}

int json_field_reading_value(const json_t *value, const char *key, double max, struct fault *fault,
    struct reading *ret_reading)
{
    *ret_reading = READING_NONE;
    if (json_is_null(value))
        return 0;
    double number = json_number_value(value);
    if (!json_is_number(value) || !isfinite(number) || number < 0 || number > max)
        return fault_set(fault, EINVAL, "%s: not a number from 0 to %g", key, max);
    *ret_reading = reading_of(number);
    return 0;
}

int json_field_reading(const json_t *object, const char *key, double max, struct fault *fault,
    struct reading *ret_reading)
{
    const json_t *value = json_object_get(object, key);
    *ret_reading = READING_NONE;
    if (!value)
        return 0;
    if (json_is_null(value))
        return fault_set(fault, EINVAL, "%s: not a number from 0 to %g", key, max);
    return json_field_reading_value(value, key, max, fault, ret_reading);
}

int json_field_list(const json_t *object, const char *key, size_t count_max, struct fault *fault,
    const json_t **ret_list)
{
    const json_t *value = json_object_get(object, key);
    *ret_list = NULL;
    if (!value)
        return 0;
    if (!json_is_array(value) || json_array_size(value) > count_max)
        return fault_set(fault, EINVAL, "%s: not a list of at most %zu", key, count_max);
    *ret_list = value;
    return 0;
}

json_t *json_field_of_reading(struct reading reading, bool is_integer)
{
    if (!reading.valid)
        return json_null();
    return is_integer ? json_integer((json_int_t)reading.value) : json_real(reading.value);
}

int json_field_add_reading(json_t *object, const char *key, struct reading reading, bool is_integer)
{
    if (!reading.valid)
        return 0;
    return json_object_set_new(object, key, json_field_of_reading(reading, is_integer));
}
