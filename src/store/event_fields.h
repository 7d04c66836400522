/* SPDX-License-Identifier: Apache-2.0 */
/* The members of each kind of event in its JSON (event_json.h), and those of the objects in its
 * lists. A new member of an event is a row in event_fields.c. */
#ifndef COLLOC_STORE_EVENT_FIELDS_H
#define COLLOC_STORE_EVENT_FIELDS_H

#include "core/event.h"
#include "store/field_table.h"

/* Readers refuse larger indices. Chosen: sums and products of two do not overflow. */
enum { ARRAY_NUMBER_MAX = 1000000000 };

/* Tasks of an array whose ids are one apart and whose indices are `step` apart. */
struct array_run {
    int64_t task;
    int index, step, count;
};

/* Those of struct event, by its kind. Kinds without members have no fields. STARTED has its
 * sharing, too (event_json.c). */
extern const struct fields event_fields[EVENT_KINDS];

/* Of the lists' structs. */
extern const struct fields gpu_identity_fields; /* struct gpu_identity, of GPUS */
extern const struct fields array_run_fields;    /* struct array_run, of SUBMIT */
extern const struct fields dependency_fields;   /* struct dependency, of SUBMIT and UPDATE */
extern const struct fields task_memory_fields;  /* struct task_memory, of SAMPLE */

/* The names of requests' sharings, which STARTED has, too. */
extern const struct names event_sharing_names;

#endif
