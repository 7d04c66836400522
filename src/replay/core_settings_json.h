/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All settings of a core as a JSON object.
 *
 * Contract: a setting that the object lacks gets its default, so that records of older versions
 * stay readable. Without an order, the order is by age and nothing is charged, as in the versions
 * that had no such setting.
 */
#ifndef COLLOC_REPLAY_CORE_SETTINGS_JSON_H
#define COLLOC_REPLAY_CORE_SETTINGS_JSON_H

#include <jansson.h>

#include "core/core.h"
#include "store/store.h"

/* Returns a new object, for the caller to release; NULL without memory. */
json_t *core_settings_encode(const struct core_settings *settings);

/*
 * Reads settings.
 *
 * object:       any JSON, or NULL.
 * ret_settings: core_settings_release must follow, unless there is a fault.
 *
 * Returns 0, or -EINVAL with a fault for an unknown policy or a value out of range.
 */
int core_settings_decode(const json_t *object, store_find_policy *find_policy, struct fault *fault,
    struct core_settings *ret_settings);
void core_settings_release(struct core_settings *settings);

#endif
