/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes with the library connect, share their pages and end. At each poll of the GPUs all pages
 * are read: peaks (counted_peaks.c), speeds (task_steps.c, promised_speed.c), calls
 * (process_calls.c) and copies' host memory; then the threads that wait for memory are answered
 * (memory_waits.c). A probe is too short for these polls: while there is one, a timer has the steps
 * read.
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
#include "core/probe.h"

/* ---- polls ---- */

/* Its next copy is as large as what it holds, and lies best at its GPU's NUMA node. */
static void note_room(struct preload_manager *manager, struct preload_process *process)
{
    struct gpu_report report;
    struct reading node = READING_NONE;
    double used = 0;
    for (size_t i = 0; gpus_report(manager->parts.gpus, i, &report); i++) {
        const struct gpu_sample *sample = report.sample;
        for (size_t k = 0; sample->processes.valid && k < sample->processes.count; k++) {
            if (!process_id_is(
                    gpu_process_id(&sample->processes.item[k]), preload_peer_id(&process->peer)))
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
        counted_peaks_note_all(manager);
        task_steps_note_all(manager);
        promised_speed_note_all(manager);
    }
    while ((process = preload_next_process(manager->listener, process))) {
        process_calls_note(process);
        process_calls_wake(manager, process);
        carry_orders_heal(process, core_task(manager->parts.core, process->peer.task));
        note_room(manager, process);
    }
    room_pool_review(manager->rooms, manager->listener);
    memory_waits_poll(manager);
}

/* ---- probes ---- */

static void on_probe_timer(uv_timer_t *timer)
{
    struct preload_manager *manager = timer->data;
    task_steps_note_all(manager);
    if (!promised_speed_note_all(manager))
        uv_timer_stop(timer);
}

void preload_manager_note_pause(struct preload_manager *manager)
{
    const uint64_t period_ms = PROBE_PERIOD_US / MS_US;
    if (manager->listener && !uv_is_active((uv_handle_t *)&manager->probe_timer))
        uv_timer_start(&manager->probe_timer, on_probe_timer, period_ms, period_ms);
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
    counted_peaks_note_end(manager, process->peer.task);
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
    uv_timer_init(options->loop, &manager->probe_timer);
    manager->probe_timer.data = manager;
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
    if (manager && !uv_is_closing((uv_handle_t *)&manager->probe_timer))
        uv_close((uv_handle_t *)&manager->probe_timer, NULL);
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
