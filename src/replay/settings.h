/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a core as JSON: all of them. */
#ifndef COLLOC_REPLAY_SETTINGS_H
#define COLLOC_REPLAY_SETTINGS_H

#include <jansson.h>

#include "core/core.h"
#include "store/store.h"

/* NULL without memory. */
json_t *settings_encode(const struct core_settings *settings);

/* 0 or -EINVAL. */
int settings_decode(const json_t *object, store_find_policy *find_policy, struct fault *fault,
    struct core_settings *ret_settings);

#endif
