/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts that a suspension needs: the task's processes by the last poll of the GPUs, the data of
 *  /proc about each (read by the helper, because a process's program may be on a file system that
 *  does not answer), the driver's version, and host memory.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/order_limits.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/suspension/suspension_state.h"
#include "exec/process_owner.h"
#include "preload/page.h"

static void inspect_next(struct suspension *s);

static void take_memory_kinds(struct suspension *s, struct process_id id)
{
    uint32_t flags = preload_manager_flags(s->parts.preload, s->orders->task, id);
    s->facts.uses_managed |= (flags & PRELOAD_USES_MANAGED) != 0;
    s->facts.uses_ipc |= (flags & PRELOAD_USES_IPC) != 0;
}

static void take_inspection(struct suspension *s, const struct cuda_process *process)
{
    s->record.processes[s->inspected].born = process->born;
    struct process_id id = group_process_id(&s->record.processes[s->inspected]);
    take_memory_kinds(s, id);
    s->facts.has_32_bit |= process->is_32_bit;
    s->facts.is_traced |= process->is_traced;
    s->facts.is_paused |= process->is_stopped;
    s->facts.has_profiler |= process->has_profiler;
    bool may_be_rank = !preload_manager_has_no_ranks(s->parts.preload, s->orders->task, id);
    s->facts.has_nccl |= process->has_nccl && may_be_rank;
    s->facts.may_have_nccl |= process->is_unread && may_be_rank;
    s->is_not_known |= !preload_manager_flags(s->parts.preload, s->orders->task, id);
    s->facts.counts_collectives &= preload_manager_counts_collectives(
        s->parts.preload, s->orders->task, id);
    s->is_without_library |= process->is_without_library || process->is_secure;
    s->is_secure |= process->is_secure;
    struct reading left = cgroup_memory_left_of(id.pid, s->cgroup); /* its own limit is raised */
    if (!left.valid || left.value < s->facts.cgroup_left_bytes.value)
        s->facts.cgroup_left_bytes = left;
    s->inspected++;
}

/* A process that has ended since the poll is left out. */
static void leave_out(struct suspension *s)
{
    s->record.processes[s->inspected] = s->record.processes[--s->record.n_processes];
    s->facts.n_processes--;
}

/* Chosen: a helper that ends each time is at fault itself. */
enum { LOST_HELPERS_MAX = 3 };

/* The helper has ended in its call, whoever did that: it says nothing of the task. Nothing is begun
 * yet, so another helper is asked all of it. Returns whether that is so. */
static bool ask_another_helper(struct suspension *s, const struct helper_reply *reply)
{
    if (reply->result != -EPIPE || s->orders->lost_helpers == LOST_HELPERS_MAX)
        return false;
    s->orders->lost_helpers++;
    suspension_retry_later(s, 0);
    return true;
}

/* The driver takes no part in an inspection: it is not the driver that does not answer. */
static void fail_inspection(struct suspension *s, const struct helper_reply *reply)
{
    char why[SUSPENSION_WHY_SIZE];
    if (reply->result == -ETIMEDOUT) {
        snprintf(why, sizeof why,
            "process %d could not be inspected within %d s: it may wait for a file system that "
            "does not answer",
            (int)s->record.processes[s->inspected].pid, (int)(INSPECT_LIMIT_US / SECOND_US));
        suspension_fail_order(s, SUSPENSION_NOT_NOW, false, why);
    } else {
        suspension_fail_order(s, SUSPENSION_TIMED_OUT, false,
            *reply->text ? reply->text : "its processes cannot be inspected");
    }
}

/* The driver goes on listing a process that has ended while its memory is in use. Its pid may be
 * that of another process of the task by now. */
static bool is_another_process(const struct suspension *s, const struct cuda_process *process)
{
    uint64_t listed = s->record.processes[s->inspected].born;
    return listed && listed != process->born;
}

