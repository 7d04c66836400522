/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists whose items have the members `next` and `link`: the pointer to the item, which is in the
 * one before it or in the list. So an item leaves its list without a search.
 *
 *     struct reader { ...; struct reader *next, **link; };
 *
 *     LIST_PREPEND(&feed->readers, reader);
 *     LIST_UNLINK(reader);
 *
 * Where items come last, the list has `last`, too: the pointer behind its last item, which is the
 * first one's while the list is empty.
 */
#ifndef COLLOC_BASE_LIST_H
#define COLLOC_BASE_LIST_H

#include <stddef.h>

/* Puts the item before all others. `first`: where the list has its first item. */
#define LIST_PREPEND(first, item)                                                                  \
    do {                                                                                           \
        (item)->next = *(first);                                                                   \
        (item)->link = (first);                                                                    \
        if ((item)->next)                                                                          \
            (item)->next->link = &(item)->next;                                                    \
        *(first) = (item);                                                                         \
    } while (0)

/* Puts the item behind all others. `last`: a member of the list, which changes. */
#define LIST_APPEND(last, item)                                                                    \
    do {                                                                                           \
        (item)->next = NULL;                                                                       \
        (item)->link = (last);                                                                     \
        *(last) = (item);                                                                          \
        (last) = &(item)->next;                                                                    \
    } while (0)

/* Takes the item out of a list without `last`. */
#define LIST_UNLINK(item)                                                                          \
    do {                                                                                           \
        *(item)->link = (item)->next;                                                              \
        if ((item)->next)                                                                          \
            (item)->next->link = (item)->link;                                                     \
    } while (0)

/* Takes the item out of a list with `last`; its `link` is NULL then. */
#define LIST_UNLINK_FROM(last, item)                                                               \
    do {                                                                                           \
        LIST_UNLINK(item);                                                                         \
        if (!(item)->next)                                                                         \
            (last) = (item)->link;                                                                 \
        (item)->link = NULL;                                                                       \
    } while (0)

#endif
