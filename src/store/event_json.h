/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one form of events as JSON: in the event log, and in recorded inputs. It holds what is
 * particular to an event's kind, without the kind itself, the time and the task:
 *
 *     SUBMIT    {"uid":1000,"held":false,"gpus":1,"exclusive":false,"sharing":"mps", ...}
 *     SAMPLE    {"gpu":0,"mem_used_bytes":19140706304,"smact":0.59999999999999964}
 *     CANCEL    {}
 *
 * Contract:
 * 1. Stored events stay readable by all later versions, and the same event is always written as the
 *    same bytes: a new key is optional, and is left out where it has nothing to add.
 * 2. Enumerations and policies are written by name; the GPUs of a placement by index.
 * 3. Numbers are read back bit for bit.
 * 4. event_decode takes any JSON: it refuses unknown values and values out of range.
 */
#ifndef COLLOC_STORE_EVENT_JSON_H
#define COLLOC_STORE_EVENT_JSON_H

#include <jansson.h>

#include "base/fault.h"
#include "core/event.h"
#include "store/store.h"

/*
 * Writes an event.
 *
 * ret_body: a new object, for the caller to release.
 *
 * Returns 0; -EINVAL with a fault if a text is not UTF-8 or memory is out.
 */
int event_encode(const struct event *event, struct fault *fault, json_t **ret_body);

/*
 * Reads an event.
 *
 * body:  any JSON, or NULL.
 * event: its kind is set, all else but time and task is zero; filled.
 *
 * Returns 0, and event_release (core/event.h) must follow; -EINVAL with what is wrong in the fault;
 * -ENOMEM.
 */
int event_decode(
    const json_t *body, store_find_policy *find_policy, struct fault *fault, struct event *event);

#endif
