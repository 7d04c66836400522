/* SPDX-License-Identifier: Apache-2.0 */
#include "memnet/crew.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { JOBS_MAX = 64 };

struct crew {
    const struct crew_settings *settings;
    pthread_mutex_t lock; /* of all that follows, and of the callbacks */
    size_t next;          /* plan */
    int r;
    struct fault *fault;
};

bool crew_wants(const struct crew_settings *settings, const struct net_plan *plan)
{
    return !settings->only || strstr(plan->name, settings->only) != NULL;
}

static const struct net_plan *take_plan(struct crew *crew)
{
    const struct net_plan *plan = NULL;
    pthread_mutex_lock(&crew->lock);
    while (crew->r == 0 && (plan = net_plan_at(crew->next)) != NULL) {
        crew->next++;
        if (crew_wants(crew->settings, plan))
            break;
    }
    pthread_mutex_unlock(&crew->lock);
    return plan;
}

static bool on_epoch(void *context, const struct train_progress *progress)
{
    struct crew *crew = context;
    pthread_mutex_lock(&crew->lock);
    if (crew->settings->on_epoch)
        crew->settings->on_epoch(crew->settings->context, progress);
    bool goes_on = crew->r == 0;
    pthread_mutex_unlock(&crew->lock);
    return goes_on;
}

static void train_one(struct crew *crew, const struct net_plan *plan)
{
    const struct crew_settings *settings = crew->settings;
    const struct train_settings own = {.blas = settings->blas,
        .seed = settings->seed,
        .epochs_max = settings->epochs_max,
        .on_epoch = on_epoch,
        .context = crew};
    struct gpumemnet_net net;
    struct fault fault = {""};
    int r = memnet_train(settings->dataset, plan, &own, &fault, &net);
    pthread_mutex_lock(&crew->lock);
    if (crew->r == 0) {
        crew->r = settings->on_trained(settings->context, plan, r, r == 0 ? &net : NULL, &fault);
        if (crew->r < 0 && crew->fault)
            *crew->fault = fault;
    }
    pthread_mutex_unlock(&crew->lock);
    if (r == 0)
        gpumemnet_net_fini(&net);
}

static void *work(void *context)
{
    const struct net_plan *plan;
    while ((plan = take_plan(context)) != NULL)
        train_one(context, plan);
    return NULL;
}

int crew_run(const struct crew_settings *settings, struct fault *fault)
{
    struct crew crew = {.settings = settings, .lock = PTHREAD_MUTEX_INITIALIZER, .fault = fault};
    pthread_t thread[JOBS_MAX];
    int n = 0;
    while (n < settings->jobs && n < JOBS_MAX && pthread_create(&thread[n], NULL, work, &crew) == 0)
        n++;
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&crew.lock);
    return n ? crew.r : fault_set(fault, EAGAIN, "no thread can be made");
}
