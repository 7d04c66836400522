/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a JSON object, where one that is missing or of another type has a value instead. What
 * came from another machine or user is read with a fault for it: nodelink/json_field.h. */
#ifndef COLLOC_BASE_JSON_MEMBER_H
#define COLLOC_BASE_JSON_MEMBER_H

#include <jansson.h>

/* Returns the text, which belongs to the object, or `otherwise`. object: may be NULL. */
static inline const char *member_text(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : otherwise;
}

/* Returns the number, or `otherwise`. object: may be NULL. */
static inline double member_number(const json_t *object, const char *key, double otherwise)
{
    const json_t *number = json_object_get(object, key);
    return json_is_number(number) ? json_number_value(number) : otherwise;
}

#endif
