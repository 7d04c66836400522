/* SPDX-License-Identifier: Apache-2.0 */
/* Each user has a number in the trace, and a place in the list. */
#include "sim/user_totals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

/* The bound of Feitelson's bounded slowdown: a shorter task counts as one of this length, so that
 * tasks of no length do not dominate the mean. */
#define SLOWDOWN_BOUND_S 10.0

static struct user_total *find_total(struct user_totals *totals, uint32_t number, const char *name)
{
    if (ARRAY_RESERVE(totals->list, totals->capacity, (size_t)number + 1) < 0)
        return NULL;
    for (; totals->n <= (int)number; totals->n++)
        totals->list[totals->n] = (struct user_total){0};
    struct user_total *total = &totals->list[number];
    if (!total->name)
        total->name = strdup(name);
    return total->name ? total : NULL;
}

int user_totals_add(
    struct user_totals *totals, const struct task *ended, const char *user, double solo_s)
{
    struct user_total *total = find_total(totals, ended->uid, user);
    if (!total)
        return -ENOMEM;
    double jct_s = (double)(ended->ended_us - ended->submitted_us) / (double)SECOND_US;
    total->tasks++;
    total->wait_s += (double)ended->waited_us / (double)SECOND_US;
    total->jct_s += jct_s;
    total->stretch += fmax(1, jct_s / fmax(solo_s, SLOWDOWN_BOUND_S));
    if (ended->request.gpus > total->gpus_max)
        total->gpus_max = ended->request.gpus;
    return 0;
}

void user_totals_fini(struct user_totals *totals)
{
    for (int i = 0; i < totals->n; i++)
        free(totals->list[i].name);
    free(totals->list);
    *totals = (struct user_totals){0};
}

struct reading user_total_fairness(const struct user_total *total)
{
    return total->alone_jct_s.valid ? reading_of(total->jct_s / total->alone_jct_s.value)
                                    : READING_NONE;
}
