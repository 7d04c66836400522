/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the MIG instances of one GPU, after three checks: root, no task, no process. MPS servers
 * that no task uses are ended before the last one (mig_mps.h).
 *
 * Between the check of the tasks and the change, milliseconds later, the daemon may place a task on
 * an instance that is about to be removed. That task is requeued, like any task whose instance was
 * removed.
 */
#include "cli/mig_change.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/client.h"
#include "cli/mig_mps.h"
#include "cli/task_view.h"
#include "cli/task_words.h"
#include "gpu/mig.h"

/* Returns the index of the GPU, or of its instance, that the task holds; or NULL. */
static const char *index_held_by(const json_t *task, const struct mig_gpu *gpu)
{
    const json_t *uuids = json_object_get(task, "gpu_uuids"), *uuid;
    size_t k;
    for (size_t i = 0; i < gpu->set->count; i++) {
        const struct gpu_info *info = &gpu->set->gpu[i];
        if (info->is_mig ? info->parent != gpu->gpu : i != gpu->gpu)
            continue;
        json_array_foreach((json_t *)(uintptr_t)uuids, k, uuid) {
            if (strcmp(json_string_value(uuid) ? json_string_value(uuid) : "", info->uuid) == 0)
                return info->index;
        }
    }
    return NULL;
}

/* By the daemon's list, not by processes: a task that was just placed has none yet. */
static int check_task_list(const json_t *reply, const struct mig_gpu *gpu, struct fault *fault)
{
    const json_t *tasks = json_object_get(reply, "tasks"), *task;
    size_t i;
    if (!json_is_array(tasks))
        return fault_set(
            fault, EPROTO, "collocd's reply has no list of tasks: nothing was changed");
    json_array_foreach((json_t *)(uintptr_t)tasks, i, task) {
        const char *index = index_held_by(task, gpu);
        char id[CELL_SIZE];
        if (index)
            return fault_set(fault, EBUSY,
                "task %s uses GPU %s: nothing was changed; wait for its end or cancel it",
                task_id_text(task, id, sizeof id), index);
    }
    return 0;
}

/* A task may hold the GPU before it has a process there, so the daemon has to be asked. Only if no
 * daemon runs, no task does. */
static int check_tasks(
    const struct invocation *invocation, const struct mig_gpu *gpu, struct fault *fault)
{
    struct client *client;
    json_t *reply = NULL;
    int status = 0, r = client_open(invocation->common[COMMON_SOCKET].text, fault, &client);
    if (r < 0)
        return r == -ECONNREFUSED ? 0 : r;
    bool has_daemon = !client_is_unserved(client);
    if (has_daemon)
        r = client_request(client, "GET", "/v1/tasks?state=live", NULL, fault, &status, &reply);
    if (r == 0 && has_daemon && status != 200) {
        client_error(status, reply, fault);
        r = -EREMOTEIO;
    }
    if (r < 0)
        r = fault_prefix(fault, r,
            "cannot find out whether a task uses GPU %s: nothing was changed",
            gpu->set->gpu[gpu->gpu].index);
    else if (has_daemon)
        r = check_task_list(reply, gpu, fault);
    json_decref(reply);
    client_close(client);
    return r;
}

int mig_change(const struct invocation *invocation, const struct mig_gpu *gpu,
    const struct mig_plan *plan, struct fault *fault)
{
    int r = geteuid() == 0 ? 0 : fault_set(fault, EPERM, "only root can change MIG instances");
    if (r == 0)
        r = check_tasks(invocation, gpu, fault);
    if (r == 0)
        mig_mps_release(invocation, gpu);
    if (r == 0)
        r = mig_check_idle(gpu, fault);
    return r < 0 ? r : mig_apply(gpu, plan, fault);
}

int mig_change_layout(const struct invocation *invocation, struct gpu_set *set, const char *index,
    const char *layout, struct fault *fault)
{
    char copy[256], *rest = copy, *name;
    const char *names[MIG_INSTANCES_MAX];
    size_t n = 0;
    struct mig_gpu gpu;
    struct mig_plan plan;
    snprintf(copy, sizeof copy, "%s", layout);
    while (n < MIG_INSTANCES_MAX && (name = strsep(&rest, "+")))
        names[n++] = name;
    int r = mig_query(set, index, fault, &gpu);
    if (r == 0)
        r = mig_plan_make(gpu.profiles, gpu.n_profiles, names, n, fault, &plan);
    return r == 0 ? mig_change(invocation, &gpu, &plan, fault) : r;
}
