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

/* What the resident has on its GPU, if its task runs and can be suspended. */
static double running_bytes(const struct core *core, const struct resident *resident)
{
    const struct task *task = core_find_task(core, resident->task);
    if (!task || task->state != TASK_RUNNING || !core_can_suspend(core, task))
        return 0;
    return reading_assume(resident->mem_used_bytes, reading_assume(resident->need_bytes, 0));
}

/* In one walk over the users and one over the GPUs. Returns the array, as long as the table of
 * users. */
static const struct copy_user *collect_users(const struct core *core)
{
    struct core_users *users = core->users;
    for (int i = 0; i < users->n; i++)
        users->copies[i] = (struct copy_user){
            .uid = users->list[i]->uid, .away = users->list[i]->copies_bytes};
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        for (int k = 0; k < gpu->n_residents; k++) {
            int at = core_user_position(users, gpu->residents[k].uid);
            if (at < users->n && users->list[at]->uid == gpu->residents[k].uid)
                users->copies[at].running += running_bytes(core, &gpu->residents[k]);
        }
    }
    return users->copies;
}

/* Without what the task itself has there already. */
struct copy_share core_copy_share(const struct core *core, const struct task *task)
{
    double max = core->settings.copies_max_bytes ? (double)core->settings.copies_max_bytes
                                                 : NO_LIMIT;
    double counted = task->run->yield.counted_bytes;
    struct copy_share of = copy_share_of(
        max, collect_users(core), (size_t)core->users->n, task->uid);
    of.taken -= counted;
    of.own -= counted;
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
