/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON objects that came from another machine: each has a type, a range and a size. A
 * member of another type or beyond its range is an error; a missing one is, where it is needed. */
#ifndef COLLOC_NODELINK_JSON_FIELD_H
#define COLLOC_NODELINK_JSON_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/reading.h"

/*
 * Parses a JSON object. `size_max`: bytes.
 * Returns 0 with a reference for the caller; or -EINVAL, -EMSGSIZE with a fault.
 */
int json_field_parse(
    const char *text, size_t size, size_t size_max, struct fault *fault, json_t **ret_object);

/* Checks that the member "v" is `version`. Returns 0 or -EPROTO with a fault. */
int json_field_version(const json_t *object, int version, struct fault *fault);

/* Each returns 0 or -EINVAL with a fault. A missing text is "", a missing reading is not valid, a
 * missing list is NULL; a missing integer is an error. */
int json_field_text(
    const json_t *object, const char *key, struct fault *fault, char *ret_text, size_t size);
int json_field_integer(const json_t *object, const char *key, int64_t min, int64_t max,
    struct fault *fault, int64_t *ret_value);
int json_field_reading(const json_t *object, const char *key, double max, struct fault *fault,
    struct reading *ret_reading);
int json_field_list(const json_t *object, const char *key, size_t count_max, struct fault *fault,
    const json_t **ret_list);

/* Adds a reading, unless it is not valid. `is_integer`: without a fraction. Returns 0 or -1, as
 * jansson's functions. */
int json_field_add_reading(
    json_t *object, const char *key, struct reading reading, bool is_integer);

#endif
