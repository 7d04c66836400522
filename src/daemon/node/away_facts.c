/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts that decide whether a job may leave its GPUs: its processes by the last poll, what
 * /proc and their pages say of each (the helper reads /proc, since a process's program may be on a
 * file system that does not answer), the driver, and host memory. The limits of memory above the
 * job count for what is charged to its cgroup: all of its copy that does not go to memory of the
 * agent's (job_rooms.c).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/cuda_process.h"
#include "checkpoint/order_limits.h"
#include "daemon/node/away_jobs.h"
#include "daemon/node/away_state.h"

static void inspect_next(struct away_jobs *away);

/* ---- its processes ---- */

/* Returns false when something of it is not known. */
static bool add_process(
    struct away_jobs *away, const struct node_gpu *gpu, const struct node_process *process)
{
    struct suspension_record *record = &away->present->record;
    struct group_process *added = suspension_record_process(record, process->pid);
    if (!added || added->n_memory == GROUP_GPUS_MAX || !process->memory_bytes.valid)
        return false;
    struct group_memory *memory = &added->memory[added->n_memory++];
    snprintf(memory->gpu, sizeof memory->gpu, "%.40s", gpu->uuid);
    memory->bytes = (int64_t)process->memory_bytes.value;
    away->facts.gpu_bytes.value += process->memory_bytes.value;
    return true;
}

static void collect_processes(struct away_jobs *away)
{
    const struct node *node = away->node;
    struct suspension_record *record = &away->present->record;
    bool is_known = true;
    *record = (struct suspension_record){.attempt = 1};
    for (size_t i = 0; i < node->n_gpus; i++) {
        const struct node_gpu *gpu = &node->gpus[i];
        bool is_on = false;
        for (size_t k = 0; k < gpu->n_processes; k++) {
            if (!away_is_process(node, &gpu->processes[k], away->present->job))
                continue;
            is_known &= gpu->processes_known && add_process(away, gpu, &gpu->processes[k]);
            is_on = true;
        }
        if (is_on && record->n_gpus < GROUP_GPUS_MAX)
            snprintf(record->gpus[record->n_gpus++].uuid, GPU_UUID_SIZE, "%.40s", gpu->uuid);
    }
    if (!is_known)
        away->facts.gpu_bytes = READING_NONE;
    away->facts.n_processes = record->n_processes;
}

/* ---- each of them ---- */

static void take_inspection(struct away_jobs *away, const struct cuda_process *process)
{
    struct group_process *of = &away->present->record.processes[away->inspected++];
    of->born = process->born;
    struct preload_page *page = job_waits_page(
        away->node, away->present->job, group_process_id(of));
    uint32_t flags = page ? atomic_load(&page->flags) : 0;
    struct suspend_facts *facts = &away->facts;
    struct reading left = cgroup_memory_left_of(of->pid, "");
    facts->has_32_bit |= process->is_32_bit;
    facts->is_traced |= process->is_traced;
    facts->is_paused |= process->is_stopped;
    facts->has_profiler |= process->has_profiler;
    bool may_be_rank = !page || page_is_in_communicator(page);
    facts->has_nccl |= process->has_nccl && may_be_rank;
    facts->may_have_nccl |= process->is_unread && may_be_rank;
    facts->counts_collectives &= page && page_counts_collectives(page);
    facts->uses_managed |= (flags & PRELOAD_USES_MANAGED) != 0;
    facts->uses_ipc |= (flags & PRELOAD_USES_IPC) != 0;
    if (!left.valid || left.value < facts->cgroup_left_bytes.value)
        facts->cgroup_left_bytes = left;
}

/* A process that has ended since the poll. */
static void leave_out(struct away_jobs *away)
{
    struct suspension_record *record = &away->present->record;
    record->processes[away->inspected] = record->processes[--record->n_processes];
    away->facts.n_processes--;
}

static void decide_job(struct away_jobs *away)
{
    char why[NODE_JOB_WHY_SIZE];
    away->facts.pool_bytes = (double)job_rooms_bytes(
        away->node, away->present->job, &away->present->record);
    enum suspend_refusal refusal = suspend_check(&away->facts);
    if (refusal == SUSPEND_ALLOWED) {
        away_begin_going(away);
        return;
    }
    bool is_for_now = refusal == SUSPEND_NO_CUDA || refusal == SUSPEND_PAUSED ||
                      suspend_refusal_is_memory(refusal);
    suspend_refusal_write(refusal, &away->facts, why, sizeof why);
    away_fail(away, is_for_now ? NODE_JOB_NOT_NOW : NODE_JOB_REFUSED, why);
}

static void on_inspected(void *context, const struct helper_reply *reply)
{
    struct away_jobs *away = context;
    struct cuda_process process;
    if (reply->result == -ESRCH)
        leave_out(away);
    else if (reply->result == 0 && cuda_process_parse(span_of(reply->text), &process) == 0)
        take_inspection(away, &process);
    else {
        away_fail(away, NODE_JOB_NOT_NOW,
            "a process of it could not be inspected: it may wait for a file system");
        return;
    }
    inspect_next(away);
}

static void inspect_next(struct away_jobs *away)
{
    const struct suspension_record *record = &away->present->record;
    if (away->inspected == record->n_processes) {
        decide_job(away);
        return;
    }
    const struct helper_request request = {
        .call = HELPER_INSPECT, .pid = record->processes[away->inspected].pid};
    helper_client_call(away->client, &request, INSPECT_LIMIT_US, on_inspected, away);
}

/* ---- the machine ---- */

static void set_driver(struct away_jobs *away)
{
    away->facts.has_helper = !*away->driver_fault;
    away->facts.driver_fault = away->driver_fault;
    away->facts.cuda_version = away->cuda_version;
    away->facts.n_gpus = away->n_gpus;
}

/* "13000 GPU-...,GPU-..." */
static void on_gpus(void *context, const struct helper_reply *reply)
{
    struct away_jobs *away = context;
    int r = reply->result;
    if (r == 0)
        r = helper_gpus_read(span_of(reply->text), &away->cuda_version, &away->n_gpus);
    away->is_driver_known = r == 0;
    snprintf(away->driver_fault, sizeof away->driver_fault, "%.127s",
        r == 0          ? ""
        : reply->result ? reply->text
                        : HELPER_NONSENSE);
    set_driver(away);
    inspect_next(away);
}

static bool shares_by_mps(const struct node *node, uint32_t job)
{
    for (const struct node_step *step = node->steps; step; step = step->next)
        if (step->job == job && step->is_mps)
            return true;
    return false;
}

void away_gather_facts(struct away_jobs *away)
{
    const struct config *config = away->node->parts.config;
    away->facts = (struct suspend_facts){.may_hang_host = away->may_hang_host,
        .is_mps_client = shares_by_mps(away->node, away->present->job),
        .is_by_carrier = config->carrier,
        .counts_collectives = true,
        .gpu_bytes = reading_of(0),
        .host_available_bytes = host_memory_available(),
        .cgroup_left_bytes = reading_of(INFINITY)};
    away->facts.host_available_bytes.value -= helper_pool_host_bytes(&away->helpers);
    collect_processes(away);
    away_take_share(away);
    away->inspected = 0;
    set_driver(away);
    if (away->is_driver_known) {
        inspect_next(away);
        return;
    }
    const struct helper_request request = {.call = HELPER_GPUS};
    helper_client_call(away->client, &request, LOAD_LIMIT_US, on_gpus, away);
}