static void on_inspected(void *context, const struct helper_reply *reply)
{
    struct suspension *s = context;
    struct cuda_process process;
    if (reply->result == -ESRCH)
        leave_out(s);
    else if (reply->result == 0 && cuda_process_parse(span_of(reply->text), &process) == 0) {
        if (is_another_process(s, &process))
            leave_out(s);
        else
            take_inspection(s, &process);
    } else if (ask_another_helper(s, reply))
        return;
    else {
        fail_inspection(s, reply);
        return;
    }
    inspect_next(s);
}

static void inspect_next(struct suspension *s)
{
    if (s->inspected == s->record.n_processes) {
        s->on_facts(s);
        return;
    }
    const struct helper_request request = {
        .call = HELPER_INSPECT, .pid = s->record.processes[s->inspected].pid};
    helper_client_call(s->client, &request, INSPECT_LIMIT_US, on_inspected, s);
}

/* "13000 GPU-...,GPU-..." */
static void on_gpus(void *context, const struct helper_reply *reply)
{
    struct suspension *s = context;
    s->is_asking = false;
    if (ask_another_helper(s, reply))
        return;
    int r = reply->result;
    if (r == 0)
        r = helper_gpus_read(span_of(reply->text), &s->cuda_version, &s->n_gpus);
    s->facts.has_helper = r == 0;
    if (r != 0) {
        const char *why = reply->result ? reply->text : HELPER_NONSENSE;
        log_warning("tasks cannot be suspended: %s", why);
        snprintf(s->driver_fault, sizeof s->driver_fault, "%.127s", why);
        s->facts.driver_fault = s->driver_fault;
    }
    s->facts.cuda_version = s->cuda_version;
    s->facts.n_gpus = s->n_gpus;
    inspect_next(s);
}

static bool is_same_kind(const struct suspension *s, const struct task *task)
{
    const struct cluster_view *view = core_view(s->parts.core);
    for (int i = 0; i < task->run->yield.n_to_gpus; i++)
        if (strcmp(view->gpus[task->run->yield.to_gpus[i]].id.name,
                view->gpus[task->gpus[0]].id.name) != 0)
            return false;
    return true;
}

static bool is_on_mig(const struct suspension *s, const struct task *task)
{
    return *cluster_view_instance_of(core_view(s->parts.core), task);
}

void suspension_name_gpus(
    const struct suspension *s, const int *gpus, int n, struct gpu_name *ret_names)
{
    const struct cluster_view *view = core_view(s->parts.core);
    for (int i = 0; i < n && i < GROUP_GPUS_MAX; i++)
        snprintf(ret_names[i].uuid, sizeof ret_names[i].uuid, "%.40s", view->gpus[gpus[i]].id.uuid);
}

/* GPU memory of a process of the task. What the record cannot hold is never left out unseen: the
 * rest of the task would be suspended without it. */
static void collect_memory(
    struct suspension *s, const struct gpu_process *holder, const char *gpu_uuid)
{
    struct group_process *process = suspension_record_process(&s->record, holder->pid);
    s->facts.has_too_many |= !process;
    if (process)
        process->born = holder->born;
    if (!process || process->n_memory == GROUP_GPUS_MAX || !holder->used_bytes.valid) {
        s->facts.gpu_bytes = READING_NONE;
        return;
    }
    struct group_memory *memory = &process->memory[process->n_memory++];
    snprintf(memory->gpu, sizeof memory->gpu, "%.40s", gpu_uuid);
    memory->bytes = (int64_t)holder->used_bytes.value;
    s->facts.gpu_bytes.value += holder->used_bytes.value;
}

