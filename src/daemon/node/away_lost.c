/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs whose record is damaged. Their processes are off their GPUs, and would wait at their gates
 * for ever. What the record had is found again:
 *
 *     processes    those of the job that have come to this agent: the library looks for the next
 *                  agent every two seconds
 *     memory       what their pages count on each GPU, and a context
 *     the driver   a process that is on a GPU has its context there, so the driver has not taken
 *                  it: its carrier alone puts its blocks back
 *
 * A page may say anything, to the harm of its job: more memory than it had is waited for.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/suspension.h"
#include "daemon/node/away_jobs.h"
#include "daemon/node/away_state.h"
#include "preload/page_orders.h"

enum { FIND_MS = 8 * 1000 }; /* chosen: a busy process looks later than after two seconds */

/* ---- one process ---- */

static bool is_listed(const struct node *node, struct process_id id)
{
    for (size_t i = 0; i < node->n_gpus; i++)
        for (size_t k = 0; k < node->gpus[i].n_processes; k++)
            if (process_id_is(node_process_id(&node->gpus[i].processes[k]), id))
                return true;
    return false;
}

static const struct node_gpu *gpu_of(const struct node *node, const unsigned char uuid[16])
{
    for (size_t i = 0; i < node->n_gpus; i++)
        if (preload_uuid_is(node->gpus[i].uuid, uuid))
            return &node->gpus[i];
    return NULL;
}

static void add_gpu(struct suspension_record *record, const struct node_gpu *gpu)
{
    for (size_t i = 0; i < record->n_gpus; i++)
        if (strcmp(record->gpus[i].uuid, gpu->uuid) == 0)
            return;
    if (record->n_gpus < GROUP_GPUS_MAX)
        snprintf(record->gpus[record->n_gpus++].uuid, GPU_UUID_SIZE, "%.40s", gpu->uuid);
}

/* What the driver has taken, if it has: blocks that are away are the carrier's. */
static int64_t taken_bytes(const struct preload_page *page, const struct preload_device *device)
{
    uint64_t held = atomic_load(&device->held_bytes), blocks = atomic_load(&page->carry_bytes);
    bool is_away = atomic_load(&page->carry_state) == PRELOAD_CARRY_IS_AWAY;
    if (held > INT64_MAX / 4)
        held = INT64_MAX / 4;
    return (int64_t)(is_away && blocks < held ? held - blocks
                     : is_away                ? 0
                                              : held) +
           SUSPENSION_CONTEXT_BYTES;
}

static void add_memory(
    const struct node *node, struct suspension_record *record, const struct preload_page *page)
{
    struct group_process *process = &record->processes[record->n_processes - 1];
    for (int i = 0; i < PRELOAD_DEVICES_MAX; i++) {
        const struct node_gpu *gpu = gpu_of(node, page->devices[i].uuid);
        if (!gpu || process->n_memory == GROUP_GPUS_MAX)
            continue;
        struct group_memory *memory = &process->memory[process->n_memory++];
        snprintf(memory->gpu, sizeof memory->gpu, "%.40s", gpu->uuid);
        memory->bytes = taken_bytes(page, &page->devices[i]);
        add_gpu(record, gpu);
    }
}

/* ---- the job ---- */

bool away_find_lost(struct away_jobs *away, struct away_job *job)
{
    const struct node *node = away->node;
    struct preload_process *process = NULL;
    struct suspension_record record = {.attempt = 1, .is_carried = true, .are_clients = true};
    if (uv_now(node->parts.loop) < away->loaded_ms + FIND_MS)
        return false;
    while ((process = job_waits_next_process(node, job->job, process))) {
        struct group_process *found = suspension_record_process(&record, process->peer.pid);
        if (!found || found->born) /* a second connection of it */
            continue;
        found->born = process->peer.born;
        add_memory(node, &record, process->page);
        record.are_clients &= is_listed(node, group_process_id(found));
    }
    job->record = record;
    if (record.n_processes > 0 || node_step_of_job(node, job->job))
        return record.n_processes > 0;
    log_info("job %u, whose record is damaged, has ended while it was out", job->job);
    away_forget(away, job);
    return false;
}
