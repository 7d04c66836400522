/* SPDX-License-Identifier: Apache-2.0 */
/* Values of docs/protocol.md: an unknown value is null, never 0. */
#ifndef COLLOC_API_JSON_VALUE_H
#define COLLOC_API_JSON_VALUE_H

#include <jansson.h>
#include <stdint.h>

#include "base/reading.h"

/* A reading divided by `unit`; null when it is not known. */
static inline json_t *json_reading(struct reading r, double unit)
{
    return r.valid ? json_real(r.value / unit) : json_null();
}

/* Seconds; `us`: microseconds. */
static inline json_t *json_seconds(int64_t us)
{
    return json_real((double)us / 1e6);
}

#endif
