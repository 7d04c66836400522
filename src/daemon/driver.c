/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events into the core, decisions into the log, and only then effects into the world.
 *
 * One call of driver_feed has these steps:
 *
 *     1. core_step applies the event and leaves effects.
 *     2. The event and each decision (EFFECT_APPEND) get an entry at the end of the queue.
 *     3. The queue is written in one transaction. If that fails, everything stays as it is, and the
 *        retry timer tries again in a second.
 *     4. Each entry that is durable goes to the hook `recorded`. A task whose END is durable goes
 *        to the hook `ended`, and the core forgets it.
 *     5. Effects are carried out by their hooks, starts after all others. A hook may feed the next
 *        event (STARTED): that call does steps 1 and 2, and the running loop does the rest.
 *     6. A start takes milliseconds: a folder is written and a process spawned. Once SLICE_US are
 *        over, the remaining starts wait for the next turn of the event loop, so that requests are
 *        answered between them. 1,000 tasks may start at once on a machine with many GPUs.
 *
 * The exceptions to that order: while the log cannot be written, a running task is killed all the
 * same (carry_out_kills), and so is done what was put off after it had been recorded
 * (driver_queue_start): otherwise tasks that have ended would count as running.
 */
#include "daemon/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/effect_queue.h"

#define RETRY_MS 1000        /* chosen: a full disk is cleared by people, not faster */
#define SLICE_US (5 * MS_US) /* chosen: no request notices it; a start takes 2 to 20 ms */

/* An event on its way to the log. */
struct entry {
    struct entry *next;
    struct event event; /* a copy */
    int64_t wall_us;
    json_t *detail;
    json_t *record;           /* of an END: the task's record, */
    struct store_ended ended; /* and its sums */
};

struct driver {
    uv_loop_t *loop;
    struct core *core;
    struct store *store;
    const char *state_dir;
    struct driver_hooks hooks;

    int64_t clock_offset_us; /* core time = time since boot + this (daemon/time_base.h) */
    int64_t wall_ahead_us;   /* wall time = core time + this, for people */
    int64_t last_us;

    struct entry *log_first, *log_last; /* decided, not durable yet */
    bool log_broken;                    /* the last write failed */
    bool reserve_in_use;
    struct effect_queue pending, starts; /* carried out once the log is durable */
    struct effect_queue put_off;         /* of driver_queue_start */
    bool carrying_out;
    bool is_batch;

    uv_timer_t *retry_timer, *tick_timer;
    uv_idle_t *start_turn; /* active: starts wait for it */
    bool is_closed;
};

/* ---- life ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    free(handle);
}

static uv_timer_t *make_timer(struct driver *driver)
{
    uv_timer_t *timer = calloc(1, sizeof *timer);
    if (!timer)
        driver_die_of_memory();
    uv_timer_init(driver->loop, timer);
    timer->data = driver;
    return timer;
}

static uv_idle_t *make_turn(struct driver *driver)
{
    uv_idle_t *turn = calloc(1, sizeof *turn);
    if (!turn)
        driver_die_of_memory();
    uv_idle_init(driver->loop, turn);
    turn->data = driver;
    return turn;
}

struct driver *driver_create(const struct driver_options *options)
{
    struct driver *driver = calloc(1, sizeof *driver);
    if (!driver)
        return NULL;
    *driver = (struct driver){
        .loop = options->loop,
        .core = options->core,
        .store = options->store,
        .state_dir = options->state_dir,
        .hooks = options->hooks,
        .clock_offset_us = options->clock_offset_us,
        .last_us = options->last_us,
    };
    driver->retry_timer = make_timer(driver);
    driver->tick_timer = make_timer(driver);
    driver->start_turn = make_turn(driver);
    return driver;
}

void driver_close(struct driver *driver)
{
    if (!driver || driver->is_closed)
        return;
    driver->is_closed = true;
    uv_close((uv_handle_t *)driver->retry_timer, on_handle_closed);
    uv_close((uv_handle_t *)driver->tick_timer, on_handle_closed);
    uv_close((uv_handle_t *)driver->start_turn, on_handle_closed);
}

static void entry_free(struct entry *entry)
{
    json_decref(entry->detail);
    json_decref(entry->record);
    event_release(&entry->event);
    free(entry);
}

void driver_destroy(struct driver *driver)
{
    if (!driver)
        return;
    while (driver->log_first) {
        struct entry *entry = driver->log_first;
        log_warning("not written to the log: %s of task %llu", event_name(entry->event.kind),
            (unsigned long long)entry->event.task);
        driver->log_first = entry->next;
        entry_free(entry);
    }
    effect_queue_fini(&driver->pending);
    effect_queue_fini(&driver->starts);
    effect_queue_fini(&driver->put_off);
    free(driver);
}

bool driver_log_is_broken(const struct driver *driver)
{
    return driver->log_broken;
}

bool driver_reserve_is_in_use(const struct driver *driver)
{
    return driver->reserve_in_use;
}

void driver_set_reserve_in_use(struct driver *driver, bool in_use)
{
    driver->reserve_in_use = in_use;
}

/* ---- time ---- */

