/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of a request's JSON object. One that is absent or null leaves the out-parameter as it is;
 * one of another type or out of range is the client's mistake: -EINVAL with the key in the fault.
 */
#ifndef COLLOC_DAEMON_HTTP_FIELDS_H
#define COLLOC_DAEMON_HTTP_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "taskfile/option.h"

/* "KEY: has to be WANTED". Returns -EINVAL. */
int field_wrong(struct fault *fault, const char *key, const char *wanted);

/* The text lives as long as `body`. */
int field_text(
    const json_t *body, const char *key, size_t max, struct fault *fault, const char **ret_text);
int field_number(const json_t *body, const char *key, double min, double max, struct fault *fault,
    bool *ret_given, double *ret_value);
int field_integer(const json_t *body, const char *key, double min, double max, struct fault *fault,
    bool *ret_given, int64_t *ret_value);

/*
 * The value of a task option: the member `spec->field`, of the JSON type, in the unit and within
 * the limits of the option. A choice or alias is replaced by its name in the table. When it is
 * absent the value is the option's default and `set` is false.
 *
 * ret_value: zeroed by the caller, who ends it with option_values_fini
 *
 * Returns 0, or -errno with a fault.
 */
int field_option(const json_t *body, const struct option_spec *spec, struct fault *fault,
    struct option_value *ret_value);

#endif
