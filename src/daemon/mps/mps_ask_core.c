/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What MPS control daemons serve, by the core: its tasks that share by MPS are the clients, its
 * GPUs and MIG instances the devices.
 */
#include "daemon/mps/mps_options.h"

static int count_clients(const void *context, uid_t uid, uint64_t instance)
{
    const struct core *core = context;
    int n = 0;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id))
        n += task->uid == uid && task_state_has_attempt(task->state) &&
             task->run->share.sharing == SHARING_MPS &&
             mps_instance_number(cluster_view_instance_of(core_view(core), task)) == instance;
    return n;
}

static size_t list_gpus(const void *context, const char **uuids, size_t max)
{
    const struct cluster_view *view = core_view(context);
    size_t n = 0;
    for (int i = 0; i < view->n_gpus && n < max; i++)
        if (view->gpus[i].id.is_place && !view->gpus[i].id.is_mig_instance &&
            view->gpus[i].health != VIEW_LOST)
            uuids[n++] = view->gpus[i].id.uuid;
    return n;
}

static bool find_instance(const void *context, uint64_t instance, struct mps_instance *ret_instance)
{
    const struct cluster_view *view = core_view(context);
    for (int i = 0; i < view->n_gpus; i++) {
        const struct gpu_identity *id = &view->gpus[i].id;
        if (!id->is_mig_instance || mps_instance_number(id->uuid) != instance)
            continue;
        *ret_instance = (struct mps_instance){id->uuid, id->label, id->is_gone};
        return true;
    }
    return false;
}

struct mps_source mps_ask_core(const struct core *core)
{
    return (struct mps_source){core, count_clients, list_gpus, find_instance};
}
