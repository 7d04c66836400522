/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact peak of a task's GPU memory. A process counts what it allocates, but not its context;
 * the driver's value has both, but only at a poll. At each poll the two are joined
 * (preload/exact_peak.h), and the sum over a task's processes raises the peak of its samples.
 */
#include <string.h>

#include "base/log.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/preload/preload_state.h"

static struct reading used_by(const struct preload_manager *manager, struct process_id id,
    const unsigned char *uuid, double *ret_total)
{
    struct gpu_report report;
    for (size_t i = 0; gpus_report(manager->parts.gpus, i, &report); i++) {
        const struct gpu_sample *sample = report.sample;
        if (!preload_uuid_is(report.info->uuid, uuid))
            continue;
        *ret_total = reading_or(report.info->mem_total_bytes, 0);
        for (size_t k = 0; sample->processes.valid && k < sample->processes.count; k++)
            if (process_id_is(gpu_process_id(&sample->processes.item[k]), id))
                return sample->processes.item[k].used_bytes;
    }
    return READING_NONE;
}

/* One GPU of a process: its memory at its peak; 0 where it has none; not valid when unknown.
 * Numbers in the page may change at any time: each is read once. */
static struct reading peak_on_device(
    const struct preload_manager *manager, struct preload_process *process, int i, bool is_poll)
{
    struct known_process *known = process->data;
    struct preload_device *device = &process->page->devices[i];
    uint64_t held = device->held_bytes, peak = device->peak_bytes;
    uint64_t pool_held = device->pool_held_bytes, pool_peak = device->pool_peak_bytes;
    uint64_t highest = device->window_peak_bytes;
    unsigned char uuid[16];
    double total = 0;
    if (peak == 0 && pool_peak == 0)
        return reading_of(0);
    memcpy(uuid, device->uuid, sizeof uuid);
    struct reading used = used_by(manager, preload_peer_id(&process->peer), uuid, &total);
    if (is_poll) {
        exact_peak_note(&known->peaks[i], held + pool_held, highest + pool_held, used);
        device->window_peak_bytes = held;
    }
    return exact_peak_bytes(&known->peaks[i], peak + pool_peak, total);
}

/* Its counted memory is then too low, and so would be a peak; the difference to the driver's value
 * is no longer that of its context. */
static bool is_incomplete(struct preload_manager *manager, struct preload_process *process)
{
    struct known_process *known = process->data;
    bool is_new = !known->is_incomplete && (process->page->flags & PRELOAD_INCOMPLETE);
    known->is_incomplete |= is_new;
    if (is_new && !manager->has_logged)
        log_info("task %llu: process %d has memory that could not be counted: its peak is that of "
                 "the samples",
            (unsigned long long)process->peer.task, (int)process->peer.pid);
    manager->has_logged |= is_new;
    return known->is_incomplete;
}

/* On all its GPUs together. */
static struct reading peak_of_process(
    struct preload_manager *manager, struct preload_process *process, bool is_poll)
{
    double sum = 0;
    bool known = process->data && !is_incomplete(manager, process);
    for (int i = 0; known && i < PRELOAD_DEVICES_MAX; i++) {
        struct reading one = peak_on_device(manager, process, i, is_poll);
        known &= one.valid;
        sum += one.value;
    }
    return known ? reading_of(sum) : READING_NONE;
}

/* Peaks of several processes at the same time are added: they may not have been at the same moment,
 * so the sum is an upper bound then. */
static void raise_peak(struct job *job, double sum)
{
    if (job && job->mem_peak_bytes.valid && sum > job->mem_peak_bytes.value)
        job->mem_peak_bytes = reading_of(sum);
}

void counted_peaks_note_end(struct preload_manager *manager, uint64_t task)
{
    struct preload_process *process = NULL;
    double sum = 0;
    while ((process = preload_next_of_task(manager->listener, task, process)))
        sum += reading_or(peak_of_process(manager, process, false), 0);
    raise_peak(jobs_find(manager->parts.jobs, task), sum);
}

/* In a time that grows with the number of processes, not with its square: users choose it. */
void counted_peaks_note_all(struct preload_manager *manager)
{
    struct preload_process *process = NULL;
    while ((process = preload_next_process(manager->listener, process))) {
        struct job *job = jobs_find(manager->parts.jobs, process->peer.task);
        if (job)
            job->counted_peak_bytes = 0;
    }
    while ((process = preload_next_process(manager->listener, process))) {
        struct job *job = jobs_find(manager->parts.jobs, process->peer.task);
        struct reading peak = peak_of_process(manager, process, true);
        if (job)
            job->counted_peak_bytes += reading_or(peak, 0);
        if (job)
            raise_peak(job, job->counted_peak_bytes);
    }
}
