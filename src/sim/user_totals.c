/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of one trace: first as requested, then for each user alone. */
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

/* The first `n_gpus` of the cluster; what it points to is borrowed. */
static struct cluster part_of(const struct cluster *cluster, int n_gpus)
{
    struct cluster part = *cluster;
    part.n_gpus = n_gpus < cluster->n_gpus ? n_gpus : cluster->n_gpus;
    part.n_places = 0;
    while (part.n_places < cluster->n_places && cluster->places[part.n_places].gpu < part.n_gpus)
        part.n_places++;
    return part;
}

static int count_users(const struct user_totals *users)
{
    int n = 0;
    for (int i = 0; i < users->n; i++)
        n += users->list[i].tasks > 0;
    return n;
}

static int simulate_alone(
    const struct simulation *simulation, int n_users, struct fault *fault, struct user_total *user)
{
    int n_gpus = simulation->cluster->n_gpus / n_users;
    n_gpus = n_gpus > user->gpus_max ? n_gpus : user->gpus_max;
    struct cluster part = part_of(simulation->cluster, n_gpus);
    struct simulation alone = *simulation;
    struct simulation_result result;
    alone.cluster = &part;
    alone.only_user = user->name;
    int r = simulate_comparison(&alone, fault, &result);
    double ended = (double)(result.completed + result.failed + result.stopped);
    if (r == 0 && result.avg_jct_s > 0) {
        user->alone_wait_s = reading_of(result.avg_wait_s * ended);
        user->alone_jct_s = reading_of(result.avg_jct_s * ended);
    }
    return r < 0 ? r : 0;
}

int simulate_with_users(const struct simulation *simulation, struct fault *fault,
    struct simulation_result *ret_result, struct user_totals *ret_users)
{
    struct simulation as_asked = *simulation;
    *ret_users = (struct user_totals){0};
    as_asked.users = ret_users;
    int r = simulate_trace(&as_asked, fault, ret_result), n = count_users(ret_users);
    for (int i = 0; i < ret_users->n && n > 1 && r == 0; i++)
        if (ret_users->list[i].tasks)
            r = simulate_alone(simulation, n, fault, &ret_users->list[i]);
    return r;
}