int64_t driver_now_us(struct driver *driver)
{
    int64_t now_us = clock_monotonic_us() + driver->clock_offset_us;
    if (now_us > driver->last_us)
        driver->last_us = now_us;
    return driver->last_us;
}

int64_t driver_monotonic_us(const struct driver *driver, int64_t time_us)
{
    return time_us - driver->clock_offset_us;
}

/* The difference changes only when it is off by more than a second: shown times stay steady. */
int64_t driver_wall_us(struct driver *driver, int64_t time_us)
{
    int64_t ahead_us = clock_wall_us() - (clock_monotonic_us() + driver->clock_offset_us);
    if (llabs(ahead_us - driver->wall_ahead_us) > SECOND_US)
        driver->wall_ahead_us = ahead_us;
    return time_us + driver->wall_ahead_us;
}

struct event driver_event(struct driver *driver, enum event_kind kind, uint64_t task)
{
    return (struct event){.kind = kind, .time_us = driver_now_us(driver), .task = task};
}

/* ---- into the log ---- */

void driver_die_of_memory(void)
{
    log_error("out of memory: going down; running tasks go on and are found again");
    abort();
}

static int sum_up(struct driver *driver, const struct task *task, struct entry *entry)
{
    entry->ended = (struct store_ended){
        .task = task->id,
        .uid = task->uid,
        .state = task->state,
        .submitted_wall_us = driver_wall_us(driver, task->submitted_us),
        .ended_wall_us = driver_wall_us(driver, task->ended_us),
        .wait_us = task->waited_us,
        .exec_us = task->executed_us,
        .jct_us = task->ended_us - task->submitted_us,
        .oom_count = task->oom_count,
    };
    entry->record = driver->hooks.record_end(driver->hooks.context, task);
    return entry->record ? 0 : -ENOMEM;
}

static void queue_entry(struct driver *driver, const struct event *event, const json_t *detail)
{
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        driver_die_of_memory();
    if (event_copy(event, &entry->event) < 0)
        driver_die_of_memory();
    entry->wall_us = clock_wall_us();
    entry->detail = json_incref((json_t *)(uintptr_t)detail);
    driver->hooks.decided(driver->hooks.context, event, detail);
    if (event->kind == EVENT_END && sum_up(driver, core_task(driver->core, event->task), entry) < 0)
        driver_die_of_memory();
    *(driver->log_last ? &driver->log_last->next : &driver->log_first) = entry;
    driver->log_last = entry;
}

static void add_effect(struct effect_queue *queue, enum effect_kind kind, uint64_t task)
{
    if (effect_queue_add(queue, (struct pending_effect){kind, task}) < 0)
        driver_die_of_memory();
}

static void queue_effect(struct driver *driver, const struct effect *effect)
{
    add_effect(effect->kind == EFFECT_START ? &driver->starts : &driver->pending, effect->kind,
        effect->task);
}

static int write_entry(struct driver *driver, const struct entry *entry, struct fault *fault)
{
    int r = store_append(driver->store, &entry->event, entry->wall_us, entry->detail, fault);
    if (r < 0 || !entry->record)
        return r;
    return store_put_ended(driver->store, &entry->ended, entry->record, fault);
}

static int write_log(struct driver *driver, struct fault *fault)
{
    int r = store_begin(driver->store, fault);
    if (r < 0)
        return r;
    for (const struct entry *entry = driver->log_first; entry && r == 0; entry = entry->next)
        r = write_entry(driver, entry, fault);
    if (r < 0) {
        store_rollback(driver->store);
        return r;
    }
    return store_commit(driver->store, fault);
}

