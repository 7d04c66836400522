/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes with the library connect, share their pages and end. At each poll of the GPUs each
 * process's counted peak is joined with the driver's value for it (preload/exact_peak.h); then the
 * threads that wait for memory are answered (memory_waits.c).
 */
#include "daemon/preload/preload_manager.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/preload/preload_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* ---- exact peaks ---- */

static struct reading used_by(
    const struct preload_manager *manager, pid_t pid, const unsigned char *uuid, double *ret_total)
{
    struct gpu_report report;
    for (size_t i = 0; gpus_report(manager->parts.gpus, i, &report); i++) {
        const struct gpu_sample *sample = report.sample;
        if (!preload_uuid_is(report.info->uuid, uuid))
            continue;
        *ret_total = reading_or(report.info->mem_total_bytes, 0);
        for (size_t k = 0; sample->processes.valid && k < sample->processes.count; k++)
            if (sample->processes.item[k].pid == pid)
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
    struct reading used = used_by(manager, process->peer.pid, uuid, &total);
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

/* Of one task, one of whose processes ends. */
static void note_peak(struct preload_manager *manager, uint64_t task)
{
    struct preload_process *process = NULL;
    double sum = 0;
    while ((process = preload_next_process(manager->listener, process)))
        if (process->peer.task == task)
            sum += reading_or(peak_of_process(manager, process, false), 0);
    raise_peak(jobs_find(manager->parts.jobs, task), sum);
}

/* In a time that grows with the number of processes, not with its square: users choose it. */
static void note_peaks(struct preload_manager *manager)
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

/* ---- calls ---- */

static void note_calls(struct preload_process *process)
{
    struct known_process *known = process->data;
    struct preload_page *page = process->page;
    bool is_calling = atomic_load(&page->in_flight) || atomic_load(&page->at_gate) ||
                      atomic_load(&page->waiting);
    if (!known || !(atomic_load(&page->flags) & PRELOAD_COUNTS_CALLS))
        return;
    if (atomic_exchange(&page->called, 0) || is_calling)
        known->called_us = clock_monotonic_us();
}

/* A task that was suspended because it did not use its GPUs is resumed when it calls CUDA. */
static void wake_if_unused(struct preload_manager *manager, const struct preload_process *process)
{
    const struct task *task = core_task(manager->parts.core, process->peer.task);
    struct event event = driver_event(manager->parts.driver, EVENT_WAKE, process->peer.task);
    if (task && task->run->yield.is_unused && atomic_load(&process->page->at_gate))
        driver_feed(manager->parts.driver, &event, NULL);
}

bool preload_manager_counts_collectives(struct preload_manager *manager, uint64_t task, pid_t pid)
{
    uint32_t flags = preload_manager_flags(manager, task, pid);
    return (flags & PRELOAD_SEES_COLLECTIVES) && !(flags & PRELOAD_OTHER_COLLECTIVES);
}

struct reading preload_manager_calls_idle_us(
    struct preload_manager *manager, uint64_t task, pid_t pid)
{
    struct preload_process *process = NULL;
    while (manager->listener && (process = preload_next_process(manager->listener, process))) {
        const struct known_process *known = process->data;
        if (process->peer.task == task && process->peer.pid == pid && known && known->called_us)
            return reading_of((double)(clock_monotonic_us() - known->called_us));
    }
    return READING_NONE;
}

/* ---- host memory for copies ---- */

static void note_room(struct preload_manager *manager, struct preload_process *process)
{
    struct gpu_report report;
    struct reading node = READING_NONE;
    double used = 0;
    for (size_t i = 0; gpus_report(manager->parts.gpus, i, &report); i++) {
        const struct gpu_sample *sample = report.sample;
        for (size_t k = 0; sample->processes.valid && k < sample->processes.count; k++) {
            if (sample->processes.item[k].pid != process->peer.pid)
                continue;
            used += reading_or(sample->processes.item[k].used_bytes, 0);
            node = report.info->numa_node;
        }
    }
    room_pool_note(manager->rooms, process, (uint64_t)used, node);
}

void preload_manager_polled(struct preload_manager *manager)
{
    struct preload_process *process = NULL;
    if (manager->listener) {
        note_peaks(manager);
        task_steps_note_all(manager);
        promised_speed_note_all(manager);
    }
    while (manager->listener && (process = preload_next_process(manager->listener, process))) {
        note_calls(process);
        wake_if_unused(manager, process);
        carry_orders_heal(process, core_task(manager->parts.core, process->peer.task));
        note_room(manager, process);
    }
    room_pool_review(manager->rooms, manager->listener);
    memory_waits_poll(manager);
}

/* ---- the gate ---- */

enum preload_gate_answer preload_manager_set_gate(
    struct preload_manager *manager, uint64_t task, pid_t pid, bool is_closed)
{
    enum preload_gate_answer answer = manager->listener ? PRELOAD_GATE_AWAY : PRELOAD_GATE_NONE;
    struct preload_process *process = NULL;
    while (manager->listener && (process = preload_next_process(manager->listener, process))) {
        if (process->peer.task != task || (pid && process->peer.pid != pid))
            continue;
        page_set_gate(process->page, is_closed);
        answer = atomic_load(&process->page->in_flight) ? PRELOAD_GATE_BUSY : PRELOAD_GATE_CLEAR;
    }
    return answer;
}

bool preload_manager_knows(const struct preload_manager *manager, uint64_t task, pid_t pid)
{
    struct preload_process *process = NULL;
    while (manager->listener && (process = preload_next_process(manager->listener, process)))
        if (process->peer.task == task && process->peer.pid == pid)
            return true;
    return false;
}

bool preload_manager_has_no_ranks(struct preload_manager *manager, uint64_t task, pid_t pid)
{
    struct preload_process *process = NULL;
    while (manager->listener && (process = preload_next_process(manager->listener, process)))
        if (process->peer.task == task && process->peer.pid == pid)
            return !page_is_in_communicator(process->page);
    return false;
}

uint32_t preload_manager_flags(struct preload_manager *manager, uint64_t task, pid_t pid)
{
    uint32_t flags = 0;
    struct preload_process *process = NULL;
    while (manager->listener && (process = preload_next_process(manager->listener, process)))
        if (process->peer.task == task && process->peer.pid == pid)
            flags |= atomic_load(&process->page->flags);
    return flags;
}

/* ---- the listener's hooks ---- */

static bool on_admits(void *context, const struct preload_peer *peer)
{
    struct preload_manager *manager = context;
    const struct task *task = core_task(manager->parts.core, peer->task);
    return task && task->uid == peer->uid && (uint32_t)task->attempts == peer->attempt;
}

/* Without memory for it, its peaks stay those of the samples. */
static void on_begins(void *context, struct preload_process *process)
{
    struct preload_manager *manager = context;
    const struct task *task = core_task(manager->parts.core, process->peer.task);
    process->data = calloc(1, sizeof(struct known_process));
    room_pool_connected(manager->rooms, process);
    bool is_off = task && (task_state_is_changing(task->state) || task->state == TASK_SUSPENDED);
    page_set_gate(process->page, is_off); /* a thread at the gate of an earlier daemon, perhaps */
    if (manager->parts.config->memory_cap && task && task->run->share.sharing != SHARING_MPS &&
        task->request.need.kind >= NEED_ESTIMATED && !task->exclusive)
        process->page->cap_bytes = (uint64_t)(task->request.need.bytes +
                                              manager->parts.config->core.conditions.margin_bytes);
}

static void on_ends(void *context, struct preload_process *process)
{
    struct preload_manager *manager = context;
    note_peak(manager, process->peer.task);
    task_steps_note_end(manager, process);
    free(process->data);
    process->data = NULL;
}

static void on_waits(void *context, struct preload_waiter *waiter)
{
    memory_waits_add(context, waiter);
}

static void on_stops_waiting(void *context, struct preload_waiter *waiter)
{
    memory_waits_remove(context, waiter);
}

#define REFUSAL_PAUSE_MS (10 * 60 * 1000) /* between two lines about refused connections; chosen */

static void on_refuses(void *context, uid_t uid, int count)
{
    struct preload_manager *manager = context;
    uint64_t now_ms = uv_now(manager->parts.loop);
    if (manager->refusal_logged_ms && now_ms - manager->refusal_logged_ms < REFUSAL_PAUSE_MS)
        return;
    manager->refusal_logged_ms = now_ms;
    log_warning("user %u has %d connections of the preloaded library and gets no more: further "
                "processes of its tasks run without it (docs/preload.md)",
        (unsigned)uid, count);
}

/* ---- life ---- */

struct preload_manager *preload_manager_create(const struct preload_manager_options *options)
{
    struct preload_manager *manager = calloc(1, sizeof *manager);
    if (!manager)
        return NULL;
    manager->parts = *options;
    manager->rooms = room_pool_create(options->loop, options->config);
    if (!manager->rooms) {
        free(manager);
        return NULL;
    }
    return manager;
}

void preload_manager_open(struct preload_manager *manager)
{
    const struct config *config = manager->parts.config;
    const struct preload_hooks hooks = {
        manager, on_admits, on_begins, on_ends, on_waits, on_stops_waiting, on_refuses};
    struct fault fault = {0};
    manager->opened_ms = uv_now(manager->parts.loop);
    if (access(config->preload_library, R_OK) < 0) {
        log_warning("tasks run without the preloaded library: %s: %s", config->preload_library,
            strerror(errno));
        return;
    }
    snprintf(manager->socket, sizeof manager->socket, "%s.preload", config->socket_path);
    if (preload_listener_create(manager->parts.loop, manager->socket,
            preload_connections_for_limit(), &hooks, &fault, &manager->listener) < 0)
        log_warning("tasks run without the preloaded library: %s", fault.text);
}

void preload_manager_close(struct preload_manager *manager)
{
    struct preload_process *process = NULL;
    if (manager)
        room_pool_close(manager->rooms);
    if (!manager || !manager->listener)
        return;
    while ((process = preload_next_process(manager->listener, process))) {
        free(process->data);
        process->data = NULL;
    }
    preload_listener_close(manager->listener);
}

void preload_manager_destroy(struct preload_manager *manager)
{
    if (!manager)
        return;
    preload_listener_destroy(manager->listener);
    room_pool_destroy(manager->rooms);
    free(manager);
}

const char *preload_manager_socket(const struct preload_manager *manager)
{
    return manager->listener ? manager->socket : NULL;
}
