/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The users' shares of the host memory for copies (core/copy_share.h). Those users count that have
 * a copy there, or a running task that can be suspended.
 *
 * The memory of a task may not be known, and with the setting neighbour-memory its copy may need no
 * host memory: then the driver of the core finds out.
 */
#include "core/ask/copy_room.h"

#include "core/ask/giving_way.h"
#include "core/copy_share.h"
#include "core/questions.h"
#include "core/state/copies.h"
#include "core/state/tasks.h"
#include "core/state/users.h"

/* Bytes: more than any host has. */
static const double NO_LIMIT = (double)(UINT64_C(1) << 60);

/* What the running tasks of a user have on their GPUs, of those that can be suspended. */
static double running_bytes(const struct core *core, uint32_t uid)
{
    double bytes = 0;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++) {
            const struct resident *resident = &gpu->residents[k];
            const struct task *task = resident->uid == uid ? core_find_task(core, resident->task)
                                                           : NULL;
            if (task && task->state == TASK_RUNNING && core_can_suspend(core, task))
                bytes += reading_assume(
                    resident->mem_used_bytes, reading_assume(resident->need_bytes, 0));
        }
    }
    return bytes;
}

struct copy_share core_copy_share(const struct core *core, const struct task *task)
{
    double counted = task->run->yield.counted_bytes;
    int64_t max = core->settings.copies_max_bytes;
    struct copy_share of = {
        .max = max ? (double)max : NO_LIMIT, .taken = core_copies_bytes(core) - counted};
    int n_users = 0;
    for (int i = 0; i < core->users->n; i++) {
        const struct core_user *user = core->users->list[i];
        of.own += user->uid == task->uid ? user->copies_bytes - counted : 0;
        n_users += user->uid == task->uid || user->copies_bytes > 0 ||
                   (user->n_gpus > 0 && running_bytes(core, user->uid) > 0);
    }
    of.share = n_users > 0 ? of.max / n_users : of.max;
    for (int i = 0; i < core->users->n; i++) {
        const struct core_user *user = core->users->list[i];
        if (user->uid != task->uid && user->n_gpus > 0)
            of.kept += copy_share_claim(
                of.share, user->copies_bytes, running_bytes(core, user->uid));
    }
    return of;
}

double core_copies_bytes(const struct core *core)
{
    double bytes = 0;
    for (int i = 0; i < core->users->n; i++)
        bytes += core->users->list[i]->copies_bytes;
    return bytes;
}

/* Would it fit whatever is kept for others? */
static bool fits_in_any_case(const struct core *core, double bytes)
{
    bytes += core_copies_bytes(core);
    for (int i = 0; i < core->view.n_gpus; i++)
        bytes += reading_assume(
            core->view.gpus[i].mem_used_bytes, (double)core->view.gpus[i].id.mem_total_bytes);
    return bytes <= (double)core->settings.copies_max_bytes;
}

bool core_has_copy_room(const struct core *core, const struct task *task)
{
    struct reading bytes = core_copy_bytes(core, task);
    if (!core->settings.copies_max_bytes || core->settings.neighbour_memory || !bytes.valid ||
        fits_in_any_case(core, bytes.value))
        return true;
    const struct copy_share share = core_copy_share(core, task);
    return bytes.value <= copy_share_left(&share);
}

bool core_may_suspend(const struct core *core, const struct task *task, int64_t now_us)
{
    return core_can_suspend(core, task) && !task->request.service.is_service &&
           task->run->yield.retry_us <= now_us && core_has_copy_room(core, task);
}