/* The reserve is for what the log must record: ends, cancels and what follows from them. */
static int write_log_or_use_reserve(struct driver *driver, struct fault *fault)
{
    int r = write_log(driver, fault);
    if (r != -ENOSPC || !store_release_reserve(driver->store))
        return r;
    driver->reserve_in_use = true;
    log_error(
        "the disk of %s is full: collocd now uses its reserve to record ends and cancels, and "
        "accepts no tasks until there is space",
        driver->state_dir);
    return write_log(driver, fault);
}

/* What is written leaves the queue before its hooks are called: those may feed further events,
 * which are not written yet. */
static void report_written(struct driver *driver)
{
    struct entry *written = driver->log_first;
    driver->log_first = driver->log_last = NULL;
    while (written) {
        struct entry *entry = written;
        written = entry->next;
        driver->hooks.recorded(driver->hooks.context, &entry->event, entry->detail);
        if (entry->record) {
            driver->hooks.ended(driver->hooks.context, entry->event.task, entry->record);
            core_forget(driver->core, entry->event.task);
        }
        entry_free(entry);
    }
}

/* Writes the queue, which may have new entries afterwards. Returns false when it cannot. */
static bool flush_log(struct driver *driver)
{
    struct fault fault = {0};
    if (!driver->log_first)
        return !driver->log_broken;
    if (write_log_or_use_reserve(driver, &fault) < 0) {
        if (!driver->log_broken)
            log_error(
                "the event log cannot be written (%s): nothing new is accepted or started until it can",
                fault.text);
        driver->log_broken = true;
        driver_try_again(driver);
        return false;
    }
    if (driver->log_broken)
        log_info("the event log can be written again");
    driver->log_broken = false;
    report_written(driver);
    return true;
}

static void schedule_tick(struct driver *driver);

static void carry_out(struct driver *driver, struct pending_effect effect)
{
    char why[1024];
    switch (effect.kind) {
    case EFFECT_START:
        driver->hooks.start(driver->hooks.context, effect.task);
        break;
    case EFFECT_KILL:
        driver->hooks.kill(driver->hooks.context, effect.task);
        break;
    case EFFECT_WAIT:
        log_debug("task %llu waits: %s", (unsigned long long)effect.task,
            core_explain(driver->core, effect.task, driver_now_us(driver), why, sizeof why));
        break;
    case EFFECT_APPEND:
        break;
    case EFFECT_SUSPEND:
        driver->hooks.suspend(driver->hooks.context, effect.task);
        break;
    case EFFECT_RESUME:
        driver->hooks.resume(driver->hooks.context, effect.task);
        break;
    case EFFECT_MOVE:
        driver->hooks.move(driver->hooks.context, effect.task);
        break;
    case EFFECT_RELOCATE:
        driver->hooks.relocate(driver->hooks.context, effect.task);
        break;
    case EFFECT_PAUSE:
        driver->hooks.pause(driver->hooks.context, effect.task);
        break;
    case EFFECT_CONTINUE:
        driver->hooks.unpause(driver->hooks.context, effect.task);
        break;
    case EFFECT_GRANT_MEMORY:
    case EFFECT_DENY_MEMORY:
        driver->hooks.answer_memory(
            driver->hooks.context, effect.task, effect.kind == EFFECT_GRANT_MEMORY);
        break;
    }
}

/*
 * The one exception to "append, then act": a running task is ended though its CANCEL or EXPIRE is
 * not in the log yet. It is safe, because the shim's exit record says why the task ended: when this
 * daemon dies before the log can be written, the next one reads CANCELLED or TIMEOUT there. Nothing
 * else follows from the signal, so nothing is lost and nothing runs twice.
 */
static void carry_out_kills(struct driver *driver)
{
    struct pending_effect kill;
    while (effect_queue_take_kind(&driver->pending, EFFECT_KILL, &kill))
        driver->hooks.kill(driver->hooks.context, kill.task);
}

/* Carries out the next start of the queue, if it is its turn: `*until_us` is 0 until the first one
 * of a slice, then the end of the slice. */
static bool start_next(struct driver *driver, struct effect_queue *queue, int64_t *until_us)
{
    int64_t now_us = clock_monotonic_us();
    if (effect_queue_is_empty(queue) || uv_is_active((uv_handle_t *)driver->start_turn) ||
        (*until_us && now_us >= *until_us))
        return false;
    if (!*until_us)
        *until_us = now_us + SLICE_US;
    carry_out(driver, effect_queue_take(queue));
    return true;
}

