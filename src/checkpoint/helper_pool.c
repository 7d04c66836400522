/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers for several groups at a time. A helper is made when none is left for the next group, and
 * used again by later ones: on a server where groups leave one after the other there are two.
 */
#include "checkpoint/helper_pool.h"

#include <string.h>

#include "base/list.h"

static bool is_used(const struct helper_pool *pool, const struct helper_client *client)
{
    for (const struct pooled_group *group = pool->at_work; group; group = group->next)
        if (group->runner.client == client)
            return true;
    return false;
}

struct helper_client *helper_pool_find(const struct helper_pool *pool)
{
    for (size_t i = 0; i < HELPERS_MAX; i++)
        if (pool->helpers[i] && !is_used(pool, pool->helpers[i]))
            return pool->helpers[i];
    return NULL;
}

/* There is one more than groups with the driver, if there may be. */
static void add_helper(struct helper_pool *pool)
{
    size_t n = 0;
    while (n < HELPERS_MAX && pool->helpers[n])
        n++;
    if (n < HELPERS_MAX && !helper_pool_find(pool))
        pool->helpers[n] = helper_client_create(pool->loop, pool->program);
}

bool helper_pool_open(struct helper_pool *pool)
{
    add_helper(pool);
    return pool->helpers[0];
}

void helper_pool_close(struct helper_pool *pool)
{
    for (size_t i = 0; i < HELPERS_MAX; i++)
        helper_client_close(pool->helpers[i]);
}

static void on_done(void *context, enum group_answer answer, const char *error)
{
    struct pooled_group *group = context;
    group->answer = answer;
    group->is_answered = true;
    group->pool->on_answer(group->pool->context);
}

void helper_pool_start(
    struct helper_pool *pool, struct pooled_group *group, struct helper_client *client)
{
    group->pool = pool;
    group->runner.client = client;
    group->runner.on_done = on_done;
    group->runner.context = group;
    group->is_at_work = true;
    group->is_answered = false;
    LIST_PREPEND(&pool->at_work, group);
    add_helper(pool);
    group_runner_start(&group->runner);
}

void helper_pool_take(struct pooled_group *group)
{
    LIST_UNLINK(group);
    group->is_at_work = false;
}

bool pooled_group_is_on(const struct pooled_group *group, const char *uuid)
{
    const struct process_group *of = &group->runner.group;
    for (size_t i = 0; i < of->count; i++)
        for (size_t k = 0; k < of->processes[i].n_memory; k++)
            if (strcmp(of->processes[i].memory[k].gpu, uuid) == 0)
                return true;
    return false;
}

double helper_pool_host_bytes(const struct helper_pool *pool)
{
    double bytes = 0;
    for (const struct pooled_group *group = pool->at_work; group; group = group->next)
        bytes += group->host_bytes;
    return bytes;
}