/* The task's processes that hold GPU memory, by the last poll. */
static void collect_holders(struct suspension *s, const struct task *task)
{
    struct gpu_report report;
    pid_t shim = attempts_find_shim(s->parts.attempts, task->id);
    const struct attempt_roots root = {.shims = &shim,
        .count = 1,
        .cgroup_home = attempts_cgroup_home(s->parts.attempts),
        .state_dir = s->parts.config->state_dir,
        .tasks = &task->id,
        .attempts = &task->attempts};
    for (size_t i = 0; shim && gpus_report(s->parts.gpus, i, &report); i++) {
        const struct gpu_sample *sample = report.sample;
        for (size_t k = 0; sample->processes.valid && k < sample->processes.count; k++)
            if (process_owner_find(sample->processes.item[k].pid, &root) == 0)
                collect_memory(s, &sample->processes.item[k], report.info->uuid);
    }
}

static void collect_processes(struct suspension *s, const struct task *task)
{
    int n_gpus = task->request.gpus; /* during a move followed by the GPUs that it moves to */
    s->record = (struct suspension_record){.attempt = task->attempts,
        .number = suspension_count_stops(task),
        .n_gpus = (size_t)n_gpus};
    suspension_name_gpus(s, task->gpus, n_gpus, s->record.gpus);
    s->facts.gpu_bytes = reading_of(0);
    collect_holders(s, task);
    s->facts.n_processes = s->record.n_processes;
}

void suspension_limit_rooms(struct suspension *s)
{
    int64_t max_bytes = core_get_settings(s->parts.core)->copies_max_bytes;
    int64_t left_bytes = max_bytes - (int64_t)core_copies_bytes(s->parts.core);
    if (s->parts.config->carrier)
        preload_manager_limit_rooms(s->parts.preload, max_bytes ? left_bytes : INT64_MAX);
}

/* Not of its user's share: others want the memory that the copy leaves. */
bool suspension_has_host_room(struct suspension *s, double bytes, char *why, size_t size)
{
    const struct copy_share of = core_copy_share(
        s->parts.core, suspension_find_task(s, s->orders->task));
    struct reading available = host_memory_available();
    double reserve = available.valid ? (double)suspend_host_reserve((int64_t)available.value) : 0;
    if (bytes > of.max - of.taken)
        snprintf(why, size,
            "its copy stays on the neighbour GPU: suspended tasks would take more "
            "host memory than the setting suspend-memory-max allows");
    else if (available.valid && bytes > available.value - reserve)
        snprintf(why, size,
            "its copy stays on the neighbour GPU: the host has too little free "
            "memory for it");
    else
        return true;
    return false;
}

static void take_copy_share(struct suspension *s, const struct task *task)
{
    const struct copy_share of = core_copy_share(s->parts.core, task);
    s->facts.suspended_bytes = (int64_t)of.taken;
    s->facts.suspended_max_bytes = (int64_t)of.max;
    s->facts.kept_bytes = (int64_t)(of.max - of.taken - copy_share_left(&of));
}

void suspension_gather_facts(struct suspension *s, void (*next)(struct suspension *s))
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    s->facts = (struct suspend_facts){
        .has_helper = true,
        .cuda_version = s->cuda_version,
        .may_hang_host = s->may_hang_host && !s->parts.config->suspend_any_driver,
        .n_gpus = s->n_gpus,
        .is_move = s->orders->kind == ORDER_MOVE,
        .same_kind = is_same_kind(s, task),
        .is_mps_client = task->run->share.sharing == SHARING_MPS,
        .is_by_carrier = s->parts.config->carrier,
        .counts_collectives = true,
        .is_mig = is_on_mig(s, task),
        .host_available_bytes = host_memory_available(),
        .cgroup_left_bytes = reading_of(INFINITY),
    };
    take_copy_share(s, task);
    collect_processes(s, task);
    suspension_note_memory_limit(s);
    s->inspected = 0;
    s->on_facts = next;
    if (s->cuda_version != CUDA_VERSION_UNKNOWN) {
        inspect_next(s);
        return;
    }
    const struct helper_request request = {.call = HELPER_GPUS};
    s->is_asking = true;
    helper_client_call(s->client, &request, LOAD_LIMIT_US, on_gpus, s);
}
