/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of the core that wait until they are carried out: first in, first out. No operation grows
 * with the number of those that wait: 10,000 tasks may start at once.
 */
#ifndef COLLOC_DAEMON_EFFECT_QUEUE_H
#define COLLOC_DAEMON_EFFECT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/effect.h"

struct pending_effect {
    enum effect_kind kind;
    uint64_t task;
};

/* All members are zero in an empty queue. */
struct effect_queue {
    struct pending_effect *list;
    size_t first, end, capacity; /* in the list; first == end: nothing waits */
    void *tasks;                 /* a tree of those that have effects here */
};

/* Adds an effect at the end. Returns 0 or -ENOMEM: then nothing has changed. */
int effect_queue_add(struct effect_queue *queue, struct pending_effect effect);

/* Takes the first effect of a queue that is not empty. */
struct pending_effect effect_queue_take(struct effect_queue *queue);

/* Takes the first effect of that kind. Returns false: there is none. Its time grows with the
 * number of effects before it. */
bool effect_queue_take_kind(
    struct effect_queue *queue, enum effect_kind kind, struct pending_effect *ret_effect);

/* Returns whether an effect of the task waits here. */
bool effect_queue_has(const struct effect_queue *queue, uint64_t task);

static inline bool effect_queue_is_empty(const struct effect_queue *queue)
{
    return queue->first == queue->end;
}

/* Releases what the queue has. */
void effect_queue_fini(struct effect_queue *queue);

#endif
