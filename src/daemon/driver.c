/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events into the core, decisions into the log, and only then effects into the world; but a running
 * task is ended also while the log cannot be written (carry_out_kills).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/daemon.h"

#define RETRY_MS 1000

struct entry {
    struct entry *next;
    struct event event;
    int64_t wall_us;
    json_t *detail;
    json_t *record;           /* of an END: the task's last words, */
    struct store_ended ended; /* and what it came to */
    void *owned;              /* what the event points to */
};

int64_t daemon_now_us(struct daemon *daemon)
{
    int64_t now_us = clock_monotonic_us() + daemon->clock_offset_us;
    if (now_us > daemon->last_us)
        daemon->last_us = now_us;
    return daemon->last_us;
}

/* The difference is kept until it is another by a second: shown times do not tremble. */
int64_t daemon_wall_us(struct daemon *daemon, int64_t time_us)
{
    int64_t ahead_us = clock_wall_us() - (clock_monotonic_us() + daemon->clock_offset_us);
    if (llabs(ahead_us - daemon->wall_ahead_us) > SECOND_US)
        daemon->wall_ahead_us = ahead_us;
    return time_us + daemon->wall_ahead_us;
}

struct event daemon_event(struct daemon *daemon, enum event_kind kind, uint64_t task)
{
    return (struct event){.kind = kind, .time_us = daemon_now_us(daemon), .task = task};
}

static void entry_free(struct entry *entry)
{
    json_decref(entry->detail);
    json_decref(entry->record);
    free(entry->owned);
    free(entry);
}

static int own(struct entry *entry, const void *data, size_t size)
{
    entry->owned = malloc(size + 1);
    if (!entry->owned)
        return -ENOMEM;
    if (size) /* a list of no GPUs has no address */
        memcpy(entry->owned, data, size);
    return 0;
}

void daemon_die_of_memory(void)
{
    log_error("out of memory: going down; running tasks go on and are found again");
    abort();
}

static int sum_up(struct daemon *daemon, const struct task *task, struct entry *entry)
{
    entry->ended = (struct store_ended){
        .task = task->id,
        .uid = task->uid,
        .state = task->state,
        .submitted_wall_us = daemon_wall_us(daemon, task->submitted_us),
        .ended_wall_us = daemon_wall_us(daemon, task->ended_us),
        .wait_us = task->waited_us,
        .exec_us = task->executed_us,
        .jct_us = task->ended_us - task->submitted_us,
        .oom_count = task->oom_count,
    };
    entry->record = record_task(daemon, task);
    return entry->record ? 0 : -ENOMEM;
}

static void queue_entry(struct daemon *daemon, const struct event *event, const json_t *detail)
{
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        daemon_die_of_memory();
    entry->event = *event;
    entry->wall_us = clock_wall_us();
    entry->detail = json_incref((json_t *)(uintptr_t)detail);
    attempts_note(daemon, event);
    int r = 0;
    if (event->kind == EVENT_PLACE) {
        r = own(entry, event->place.gpus, (size_t)event->place.n * sizeof *event->place.gpus);
        entry->event.place.gpus = entry->owned;
    } else if (event->kind == EVENT_GPUS) {
        r = own(entry, event->gpus.list, (size_t)event->gpus.n * sizeof *event->gpus.list);
        entry->event.gpus.list = entry->owned;
    } else if (event->kind == EVENT_END) {
        r = sum_up(daemon, core_task(daemon->core, event->task), entry);
    }
    if (r < 0)
        daemon_die_of_memory();
    *(daemon->log_last ? &daemon->log_last->next : &daemon->log_first) = entry;
    daemon->log_last = entry;
}

static void queue_effect(struct daemon *daemon, const struct effect *effect)
{
    if (daemon->n_pending == daemon->pending_room) {
        int room = daemon->pending_room ? daemon->pending_room * 2 : 16;
        struct pending_effect *pending = realloc(daemon->pending, (size_t)room * sizeof *pending);
        if (!pending)
            daemon_die_of_memory();
        daemon->pending = pending;
        daemon->pending_room = room;
    }
    daemon->pending[daemon->n_pending++] = (struct pending_effect){effect->kind, effect->task};
}

static int write_entry(struct daemon *daemon, const struct entry *entry, struct fault *fault)
{
    int r = store_append(daemon->store, &entry->event, entry->wall_us, entry->detail, fault);
    if (r < 0 || !entry->record)
        return r;
    return store_put_ended(daemon->store, &entry->ended, entry->record, fault);
}

static int write_log(struct daemon *daemon, struct fault *fault)
{
    int r = store_begin(daemon->store, fault);
    if (r < 0)
        return r;
    for (const struct entry *entry = daemon->log_first; entry && r == 0; entry = entry->next)
        r = write_entry(daemon, entry, fault);
    if (r < 0) {
        store_rollback(daemon->store);
        return r;
    }
    return store_commit(daemon->store, fault);
}

/* The reserve is for what the log must not miss: ends, cancels and what they entail. */
static int write_log_or_use_reserve(struct daemon *daemon, struct fault *fault)
{
    int r = write_log(daemon, fault);
    if (r != -ENOSPC || !store_release_reserve(daemon->store))
        return r;
    daemon->reserve_in_use = true;
    log_error(
        "the disk of %s is full: collocd now uses its reserve to record ends and cancels, and "
        "accepts no tasks until there is space",
        daemon->config.state_dir);
    return write_log(daemon, fault);
}

