/* SPDX-License-Identifier: Apache-2.0 */
/* A user's share of the cluster is its first GPUs. */
#include "sim/users_alone.h"

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
