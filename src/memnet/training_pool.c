/* SPDX-License-Identifier: Apache-2.0 */
/* A worker pool. Each thread takes the next plan until none is left or a callback has failed; a
 * network is trained by one thread from beginning to end, so that its weights do not depend on the
 * number of threads. */
#include "memnet/training_pool.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { JOBS_MAX = 64 }; /* chosen */

struct training_pool {
    const struct training_pool_settings *settings;
    pthread_mutex_t lock; /* of all that follows, and of the callbacks */
    size_t next;          /* plan */
    int r;
    struct fault *fault;
};

bool training_pool_selects(
    const struct training_pool_settings *settings, const struct net_plan *plan)
{
    return !settings->only || strstr(plan->name, settings->only) != NULL;
}

static const struct net_plan *take_plan(struct training_pool *pool)
{
    const struct net_plan *plan = NULL;
    pthread_mutex_lock(&pool->lock);
    while (pool->r == 0 && (plan = net_plan_at(pool->next)) != NULL) {
        pool->next++;
        if (training_pool_selects(pool->settings, plan))
            break;
    }
    pthread_mutex_unlock(&pool->lock);
    return plan;
}

static bool on_epoch(void *context, const struct train_progress *progress)
{
    struct training_pool *pool = context;
    pthread_mutex_lock(&pool->lock);
    if (pool->settings->on_epoch)
        pool->settings->on_epoch(pool->settings->context, progress);
    bool continues = pool->r == 0;
    pthread_mutex_unlock(&pool->lock);
    return continues;
}

static void train_one(struct training_pool *pool, const struct net_plan *plan)
{
    const struct training_pool_settings *settings = pool->settings;
    const struct train_settings own = {.blas = settings->blas,
        .seed = settings->seed,
        .epochs_max = settings->epochs_max,
        .on_epoch = on_epoch,
        .context = pool};
    struct gpumemnet_net net;
    struct fault fault = {""};
    int r = memnet_train(settings->dataset, plan, &own, &fault, &net);
    pthread_mutex_lock(&pool->lock);
    if (pool->r == 0) {
        pool->r = settings->on_trained(settings->context, plan, r, r == 0 ? &net : NULL, &fault);
        if (pool->r < 0 && pool->fault)
            *pool->fault = fault;
    }
    pthread_mutex_unlock(&pool->lock);
    if (r == 0)
        gpumemnet_net_fini(&net);
}

static void *run_worker(void *context)
{
    const struct net_plan *plan;
    while ((plan = take_plan(context)) != NULL)
        train_one(context, plan);
    return NULL;
}

int training_pool_run(const struct training_pool_settings *settings, struct fault *fault)
{
    struct training_pool pool = {
        .settings = settings, .lock = PTHREAD_MUTEX_INITIALIZER, .fault = fault};
    pthread_t thread[JOBS_MAX];
    int n = 0;
    while (n < settings->jobs && n < JOBS_MAX &&
           pthread_create(&thread[n], NULL, run_worker, &pool) == 0)
        n++;
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&pool.lock);
    return n ? pool.r : fault_set(fault, EAGAIN, "cannot create a thread");
}
