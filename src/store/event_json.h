/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event's own part as JSON: all but its kind, time and task. Enumerations are written by name,
 * policies too, the GPUs of a placement by index.
 */
#ifndef COLLOC_STORE_EVENT_JSON_H
#define COLLOC_STORE_EVENT_JSON_H

#include <jansson.h>

#include "base/fault.h"
#include "core/event.h"
#include "store/store.h"

/* -EINVAL for samples and ticks, which are in no log, and for what JSON cannot hold. The caller
 * releases *ret_body. */
int event_encode(const struct event *event, struct fault *fault, json_t **ret_body);

/*
 * Fills the rest of `event`, whose kind is set, from any JSON value. 0, -EINVAL or -ENOMEM, with
 * what is wrong in the fault. After 0 event_release frees what it points to.
 */
int event_decode(
    const json_t *body, store_find_policy *find_policy, struct fault *fault, struct event *event);
void event_release(struct event *event);

#endif
