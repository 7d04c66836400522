/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that holds GPUs is a resident of each of them: the view shows policies what it requires,
 * how it shares the GPU and since when it is there. With each task that comes or goes, the charges
 * of those that were there are taken up to now, and others are held off until the new resident has
 * settled (residence.h).
 *
 * Two tasks that are residents of one memory domain at a time have had co-residents: an end for
 * lack of memory may then be the other's fault.
 */
#include "core/state/residents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/memory_domain.h"
#include "core/state/charges.h"
#include "core/state/library_use.h"
#include "core/state/promise.h"
#include "core/state/recovery_need.h"
#include "core/state/service.h"
#include "core/state/state.h"
#include "core/state/tasks.h"
#include "core/state/users.h"

/* The memory that the task requires on each GPU, as far as is known. A suspended task requires the
 * memory that it held; one that ran out of memory at least what it had then. */
static struct reading required_bytes(
    const struct core *core, const struct task *task, bool *ret_is_least)
{
    const struct need *need = &task->request.need;
    bool is_known = need->kind >= NEED_ESTIMATED && need->bytes > 0;
    struct reading bytes = is_known ? reading_of((double)need->bytes) : READING_NONE;
    *ret_is_least = task->run->need_is_least;
    if (task->run->yield.bytes.valid)
        return task->run->yield.bytes;
    if (!core_retries_beside_others(core, task) ||
        task->run->reached_bytes.value <= reading_assume(bytes, 0))
        return bytes;
    *ret_is_least = true;
    return task->run->reached_bytes;
}

/* When the task's time limit ends it; 0: it has none. */
static int64_t limit_ends_us(const struct task *task, int64_t now_us)
{
    int64_t limit_us = task->request.time_limit_us;
    int64_t had_us = task->state == TASK_STARTING ? 0 : task_computed_us(task, now_us);
    return limit_us ? now_us + limit_us - had_us : 0;
}

void core_note_time_limit(struct core *core, const struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++) {
        struct resident *resident = gpu_view_resident(&core->view.gpus[task->gpus[i]], task->id);
        if (resident)
            resident->ends_us = limit_ends_us(task, now_us);
    }
}

/* A resident that was backfilled before a task comes (`change` 1) or goes (-1). */
static void count_backfilled(struct core *core, uint64_t before, int change)
{
    struct task *head = before ? core_find_task(core, before) : NULL;
    if (head)
        head->n_backfilled += change;
}

/* Others are held off until the new resident has settled (residence.h). */
static int add_resident(
    struct core *core, struct gpu_view *gpu, const struct task *task, int64_t now_us)
{
    if (ARRAY_RESERVE(gpu->residents, gpu->residents_capacity, gpu->n_residents + 1) < 0)
        return -ENOMEM;
    bool is_least;
    struct reading need_bytes = required_bytes(core, task, &is_least);
    count_backfilled(core, gpu->claims[CLAIM_HEAD], 1);
    gpu->residents[gpu->n_residents++] = (struct resident){
        .task = task->id,
        .array = task->array.id,
        .uid = task->uid,
        .user = core_find_user(core, task->uid),
        .backfilled_before = gpu->claims[CLAIM_HEAD],
        .gpus = task->n_gpus,
        .places = task->gpus,
        .sharing = task->run->share.sharing,
        .thread_percent = task->run->share.thread_percent,
        .since_us = now_us,
        .ends_us = limit_ends_us(task, now_us),
        .grew_us = now_us,
        .held_us = now_us,
        .service = core_resident_service(core, task, now_us),
        .promise = core_resident_promise(task),
        .need_bytes = need_bytes,
        .need_is_least = is_least,
        .expect = task->request.expect,
        .kind_speed = task->run->kind_speed,
        .has_library = task->run->has_library,
    };
    core_expect_library(&gpu->residents[gpu->n_residents - 1]);
    gpu->mix_since_us = now_us;
    if (task->exclusive)
        gpu->claims[CLAIM_EXCLUSIVE] = task->id;
    return 0;
}

void core_remove_resident(struct core *core, int i, uint64_t id, int64_t now_us)
{
    struct gpu_view *gpu = &core->view.gpus[i];
    struct resident *resident = gpu_view_resident(gpu, id);
    if (!resident)
        return;
    core_accrue(core, gpu, now_us);
    core_count_gpu(core, resident->uid, -1, now_us);
    count_backfilled(core, resident->backfilled_before, -1);
    struct resident *end = gpu->residents + gpu->n_residents--;
    memmove(resident, resident + 1, (size_t)(end - resident - 1) * sizeof *resident);
    gpu->mix_since_us = now_us;
    core_note_open(core, i);
    claims_end(gpu->claims, CLAIM_EXCLUSIVE, id);
    claims_end(gpu->claims, CLAIM_CLOSED, id);
}

/* One that shares only the memory may cause a lack of memory, too, and so may what suspended tasks
 * have left there. */
static void record_coresidents(struct core *core, struct task *task, const struct gpu_view *gpu)
{
    const struct resident *resident;
    task->had_coresidents |= gpu->n_absent > 0 || gpu->n_copies > 0;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk))) {
        struct task *other = core_find_task(core, resident->task);
        if (other && other != task)
            task->had_coresidents = other->had_coresidents = true;
    }
}

