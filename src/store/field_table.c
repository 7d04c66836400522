/* SPDX-License-Identifier: Apache-2.0 */
/* Each type of a member is one case in encode_value and one in field_decode. */
#include "store/field_table.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy.h"

/* Integers up to it are exact as a double. */
#define EXACT_INTEGER_MAX 9007199254740992.0

/* ---- writing ---- */

static int64_t integer_at(const struct field *field, const void *at)
{
    switch (field->type) {
    case FIELD_BOOL:
        return *(const bool *)at;
    case FIELD_UINT32:
        return *(const uint32_t *)at;
    case FIELD_INT64:
        return *(const int64_t *)at;
    default:
        return *(const int *)at;
    }
}

static bool is_left_out(const struct field *field, const void *at)
{
    if (field->presence == REQUIRED)
        return false;
    if (field->type == FIELD_POLICY)
        return !*(const struct policy *const *)at;
    if (field->type == FIELD_FRACTION || field->type == FIELD_READING || field->type == FIELD_WHOLE)
        return !((const struct reading *)at)->valid;
    if (field->type == FIELD_TEXT)
        return !*(const char *)at;
    return integer_at(field, at) == 0;
}

/* Samples are many, and bytes are integers: those are written without ".0". */
static json_t *encode_reading(double value)
{
    bool is_integer = floor(value) == value && fabs(value) < EXACT_INTEGER_MAX &&
                      !(value == 0 && signbit(value));
    return is_integer ? json_integer((json_int_t)value) : json_real(value);
}

/* NULL for a text that is not UTF-8, a value without a name, or without memory. */
static json_t *encode_value(const struct field *field, const void *at)
{
    const char *name;
    switch (field->type) {
    case FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case FIELD_TEXT:
        return json_string(at);
    case FIELD_NAME:
        name = field->names->name(*(const int *)at);
        return name ? json_string(name) : NULL;
    case FIELD_POLICY:
        return json_string((*(const struct policy *const *)at)->name);
    case FIELD_FRACTION:
        return json_real(((const struct reading *)at)->value);
    case FIELD_READING:
        return encode_reading(((const struct reading *)at)->value);
    case FIELD_WHOLE: /* only an integer is read back */
        return json_integer(llround(((const struct reading *)at)->value));
    default:
        return json_integer(integer_at(field, at));
    }
}

int fields_encode(json_t *object, const struct fields *fields, const void *from)
{
    for (size_t i = 0; i < fields->n; i++) {
        const struct field *field = &fields->field[i];
        const void *at = (const char *)from + field->offset;
        if (!is_left_out(field, at) &&
            json_object_set_new(object, field->key, encode_value(field, at)) < 0)
            return -1;
    }
    return 0;
}

int fields_encode_list(json_t *object, const char *key, const struct fields *fields,
    const void *list, size_t size, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++) {
        json_t *entry = json_object();
        int r = entry ? fields_encode(entry, fields, (const char *)list + (size_t)i * size) : -1;
        if (json_array_append_new(array, entry) < 0 || r < 0) {
            json_decref(array);
            return -1;
        }
    }
    return json_object_set_new(object, key, array);
}

/* ---- reading ---- */

static int decode_integer(const struct decoding *decoding, const struct field *field,
    const json_t *value, int64_t *ret_value)
{
    if (!json_is_integer(value))
        return fault_set(decoding->fault, EINVAL, "%s: missing, or not an integer", field->key);
    *ret_value = json_integer_value(value);
    if (*ret_value < field->min || *ret_value > field->max)
        return fault_set(
            decoding->fault, EINVAL, "%s: %lld is out of range", field->key, (long long)*ret_value);
    return 0;
}

static int decode_bool(const struct decoding *decoding, const struct field *field,
    const json_t *value, bool *ret_value)
{
    if (!json_is_boolean(value))
        return fault_set(
            decoding->fault, EINVAL, "%s: missing, or neither true nor false", field->key);
    *ret_value = json_is_true(value);
    return 0;
}

static int decode_text(const struct decoding *decoding, const struct field *field,
    const json_t *value, const char **ret_text)
{
    *ret_text = json_string_value(value);
    return *ret_text ? 0
                     : fault_set(decoding->fault, EINVAL, "%s: missing, or not a text", field->key);
}

static int copy_text(
    const struct decoding *decoding, const struct field *field, const char *text, char *buffer)
{
    size_t length = strlen(text);
    if (length >= (size_t)field->max)
        return fault_set(decoding->fault, EINVAL, "%s: longer than %lld bytes", field->key,
            (long long)field->max - 1);
    memcpy(buffer, text, length + 1);
    return 0;
}

