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

/* A format of the link. */
struct json_format {
    size_t size_max; /* bytes; a longer text is refused unread */
    int version;     /* that the member "v" has to be */

    /* Reads the other members into what the caller of json_field_decode gave. Returns 0 or -errno
     * with a fault. */
    int (*read)(const json_t *object, struct fault *fault, void *ret_value);
};

/*
 * Decodes a JSON object from any bytes.
 *
 * ret_value: for `format->read`; nothing else writes it
 *
 * Returns what `format->read` does; or -EINVAL: not a JSON object, -EMSGSIZE, -EPROTO: of another
 * version; with a fault.
 */
int json_field_decode(const struct json_format *format, const char *text, size_t size,
    struct fault *fault, void *ret_value);

/* Each returns 0 or -EINVAL with a fault. A missing text is "", a missing reading is not valid, a
 * missing list is NULL; a missing integer is an error. */
int json_field_text(
    const json_t *object, const char *key, struct fault *fault, char *ret_text, size_t size);
int json_field_integer(const json_t *object, const char *key, int64_t min, int64_t max,
    struct fault *fault, int64_t *ret_value);
int json_field_reading(const json_t *object, const char *key, double max, struct fault *fault,
    struct reading *ret_reading);
int json_field_reading_value(const json_t *value, const char *key, double max, struct fault *fault,
    struct reading *ret_reading); /* of a list: null is not valid; `key` is for the fault */
int json_field_list(const json_t *object, const char *key, size_t count_max, struct fault *fault,
    const json_t **ret_list);

/* Returns a reading as JSON, null when it is not valid. `is_integer`: without a fraction. */
json_t *json_field_of_reading(struct reading reading, bool is_integer);

/* Adds a reading, unless it is not valid. Returns 0 or -1, as jansson's functions. */
int json_field_add_reading(
    json_t *object, const char *key, struct reading reading, bool is_integer);

#endif
