/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses which of the connections without a proven user is closed. The list begins with the
 * oldest: after one that is neither judged nor late, none is late. */
#include "api/unproven.h"

#include <stddef.h>

#include "base/crowd.h"
#include "base/list.h"

void unproven_init(struct unproven_list *list)
{
    *list = (struct unproven_list){.last = &list->first};
}

void unproven_add(struct unproven_list *list, struct unproven *added)
{
    LIST_APPEND(list->last, added);
    list->n++;
}

void unproven_remove(struct unproven_list *list, struct unproven *gone)
{
    if (!gone->link)
        return;
    LIST_UNLINK_FROM(list->last, gone);
    list->n--;
}

struct unproven *unproven_find_late(const struct unproven_list *list, int64_t now_us)
{
    for (struct unproven *at = list->first; at; at = at->next) {
        if (now_us - at->begun_us >= (at->is_judged ? JUDGED_MAX_US : UNPROVEN_MAX_US))
            return at;
        if (!at->is_judged)
            return NULL;
    }
    return NULL;
}

/* Where all requests of the crowd are judged, its newest loses the place. */
struct unproven *unproven_find_excess(const struct unproven_list *list)
{
    uint64_t networks[UNPROVEN_PLACES + 1] = {0};
    struct unproven *chosen = NULL;
    int n = 0, most;
    if (list->n <= UNPROVEN_PLACES)
        return NULL;
    for (const struct unproven *at = list->first; at && n <= UNPROVEN_PLACES; at = at->next)
        networks[n++] = at->network;
    uint64_t crowd = crowd_find(networks, n, &most);
    for (struct unproven *at = list->first; at && (!chosen || chosen->is_judged); at = at->next)
        if (most == 1 || at->network == crowd)
            chosen = at;
    return chosen;
}