static int unknown_name(
    const struct decoding *decoding, const struct field *field, const char *name)
{
    return fault_set(decoding->fault, EINVAL, "%s: '%.100s' is not known here", field->key, name);
}

static int decode_name(
    const struct decoding *decoding, const struct field *field, const char *name, int *ret_value)
{
    for (int i = 0; i < field->names->n; i++) {
        const char *known = field->names->name(i);
        if (known && strcmp(known, name) == 0) {
            *ret_value = i;
            return 0;
        }
    }
    return unknown_name(decoding, field, name);
}

static int decode_policy(const struct decoding *decoding, const struct field *field,
    const char *name, const struct policy **ret_policy)
{
    *ret_policy = decoding->find_policy(name);
    return *ret_policy ? 0 : unknown_name(decoding, field, name);
}

static int decode_reading(const struct decoding *decoding, const struct field *field,
    const json_t *value, struct reading *ret_reading)
{
    double number = json_number_value(value);
    if (!json_is_number(value))
        return fault_set(decoding->fault, EINVAL, "%s: not a number", field->key);
    if (field->type == FIELD_FRACTION && !(number >= 0 && number <= 1))
        return fault_set(decoding->fault, EINVAL, "%s: not a number from 0 to 1", field->key);
    *ret_reading = reading_of(number);
    return 0;
}

static void store_integer(const struct field *field, int64_t value, void *at)
{
    if (field->type == FIELD_INT)
        *(int *)at = (int)value;
    else if (field->type == FIELD_UINT32)
        *(uint32_t *)at = (uint32_t)value;
    else if (field->type == FIELD_WHOLE)
        *(struct reading *)at = reading_of((double)value);
    else
        *(int64_t *)at = value;
}

int field_decode(
    const struct decoding *decoding, const struct field *field, const json_t *value, void *at)
{
    int64_t integer = 0;
    const char *text = NULL;
    int r;
    if (!value && field->presence == OPTIONAL)
        return 0;
    switch (field->type) {
    case FIELD_BOOL:
        return decode_bool(decoding, field, value, at);
    case FIELD_FRACTION:
    case FIELD_READING:
        return decode_reading(decoding, field, value, at);
    case FIELD_TEXT:
        r = decode_text(decoding, field, value, &text);
        return r < 0 ? r : copy_text(decoding, field, text, at);
    case FIELD_NAME:
        r = decode_text(decoding, field, value, &text);
        return r < 0 ? r : decode_name(decoding, field, text, at);
    case FIELD_POLICY:
        r = decode_text(decoding, field, value, &text);
        return r < 0 ? r : decode_policy(decoding, field, text, at);
    default:
        r = decode_integer(decoding, field, value, &integer);
        if (r == 0)
            store_integer(field, integer, at);
        return r;
    }
}

int fields_decode(
    const struct decoding *decoding, const struct fields *fields, const json_t *object, void *to)
{
    size_t left = json_object_size(object); /* members: most optional ones are left out, last */
    int r = 0;
    for (size_t i = 0; i < fields->n && r == 0; i++) {
        const struct field *field = &fields->field[i];
        const json_t *value = left ? json_object_get(object, field->key) : NULL;
        left -= value != NULL;
        r = field_decode(decoding, field, value, (char *)to + field->offset);
    }
    return r;
}

int fields_open_list(const struct decoding *decoding, const json_t *list, const char *key,
    size_t size, void **ret_entries, int *ret_n)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > INT_MAX)
        return fault_set(decoding->fault, EINVAL, "%s: missing, or not a list", key);
    *ret_entries = calloc(n + 1, size);
    if (!*ret_entries)
        return fault_set(decoding->fault, ENOMEM, "out of memory");
    *ret_n = (int)n;
    return 0;
}

int fields_decode_list(const struct decoding *decoding, const json_t *list, const char *key,
    const struct fields *fields, size_t size, void **ret_entries, int *ret_n)
{
    int r = fields_open_list(decoding, list, key, size, ret_entries, ret_n);
    if (r < 0)
        return r;
    for (int i = 0; i < *ret_n; i++) {
        r = fields_decode(decoding, fields, json_array_get(list, (size_t)i),
            (char *)*ret_entries + (size_t)i * size);
        if (r < 0) {
            free(*ret_entries);
            *ret_entries = NULL;
            *ret_n = 0;
            fault_prefix(decoding->fault, r, "%s, entry %d", key, i);
            return r;
        }
    }
    return 0;
}