/* Writes the queue, or carries out one effect. Returns false when nothing is left to do now. */
static bool write_and_carry_out_next(struct driver *driver, int64_t *until_us)
{
    bool is_durable = flush_log(driver);
    if (is_durable && driver->log_first)
        return true;
    if (is_durable && !effect_queue_is_empty(&driver->pending)) {
        carry_out(driver, effect_queue_take(&driver->pending));
        return true;
    }
    return start_next(driver, &driver->put_off, until_us) ||
           (is_durable && start_next(driver, &driver->starts, until_us));
}

static void on_start_turn(uv_idle_t *turn);

/*
 * Writes the queue and carries out effects until nothing is left, or the time for starts is over.
 * Carrying one out may feed the next event and so call this again: that call returns at once, and
 * the loop under way does the rest.
 */
static void write_and_carry_out(struct driver *driver)
{
    if (driver->carrying_out || driver->is_batch)
        return;
    driver->carrying_out = true;
    int64_t until_us = 0;
    while (write_and_carry_out_next(driver, &until_us))
        ;
    if (driver->log_broken)
        carry_out_kills(driver);
    bool starts_wait = !effect_queue_is_empty(&driver->put_off) ||
                       (!effect_queue_is_empty(&driver->starts) && !driver->log_broken);
    if (starts_wait && !driver->is_closed)
        uv_idle_start(driver->start_turn, on_start_turn);
    driver->carrying_out = false;
    schedule_tick(driver);
}

static void on_start_turn(uv_idle_t *turn)
{
    uv_idle_stop(turn);
    write_and_carry_out(turn->data);
}

void driver_queue_start(struct driver *driver, uint64_t task)
{
    if (effect_queue_has(&driver->starts, task) || effect_queue_has(&driver->put_off, task))
        return;
    add_effect(&driver->put_off, EFFECT_START, task);
    if (!driver->is_closed)
        uv_idle_start(driver->start_turn, on_start_turn);
}

static void on_retry(uv_timer_t *timer)
{
    struct driver *driver = timer->data;
    write_and_carry_out(driver);
    if (!driver->log_broken)
        driver->hooks.retry(driver->hooks.context);
}

void driver_try_again(struct driver *driver)
{
    if (!driver->is_closed)
        uv_timer_start(driver->retry_timer, on_retry, RETRY_MS, 0);
}

static void on_tick(uv_timer_t *timer)
{
    struct driver *driver = timer->data;
    struct event tick = driver_event(driver, EVENT_TICK, 0);
    driver_feed_logged(driver, &tick);
}

/* Not by a timer of 0 ms: a timer that restarts itself blocks everything else. */
static void schedule_tick(struct driver *driver)
{
    int64_t deadline_us = core_deadline_us(driver->core);
    if (driver->is_closed)
        return;
    if (deadline_us == TIME_NEVER) {
        uv_timer_stop(driver->tick_timer);
        return;
    }
    int64_t wait_us = deadline_us - driver_now_us(driver);
    uv_timer_start(
        driver->tick_timer, on_tick, wait_us > 0 ? (uint64_t)(wait_us / MS_US) + 1 : 1, 0);
}

static int feed_core(
    struct driver *driver, const struct event *event, const json_t *detail, bool write)
{
    int r = core_step(driver->core, event);
    if (r == -ENOMEM)
        driver_die_of_memory();
    driver->hooks.stepped(driver->hooks.context, event, r);
    if (r != 0)
        return r;
    if (write)
        queue_entry(driver, event, detail);
    int n;
    const struct effect *effects = core_effects(driver->core, &n);
    for (int i = 0; i < n; i++) {
        if (effects[i].kind == EFFECT_APPEND)
            queue_entry(driver, &effects[i].event, NULL);
        else
            queue_effect(driver, &effects[i]);
    }
    write_and_carry_out(driver);
    return 0;
}

void driver_begin_batch(struct driver *driver)
{
    driver->is_batch = true;
}

void driver_end_batch(struct driver *driver)
{
    driver->is_batch = false;
    write_and_carry_out(driver);
}

int driver_feed(struct driver *driver, const struct event *event, const json_t *detail)
{
    bool write = event->kind != EVENT_SAMPLE && event->kind != EVENT_LATENCY &&
                 event->kind != EVENT_SPEED && event->kind != EVENT_TICK;
    return feed_core(driver, event, detail, write);
}

int driver_feed_logged(struct driver *driver, const struct event *event)
{
    return feed_core(driver, event, NULL, false);
}
