/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's host memory for copies of jobs' GPU memory (daemon/rooms/room_pool.h). Slurm counts
 * the memory of a job's cgroup, and has the kernel end the job beyond its limit. Pages that the
 * agent has made count for the agent's cgroup instead:
 *
 *     job with 6 GiB (--mem=8G), and 30 GiB on a GPU    out: 6 GiB for Slurm, 30 for the agent
 *
 * Only a process that is certainly of the job that it names has a room: any user could name one.
 */
#include "daemon/node/away_jobs.h"
#include "daemon/node/node_state.h"
#include "daemon/rooms/room_text.h"
#include "preload/page_orders.h"

void job_rooms_open(struct node *node)
{
    if (node->parts.config->preload && node->parts.config->memory_wait_us)
        node->rooms = room_pool_create(node->parts.loop, node->parts.config);
}

void job_rooms_close(struct node *node)
{
    room_pool_close(node->rooms);
}

void job_rooms_destroy(struct node *node)
{
    room_pool_destroy(node->rooms);
}

/* ---- polls ---- */

static void note_room(struct node *node, struct preload_process *process)
{
    struct reading numa_node = READING_NONE;
    double used = 0;
    for (size_t i = 0; i < node->n_gpus; i++) {
        const struct node_gpu *gpu = &node->gpus[i];
        for (size_t k = 0; k < gpu->n_processes; k++) {
            if (!process_id_is(
                    node_process_id(&gpu->processes[k]), preload_peer_id(&process->peer)))
                continue;
            used += reading_or(gpu->processes[k].memory_bytes, 0);
            numa_node = gpu->numa_node;
        }
    }
    room_pool_note(node->rooms, process, (uint64_t)used, numa_node);
}

void job_rooms_poll(struct node *node, int64_t out_bytes)
{
    struct preload_listener *listener = job_waits_listener(node);
    struct preload_process *process = NULL;
    int64_t left_bytes = away_jobs_max_bytes(node) - out_bytes;
    if (!node->rooms || !listener)
        return;
    room_pool_limit(node->rooms, left_bytes > 0 ? (uint64_t)left_bytes : 0);
    while ((process = preload_next_process(listener, process)))
        if (job_waits_is_certain(node, &process->peer))
            note_room(node, process);
    room_pool_review(node->rooms, listener);
}

/* Any process may say that it is of the job: one that is certainly of it has a room. */
size_t job_rooms_report(const struct node *node, struct node_job *jobs, size_t n, size_t max)
{
    struct preload_listener *listener = job_waits_listener(node);
    struct preload_process *process = NULL;
    struct room_of_task rooms;
    while (node->rooms && (process = preload_next_process(listener, process))) {
        bool has_rooms = room_pool_of_task(node->rooms, process->peer.task, &rooms) &&
                         rooms.bytes + rooms.missing_bytes > 0;
        struct node_job *entry = has_rooms ? node_job_entry(jobs, &n, max, process->peer.task)
                                           : NULL;
        if (entry) {
            entry->room_bytes = (int64_t)rooms.bytes;
            room_text_write(&rooms, entry->rooms, sizeof entry->rooms);
        }
    }
    return n;
}

/* ---- for a copy ---- */

/* Returns NULL when it has not come to this agent. */
static struct preload_process *find_process(
    const struct node *node, uint32_t job, struct process_id id)
{
    return preload_next_of_process(job_waits_listener(node), job, id, NULL);
}

/* What was handed over and not used is given back. */
static void use_own_memory(struct preload_process *process)
{
    if (atomic_load(&process->page->carry_place) != PRELOAD_PLACE_OWN)
        preload_give_room(process, PRELOAD_PLACE_OWN, 0, 0, -1);
    page_set_place(process->page, PRELOAD_PLACE_OWN);
}

uint64_t job_rooms_bytes(
    const struct node *node, uint32_t job, const struct suspension_record *record)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < record->n_processes && node->rooms && node->parts.config->carrier; i++) {
        const struct preload_process *process = find_process(
            node, job, group_process_id(&record->processes[i]));
        bytes += process ? room_pool_covers(node->rooms, process) : 0;
    }
    return bytes;
}

void job_rooms_lend(const struct node *node, uint32_t job, const struct suspension_record *record)
{
    for (size_t i = 0; i < record->n_processes; i++) {
        struct preload_process *process = find_process(
            node, job, group_process_id(&record->processes[i]));
        if (process && !(node->rooms && room_pool_lend(node->rooms, process)))
            use_own_memory(process);
    }
}