/* The tasks that ended are history now. */
static void retire(struct daemon *daemon, const struct entry *entry)
{
    uint64_t id = entry->event.task;
    waiters_tell(daemon, id, entry->record);
    run_history_take(&daemon->run_history, entry->record);
    runner_clean(daemon, core_task(daemon->core, id));
    job_remove(daemon, job_find(daemon, id));
    core_forget(daemon->core, id);
    inputs_note_forgotten(daemon, id);
}

static bool flush_log(struct daemon *daemon)
{
    struct fault fault = {0};
    if (!daemon->log_first)
        return !daemon->log_broken;
    if (write_log_or_use_reserve(daemon, &fault) < 0) {
        if (!daemon->log_broken)
            log_error(
                "the event log cannot be written (%s): nothing new is accepted or started until it can",
                fault.text);
        daemon->log_broken = true;
        daemon_try_again(daemon);
        return false;
    }
    if (daemon->log_broken)
        log_info("the event log can be written again");
    daemon->log_broken = false;
    while (daemon->log_first) {
        struct entry *entry = daemon->log_first;
        daemon->log_first = entry->next;
        audit_event(daemon, &entry->event, entry->detail);
        if (entry->record)
            retire(daemon, entry);
        entry_free(entry);
    }
    daemon->log_last = NULL;
    return true;
}

static void schedule_tick(struct daemon *daemon);

static void carry_out(struct daemon *daemon, struct pending_effect effect)
{
    char why[1024];
    switch (effect.kind) {
    case EFFECT_START:
        runner_start(daemon, effect.task);
        break;
    case EFFECT_KILL:
        runner_kill(daemon, effect.task);
        break;
    case EFFECT_WAIT:
        log_debug("task %llu waits: %s", (unsigned long long)effect.task,
            core_explain(daemon->core, effect.task, daemon_now_us(daemon), why, sizeof why));
        break;
    case EFFECT_APPEND:
        break;
    }
}

/*
 * The one exception to "append, then act": a running task is ended though its CANCEL or EXPIRE is
 * not in the log yet. It is safe, because the shim's exit record says why the task ended: when this
 * daemon dies before the log can be written, the next one reads CANCELLED or TIMEOUT there. Nothing
 * else follows from the signal, so nothing is lost and nothing runs twice.
 */
static void carry_out_kills(struct daemon *daemon)
{
    int kept = 0;
    for (int i = 0; i < daemon->n_pending; i++) {
        struct pending_effect effect = daemon->pending[i];
        if (effect.kind == EFFECT_KILL)
            runner_kill(daemon, effect.task);
        else
            daemon->pending[kept++] = effect;
    }
    daemon->n_pending = kept;
}

/*
 * Makes durable and carries out, until nothing is left: starting a task feeds the next event, which
 * comes back here and is left to the loop that is under way.
 */
static void settle(struct daemon *daemon)
{
    if (daemon->carrying_out)
        return;
    daemon->carrying_out = true;
    while (flush_log(daemon) && daemon->n_pending) {
        struct pending_effect effect = daemon->pending[0];
        daemon->n_pending--;
        memmove(daemon->pending, daemon->pending + 1,
            (size_t)daemon->n_pending * sizeof *daemon->pending);
        carry_out(daemon, effect);
    }
    if (daemon->log_broken)
        carry_out_kills(daemon);
    daemon->carrying_out = false;
    schedule_tick(daemon);
}

static void on_retry(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    settle(daemon);
    if (!daemon->log_broken)
        runner_try_again(daemon);
}

void daemon_try_again(struct daemon *daemon)
{
    if (!daemon->stopping)
        uv_timer_start(&daemon->retry_timer, on_retry, RETRY_MS, 0);
}

static void on_tick(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    struct event tick = daemon_event(daemon, EVENT_TICK, 0);
    daemon_feed_logged(daemon, &tick);
}

static void schedule_tick(struct daemon *daemon)
{
    int64_t deadline_us = core_deadline_us(daemon->core);
    if (deadline_us == INT64_MAX || daemon->stopping) {
        uv_timer_stop(&daemon->tick_timer);
        return;
    }
    int64_t wait_us = deadline_us - daemon_now_us(daemon);
    uv_timer_start(
        &daemon->tick_timer, on_tick, wait_us > 0 ? (uint64_t)(wait_us / MS_US) + 1 : 0, 0);
}

static int feed(struct daemon *daemon, const struct event *event, const json_t *detail, bool write)
{
    int r = core_step(daemon->core, event);
    if (r == -ENOMEM)
        daemon_die_of_memory();
    inputs_note_step(daemon, event, r);
    if (r != 0)
        return r;
    if (write)
        queue_entry(daemon, event, detail);
    int n;
    const struct effect *effects = core_effects(daemon->core, &n);
    for (int i = 0; i < n; i++) {
        if (effects[i].kind == EFFECT_APPEND)
            queue_entry(daemon, &effects[i].event, NULL);
        else
            queue_effect(daemon, &effects[i]);
    }
    settle(daemon);
    return 0;
}

int daemon_feed(struct daemon *daemon, const struct event *event, const json_t *detail)
{
    bool write = event->kind != EVENT_SAMPLE && event->kind != EVENT_TICK;
    return feed(daemon, event, detail, write);
}

int daemon_feed_logged(struct daemon *daemon, const struct event *event)
{
    return feed(daemon, event, NULL, false);
}

void daemon_drop_log(struct daemon *daemon)
{
    while (daemon->log_first) {
        struct entry *entry = daemon->log_first;
        log_warning("not written to the log: %s of task %llu", event_name(entry->event.kind),
            (unsigned long long)entry->event.task);
        daemon->log_first = entry->next;
        entry_free(entry);
    }
    free(daemon->pending);
}