int core_add_to_gpu(struct core *core, struct task *task, int gpu, int64_t now_us)
{
    core_accrue(core, &core->view.gpus[gpu], now_us);
    core_count_gpu(core, task->uid, 1, now_us);
    record_coresidents(core, task, &core->view.gpus[gpu]);
    if (add_resident(core, &core->view.gpus[gpu], task, now_us) < 0)
        return -ENOMEM;
    core_note_open(core, gpu);
    core_note_joined(core, task, gpu, now_us);
    core_note_joined_promise(core, task, gpu, now_us);
    return 0;
}

int core_add_to_host(struct core *core, uint64_t id)
{
    return ARRAY_APPEND(core->on_host.list, core->on_host.n, core->on_host.capacity, id);
}

static void remove_from_host(struct core *core, uint64_t id)
{
    for (size_t i = 0; i < core->on_host.n; i++)
        if (core->on_host.list[i] == id)
            core->on_host.list[i--] = core->on_host.list[--core->on_host.n];
}

static int add_context(struct core *core, const struct task *task, int at)
{
    struct gpu_view *gpu = &core->view.gpus[at];
    const struct absent_client client = {task->id, task->uid, task->run->yield.mps_clients};
    if (ARRAY_APPEND(gpu->absent, gpu->n_absent, gpu->absent_capacity, client) < 0)
        return -ENOMEM;
    core->any_context = true;
    core_note_open(core, at);
    return 0;
}

int core_keep_contexts(struct core *core, struct task *task)
{
    struct task_yield *yield = &task->run->yield;
    int r = 0;
    if (!yield->context_bytes.valid || task->n_gpus == 0)
        return 0;
    yield->context_gpus = malloc((size_t)task->n_gpus * sizeof *yield->context_gpus);
    if (!yield->context_gpus)
        return -ENOMEM;
    memcpy(yield->context_gpus, task->gpus, (size_t)task->n_gpus * sizeof *task->gpus);
    yield->n_context_gpus = task->n_gpus;
    for (int i = 0; i < task->n_gpus && r == 0; i++)
        r = add_context(core, task, task->gpus[i]);
    return r;
}

static void remove_context(struct core *core, const struct task *task, int at)
{
    struct gpu_view *gpu = &core->view.gpus[at];
    for (int i = 0; i < gpu->n_absent; i++) {
        if (gpu->absent[i].task != task->id)
            continue;
        gpu->absent[i] = gpu->absent[--gpu->n_absent];
        break;
    }
    core_note_open(core, at);
}

void core_remove_context(struct core *core, struct task *task)
{
    struct task_yield *yield = &task->run->yield;
    if (!yield->context_gpus)
        return;
    for (int i = 0; i < yield->n_context_gpus; i++)
        remove_context(core, task, yield->context_gpus[i]);
    free(yield->context_gpus);
    yield->context_gpus = NULL;
    yield->n_context_gpus = 0;
}

/* ---- copies that lie on a neighbour ---- */

int core_add_copy(struct core *core, struct task *task, int gpu, double bytes)
{
    struct gpu_view *view = &core->view.gpus[gpu];
    const struct lent_copy copy = {.task = task->id, .bytes = bytes};
    if (ARRAY_APPEND(view->copies, view->n_copies, view->copies_capacity, copy) < 0)
        return -ENOMEM;
    task->run->yield.neighbour = gpu;
    task->run->yield.has_neighbour = true;
    core->n_copies++;
    core_note_open(core, gpu);
    return 0;
}

/* The last sample does not show it. */
void core_note_copied(struct core *core, const struct task *task, double bytes)
{
    int at = task->run->yield.neighbour;
    struct gpu_view *gpu = &core->view.gpus[at];
    for (int i = 0; i < gpu->n_copies; i++)
        if (gpu->copies[i].task == task->id)
            gpu->copies[i] = (struct lent_copy){task->id, bytes, true};
    if (gpu->mem_used_bytes.valid)
        gpu->mem_used_bytes.value += bytes;
    core_note_open(core, at);
}

void core_remove_copy(struct core *core, struct task *task)
{
    int at = task->run->yield.neighbour;
    if (!task->run->yield.has_neighbour)
        return;
    struct gpu_view *gpu = &core->view.gpus[at];
    for (int i = 0; i < gpu->n_copies; i++) {
        if (gpu->copies[i].task != task->id)
            continue;
        gpu->copies[i] = gpu->copies[--gpu->n_copies];
        break;
    }
    task->run->yield.has_neighbour = task->run->yield.is_relocating = false;
    core->n_copies--;
    core_note_open(core, at);
}

bool core_are_gpus(const struct core *core, const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        if (gpus[i] < 0 || gpus[i] >= core->view.n_gpus)
            return false;
    return n > 0;
}

bool core_are_different(const int *gpus, int n)
{
    for (int i = 1; i < n; i++)
        if (gpu_is_among(gpus[i], gpus, i))
            return false;
    return true;
}

int core_count_new(const struct task *task, const int *gpus, int n)
{
    int n_new = 0;
    for (int i = 0; i < n; i++)
        n_new += !gpu_is_among(gpus[i], task->gpus, task->n_gpus);
    return n_new;
}

void core_release_gpus(struct core *core, struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++)
        core_remove_resident(core, task->gpus[i], task->id, now_us);
    if (task->request.gpus == 0)
        remove_from_host(core, task->id);
    free(task->gpus);
    task->gpus = NULL;
    task->n_gpus = 0;
}
