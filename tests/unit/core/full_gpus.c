/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world behind the core: programs, GPUs, and the orders of the core. Memory is where `struct
 * program` says:
 *
 *     blocks on the GPU or away, by the carrier; context on the GPU or away, by the driver
 *
 * An order goes through phases, each of which takes time and then has its effect:
 *
 *     suspend    GATE, OUT (blocks), REST (context, unless it stays)
 *     resume     RESTORE (context, if it is away), BACK (blocks)
 *     move       both
 *     relocate   REST
 *
 * What fails on the way is answered as the daemon answers it.
 */
#include "full_gpus.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "policy/policies.h"
#include "preload/wait_rule.h"
#include "pretend_gpus.h"

#define STEP_US (100 * MS_US)
/* A GPU stands still that has tasks, none of which has computed, left or come for so long. More
 * than twice the 40 s after which a task that does not leave is not waited for. */
#define STILL_MAX_US (100 * SECOND_US)
#define RETRY_US     (5 * SECOND_US)
enum { RETRIES_MAX = 180, INBOX_MAX = 256, ORDERS_MAX = 64 };

struct program {
    bool is_alive, is_started, is_killed, has_ended; /* has_ended: with its work done */
    int attempt, gpu, next_piece;
    int64_t done_us, starts_us;
    int64_t blocks, context;
    bool blocks_away, context_away, context_stays;
    bool waits, is_reported, is_granted, is_denied;
    int retries;
    int64_t wait_us;
    bool is_gated;
};

enum order_kind { SUSPEND, RESUME, MOVE, RELOCATE };
enum phase { BEGIN, GATE, HUNG, OUT, REST, AFTER_FAILURE, RESTORE, RESTORED, BACK, LEAVES_AGAIN };

struct order {
    uint64_t task;
    enum order_kind kind;
    enum phase phase;
    bool is_under_way, is_urgent;
    int64_t begun_us, due_us, retry_us;
    int retries;
};

struct world {
    const struct crowd *crowd;
    FILE *log;
    uint64_t random;
    struct core *core;
    int64_t now_us;
    struct gpu_identity gpus[CROWD_GPUS_MAX];
    struct {
        int64_t external, external_until_us, progress_us;
        int n_computing;
    } state[CROWD_GPUS_MAX];
    struct program programs[CROWD_TASKS_MAX + 1];
    struct order orders[ORDERS_MAX];
    int n_orders;
    struct event inbox[INBOX_MAX];
    int n_inbox;
    bool is_draining;
    struct event *past;
    size_t n_past, past_capacity;
    struct crowd_result result;
};

static uint64_t draw(struct world *world, uint64_t below)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return (world->random >> 11) % below;
}

static bool happens(struct world *world, int per_thousand)
{
    return draw(world, 1000) < (uint64_t)per_thousand;
}

/* An event that comes so often in a minute, in thousandths. */
static bool comes(struct world *world, int per_thousand_minutes)
{
    return draw(world, 600 * 1000) < (uint64_t)per_thousand_minutes;
}

static void note(struct world *world, uint64_t task, const char *text, int64_t bytes)
{
    if (world->log)
        fprintf(world->log, "%8.1f task %2" PRIu64 " %s %.2f GiB\n", (double)world->now_us / 1e6,
            task, text, (double)bytes / (double)GIB);
}

/* ---- memory ---- */

static int64_t held_bytes(const struct program *program)
{
    if (!program->is_alive)
        return 0;
    return (program->blocks_away ? 0 : program->blocks) +
           (program->context_away ? 0 : program->context);
}

static int64_t used_bytes(const struct world *world, int gpu)
{
    int64_t bytes = world->state[gpu].external;
    for (int i = 1; i <= world->crowd->n_tasks; i++)
        if (world->programs[i].gpu == gpu)
            bytes += held_bytes(&world->programs[i]);
    return bytes;
}

/* As NVML reports it. */
static int64_t seen_free_bytes(const struct world *world, int gpu)
{
    return world->crowd->gpu_bytes - used_bytes(world, gpu);
}

/* What an allocation can have. */
static int64_t free_bytes(const struct world *world, int gpu)
{
    return seen_free_bytes(world, gpu) - world->crowd->hidden_bytes;
}

/* ---- the core ---- */

static bool is_logged(enum event_kind kind)
{
    return kind != EVENT_SAMPLE && kind != EVENT_TICK;
}

static void keep(struct world *world, const struct event *event)
{
    if (world->n_past == world->past_capacity) {
        world->past_capacity = world->past_capacity * 2 + 256;
        world->past = realloc(world->past, world->past_capacity * sizeof *world->past);
        assert_non_null(world->past);
    }
    assert_int_equal(event_copy(event, &world->past[world->n_past++]), 0);
}

static void log_event(struct world *world, const struct event *event)
{
    if (world->log && is_logged(event->kind))
        fprintf(world->log, "%8.1f task %2" PRIu64 " %s %s\n", (double)world->now_us / 1e6,
            event->task, event_name(event->kind),
            event->kind == EVENT_SUSPENSION_FAILED
                ? suspension_failure_name(event->suspension_failed.why)
            : event->kind == EVENT_EXITED ? failure_name(event->exited.failure)
            : event->kind == EVENT_END    ? task_state_word(event->end)
                                          : "");
}

static void add_order(struct world *world, uint64_t task, enum order_kind kind)
{
    for (int i = 0; i < world->n_orders; i++)
        if (world->orders[i].task == task && world->orders[i].kind == kind)
            return;
    enum yield_reason reason = core_task(world->core, task)->run->yield.reason;
    assert_true(world->n_orders < ORDERS_MAX);
    world->orders[world->n_orders++] = (struct order){.task = task,
        .kind = kind,
        .is_urgent = kind == RELOCATE || (kind != RESUME && reason == YIELD_TO_MEMORY)};
}

static void start_program(struct world *world, const struct task *task)
{
    struct program *program = &world->programs[task->id];
    assert_false(program->is_alive);
    assert_false(program->has_ended);
    world->result.computed_twice_us += program->done_us;
    *program = (struct program){.is_alive = true,
        .attempt = task->attempts,
        .gpu = task->gpus[0],
        .starts_us = world->now_us + (int64_t)draw(world, 20) * STEP_US};
}

static void feed(struct world *world, struct event event);

static void exit_program(struct world *world, uint64_t task, enum failure_class failure)
{
    struct program *program = &world->programs[task];
    int code = failure == FAILURE_NONE ? 0 : 1;
    program->is_alive = false;
    program->blocks = program->context = 0;
    feed(world,
        (struct event){.kind = EVENT_EXITED, .task = task, .exited = {failure, code, 0, 0, false}});
}

static void carry_out(struct world *world, const struct effect *effect)
{
    const struct task *task = core_task(world->core, effect->task);
    struct program *program = &world->programs[effect->task];
    switch (effect->kind) {
    case EFFECT_APPEND:
        keep(world, &effect->event);
        log_event(world, &effect->event);
        world->result.n_suspensions += effect->event.kind == EVENT_SUSPENDING;
        world->result.n_moves += effect->event.kind == EVENT_MOVING;
        world->result.n_run_again += effect->event.kind == EVENT_RUN_AGAIN;
        break;
    case EFFECT_START:
        start_program(world, task);
        feed(world,
            (struct event){.kind = EVENT_STARTED, .task = task->id, .started.has_library = true});
        break;
    case EFFECT_KILL:
        if (program->is_alive)
            exit_program(world, task->id, task->ending);
        break;
    case EFFECT_SUSPEND:
        add_order(world, task->id, SUSPEND);
        break;
    case EFFECT_RESUME:
        add_order(world, task->id, RESUME);
        break;
    case EFFECT_MOVE:
        add_order(world, task->id, MOVE);
        break;
    case EFFECT_RELOCATE:
        add_order(world, task->id, RELOCATE);
        break;
    case EFFECT_GRANT_MEMORY:
        program->is_granted = true;
        program->is_reported = false;
        break;
    case EFFECT_DENY_MEMORY:
        program->is_denied = true;
        program->is_reported = false;
        break;
    default: /* EFFECT_WAIT; no task is paused here */
        break;
    }
}

static int step_core(struct world *world, struct event *event)
{
    int n;
    event->time_us = world->now_us;
    int r = core_step(world->core, event);
    assert_true(r >= 0);
    if (r > 0)
        return r;
    if (is_logged(event->kind))
        keep(world, event);
    log_event(world, event);
    const struct effect *effects = core_effects(world->core, &n);
    for (int i = 0; i < n; i++)
        carry_out(world, &effects[i]);
    return 0;
}

/* What an effect feeds comes after the step that left it. */
static void feed(struct world *world, struct event event)
{
    assert_true(world->n_inbox < INBOX_MAX);
    world->inbox[world->n_inbox++] = event;
    if (world->is_draining)
        return;
    world->is_draining = true;
    for (int i = 0; i < world->n_inbox; i++) {
        struct event next = world->inbox[i];
        step_core(world, &next);
    }
    world->n_inbox = 0;
    world->is_draining = false;
}

/* ---- orders ---- */

static struct program *program_of(struct world *world, const struct order *order)
{
    return &world->programs[order->task];
}

static const struct task *task_of(const struct world *world, const struct order *order)
{
    return core_task(world->core, order->task);
}

static void remove_order(struct world *world, int i)
{
    memmove(&world->orders[i], &world->orders[i + 1],
        (size_t)(world->n_orders - i - 1) * sizeof *world->orders);
    world->n_orders--;
}

static void note_progress(struct world *world, int gpu)
{
    world->state[gpu].progress_us = world->now_us;
}

/* The end of an order: `event` has its kind and what that has. */
static void answer(struct world *world, int i, struct event event)
{
    struct order order = world->orders[i];
    struct program *program = program_of(world, &order);
    event.task = order.task;
    event.yielded.took_us = world->now_us - order.begun_us;
    remove_order(world, i);
    if (event.kind == EVENT_RESUMED || event.kind == EVENT_MOVED)
        program->is_gated = program->context_stays = false;
    note_progress(world, program->gpu);
    feed(world, event);
}

static void fail_order(struct world *world, int i, enum suspension_failure why, bool is_suspended)
{
    struct order order = world->orders[i];
    struct program *program = program_of(world, &order);
    is_suspended &= order.kind != SUSPEND;
    if (!is_suspended)
        program->is_gated = false;
    world->result.n_lost += why == SUSPENSION_LOST;
    remove_order(world, i);
    feed(world, (struct event){.kind = EVENT_SUSPENSION_FAILED,
                    .task = order.task,
                    .suspension_failed = {why, is_suspended}});
}

static void retry(struct world *world, int i)
{
    struct order *order = &world->orders[i];
    note(world, order->task, "retries", 0);
    if (order->retries++ >= RETRIES_MAX) {
        fail_order(world, i, SUSPENSION_LOST, true);
        return;
    }
    struct order later = *order;
    later.is_under_way = false;
    later.retry_us = world->now_us + RETRY_US;
    remove_order(world, i);
    world->orders[world->n_orders++] = later;
}

static void enter(struct world *world, struct order *order, enum phase phase, int64_t takes_us)
{
    order->phase = phase;
    order->due_us = world->now_us + takes_us;
}

static int64_t copy_us(int64_t bytes, int64_t gib_per_s)
{
    return bytes / MIB * SECOND_US / (gib_per_s * 1024);
}

/* At the speed of PCIe into host memory that is ready, and of the rest as memory is made ready. */
static int64_t copy_out_us(int64_t bytes)
{
    int64_t ready = bytes < 16 * GIB ? bytes : 16 * GIB;
    return copy_us(ready, 25) + copy_us(bytes - ready, 7) + 50 * MS_US;
}

static bool is_client(const struct world *world)
{
    return world->crowd->sharing == SHARING_MPS;
}

static bool is_carried(const struct world *world)
{
    return world->crowd->settings.carries_mps;
}

/* The driver copies the context, and without the carrier all. */
static int64_t driver_us(
    const struct world *world, const struct program *program, int64_t ms_per_gib)
{
    int64_t bytes = is_carried(world) ? 0 : program->blocks;
    return 700 * MS_US + bytes / GIB * ms_per_gib * MS_US;
}

static int64_t restored_bytes(const struct world *world, const struct program *program)
{
    return program->context + (is_carried(world) ? 0 : program->blocks);
}

static bool stays_on_gpu(const struct world *world, const struct order *order)
{
    return is_client(world) ||
           (order->kind == SUSPEND && task_of(world, order)->run->yield.keeps_context);
}

static void begin_back(struct world *world, int i)
{
    struct order *order = &world->orders[i];
    struct program *program = program_of(world, order);
    if (!program->blocks_away) {
        enter(world, order, BACK, 0);
    } else if (free_bytes(world, program->gpu) >= program->blocks) {
        program->blocks_away = false;
        enter(world, order, BACK, copy_us(program->blocks, 25) + 50 * MS_US);
    } else if (program->context_stays) {
        fail_order(world, i, SUSPENSION_NO_MEMORY, true);
    } else if (order->phase == AFTER_FAILURE) {
        retry(world, i);
    } else {
        enter(world, order, LEAVES_AGAIN, driver_us(world, program, 700));
    }
}

static void begin_restore(struct world *world, int i)
{
    struct order *order = &world->orders[i];
    struct program *program = program_of(world, order);
    const struct task *task = task_of(world, order);
    int to = order->kind == MOVE ? task->run->yield.to_gpus[0] : task->gpus[0];
    int64_t spare = core_view(world->core)->gpus[to].n_residents > 1
                        ? SUSPENSION_RESTORE_SPARE_BYTES
                        : 0;
    if (!program->context_away) {
        begin_back(world, i);
        return;
    }
    program->gpu = to;
    if (free_bytes(world, to) < program->blocks + program->context + spare)
        fail_order(world, i, SUSPENSION_NO_MEMORY, true);
    else /* the helper has held that much free until now; the driver takes it soon */
        enter(world, order, RESTORE, (int64_t)draw(world, 4) * STEP_US);
}

static void end_suspension(struct world *world, int i)
{
    struct order *order = &world->orders[i];
    struct program *program = program_of(world, order);
    if (order->kind == MOVE) {
        begin_restore(world, i);
        return;
    }
    struct event event = {.kind = EVENT_SUSPENDED};
    event.yielded.bytes = reading_of((double)(program->blocks + program->context));
    if (program->context_stays)
        event.yielded.context_bytes = reading_of((double)program->context);
    answer(world, i, event);
}

static void begin_order(struct world *world, int i)
{
    struct order *order = &world->orders[i];
    struct program *program = program_of(world, order);
    order->is_under_way = true;
    if (!order->begun_us)
        order->begun_us = world->now_us;
    if (order->phase == AFTER_FAILURE || order->phase == BACK) {
        begin_back(world, i);
        return;
    }
    if (order->kind == RELOCATE) {
        enter(world, order, REST, driver_us(world, program, 700));
        return;
    }
    if (order->kind == RESUME) {
        begin_restore(world, i);
        return;
    }
    if (program->context == 0) {
        fail_order(world, i, SUSPENSION_NOT_NOW, false);
        return;
    }
    program->is_gated = true;
    bool hangs = order->phase == BEGIN && happens(world, world->crowd->faults.hangs);
    enter(world, order, hangs ? HUNG : GATE, (int64_t)draw(world, 4) * STEP_US);
}

static void end_rest(struct world *world, int i)
{
    struct order *order = &world->orders[i];
    struct program *program = program_of(world, order);
    bool refuses = happens(world, world->crowd->faults.refuses);
    enum yield_reason reason = task_of(world, order)->run->yield.reason;
    if (order->kind == RELOCATE && refuses) {
        fail_order(world, i, SUSPENSION_NOT_NOW, true);
    } else if (order->kind == RELOCATE) {
        program->context_away = true;
        program->context_stays = false;
        answer(world, i, (struct event){.kind = EVENT_RELOCATED});
    } else if (!refuses) {
        program->context_away = program->blocks_away = true;
        end_suspension(world, i);
    } else if (order->kind == SUSPEND && program->blocks_away && reason == YIELD_TO_MEMORY) {
        program->context_stays = true;
        end_suspension(world, i);
    } else {
        order->phase = AFTER_FAILURE;
        begin_back(world, i);
        if (i < world->n_orders && world->orders[i].phase == BACK)
            world->orders[i].phase = AFTER_FAILURE;
    }
}

static void end_phase(struct world *world, int i)
{
    struct order *order = &world->orders[i];
    struct program *program = program_of(world, order);
    switch (order->phase) {
    case HUNG: /* other orders go on meanwhile */
        if (world->now_us - order->begun_us >= 30 * SECOND_US) {
            fail_order(world, i, SUSPENSION_TIMED_OUT, false);
        } else {
            order->is_under_way = false;
            order->retry_us = world->now_us + SECOND_US;
        }
        break;
    case GATE:
        enter(world, order, is_carried(world) ? OUT : REST,
            is_carried(world) ? copy_out_us(program->blocks) : driver_us(world, program, 700));
        break;
    case OUT:
        program->blocks_away = true;
        program->context_stays = stays_on_gpu(world, order);
        if (program->context_stays)
            end_suspension(world, i);
        else
            enter(world, order, REST, driver_us(world, program, 700));
        break;
    case REST:
        end_rest(world, i);
        break;
    case AFTER_FAILURE:
        fail_order(world, i, SUSPENSION_REFUSED, false);
        break;
    case RESTORE:
        if (free_bytes(world, program->gpu) < restored_bytes(world, program) ||
            happens(world, world->crowd->faults.loses)) {
            fail_order(world, i, SUSPENSION_LOST, true);
        } else {
            program->context_away = false;
            program->blocks_away = is_carried(world);
            enter(world, order, RESTORED, driver_us(world, program, 200));
        }
        break;
    case RESTORED:
        begin_back(world, i);
        break;
    case BACK:
        answer(world, i, (struct event){.kind = order->kind == MOVE ? EVENT_MOVED : EVENT_RESUMED});
        break;
    case LEAVES_AGAIN:
        if (happens(world, world->crowd->faults.clings)) {
            order->phase = BACK; /* there may be room by then */
            retry(world, i);
        } else {
            program->context_away = true;
            fail_order(world, i, SUSPENSION_NO_MEMORY, true);
        }
        break;
    default:
        break;
    }
}

static int find_order(const struct world *world)
{
    int found = -1;
    for (int i = 0; i < world->n_orders; i++) {
        const struct order *order = &world->orders[i];
        if (order->is_under_way)
            return i;
        bool is_due = order->retry_us <= world->now_us;
        if (is_due && (found < 0 || (order->is_urgent && !world->orders[found].is_urgent)))
            found = i;
    }
    return found;
}

static bool is_void(const struct world *world, const struct order *order)
{
    static const enum task_state states[] = {
        TASK_SUSPENDING, TASK_RESUMING, TASK_MOVING, TASK_SUSPENDED};
    const struct task *task = task_of(world, order);
    return !world->programs[order->task].is_alive || task->state != states[order->kind];
}

/* A copy takes its time, and other orders wait for it: that is no standstill. */
static void note_copying(struct world *world)
{
    int i = find_order(world);
    bool is_copying = i >= 0 && world->orders[i].is_under_way && world->orders[i].phase > HUNG;
    for (int gpu = 0; gpu < world->crowd->n_gpus && is_copying; gpu++)
        note_progress(world, gpu);
}

static void run_orders(struct world *world)
{
    for (int n = 0, i; n < ORDERS_MAX && (i = find_order(world)) >= 0; n++) {
        struct order *order = &world->orders[i];
        if (is_void(world, order)) {
            remove_order(world, i);
            continue;
        }
        if (!order->is_under_way)
            begin_order(world, i);
        else if (order->due_us > world->now_us)
            break;
        else
            end_phase(world, i);
    }
    note_copying(world);
}

/* ---- programs ---- */

static bool computes(const struct world *world, uint64_t id)
{
    const struct program *program = &world->programs[id];
    return program->is_alive && program->is_started && !program->waits && !program->is_gated;
}

/* The next allocation that is due; 0: none. */
static int64_t next_bytes(const struct world *world, uint64_t id)
{
    const struct program *program = &world->programs[id];
    const struct crowd_task *does = &world->crowd->tasks[id - 1];
    if (!program->context)
        return 500 * MIB + (int64_t)(id * 97 % 400) * MIB;
    bool is_due = program->next_piece < does->n_pieces &&
                  program->done_us >= does->pieces[program->next_piece].at_us;
    return is_due ? does->pieces[program->next_piece].bytes : 0;
}

static void take(struct program *program, int64_t bytes)
{
    if (!program->context) {
        program->context = bytes;
        return;
    }
    program->blocks += bytes;
    program->next_piece++;
}

static void run_out_of_memory(struct world *world, uint64_t id)
{
    world->result.n_out_of_memory++;
    note(world, id, "runs out of memory", next_bytes(world, id));
    exit_program(world, id, FAILURE_GPU_OOM);
}

static void try_again(struct world *world, uint64_t id, int64_t bytes)
{
    struct program *program = &world->programs[id];
    program->is_granted = false;
    if (free_bytes(world, program->gpu) >= bytes) {
        take(program, bytes);
        program->waits = false;
        return;
    }
    struct wait_case wait = {.bytes = (uint64_t)bytes,
        .bound_ms = WAIT_BOUND_MS,
        .waited_ms = (uint64_t)(world->now_us - program->wait_us) / 1000,
        .retries = (uint32_t)++program->retries};
    if (wait_rule_why_fails(&wait))
        run_out_of_memory(world, id);
}

static void allocate(struct world *world, uint64_t id)
{
    struct program *program = &world->programs[id];
    int64_t bytes;
    if (program->waits && program->is_denied) {
        program->is_denied = false;
        run_out_of_memory(world, id);
        return;
    }
    if (program->waits && program->is_granted)
        try_again(world, id, next_bytes(world, id));
    while (computes(world, id) && (bytes = next_bytes(world, id)) > 0) {
        if (free_bytes(world, program->gpu) >= bytes) {
            take(program, bytes);
            continue;
        }
        program->waits = true;
        program->retries = 0;
        program->wait_us = world->now_us;
        world->result.n_waits++;
        note(world, id, "waits for", bytes);
    }
}

static void compute(struct world *world, uint64_t id)
{
    struct program *program = &world->programs[id];
    int n = world->state[program->gpu].n_computing;
    if (!computes(world, id))
        return;
    program->done_us += (int64_t)((double)STEP_US * (n > 1 ? 1.6 / n : 1));
    note_progress(world, program->gpu);
    if (program->done_us < world->crowd->tasks[id - 1].work_us)
        return;
    program->has_ended = true;
    program->done_us = 0;
    exit_program(world, id, FAILURE_NONE);
}

static void run_programs(struct world *world)
{
    for (int i = 0; i < world->crowd->n_gpus; i++)
        world->state[i].n_computing = 0;
    for (uint64_t id = 1; id <= (uint64_t)world->crowd->n_tasks; id++) {
        struct program *program = &world->programs[id];
        program->is_started |= program->is_alive && world->now_us >= program->starts_us;
        if (program->is_started && !program->is_gated)
            allocate(world, id);
        world->state[program->gpu].n_computing += computes(world, id);
    }
    for (uint64_t id = 1; id <= (uint64_t)world->crowd->n_tasks; id++)
        compute(world, id);
}

/* ---- faults ---- */

static void change_external(struct world *world, int gpu)
{
    if (world->state[gpu].external && world->now_us >= world->state[gpu].external_until_us)
        world->state[gpu].external = 0;
    if (world->state[gpu].external || !comes(world, world->crowd->faults.external))
        return;
    int64_t most = free_bytes(world, gpu) - GIB;
    if (most <= 0)
        return;
    world->state[gpu].external = GIB + (int64_t)draw(world, (uint64_t)most);
    world->state[gpu].external_until_us = world->now_us + (int64_t)draw(world, 30) * SECOND_US;
}

static void kill_program(struct world *world)
{
    uint64_t id = 1 + draw(world, (uint64_t)world->crowd->n_tasks);
    if (!world->programs[id].is_alive)
        return;
    note(world, id, "is killed", 0);
    world->programs[id].is_killed = true;
    world->result.n_killed++;
    exit_program(world, id, FAILURE_PROGRAM);
}

static void list_gpus(struct world *world)
{
    feed(world, (struct event){
                    .kind = EVENT_GPUS, .gpus = {.list = world->gpus, .n = world->crowd->n_gpus}});
}

/* Another core gets the log, and what the programs are found to be. A copy that is under way goes
 * on without the daemon, and the next one waits for it. */
static void restart(struct world *world)
{
    note(world, 0, "the daemon is killed", 0);
    world->result.n_restarts++;
    core_destroy(world->core);
    world->core = core_create(&world->crowd->settings);
    assert_non_null(world->core);
    for (size_t i = 0; i < world->n_past; i++)
        assert_int_equal(core_apply(world->core, &world->past[i]), 0);
    list_gpus(world);
    for (uint64_t id = 1; id <= (uint64_t)world->crowd->n_tasks; id++) {
        const struct task *task = core_task(world->core, id);
        world->programs[id].is_reported = false;
        if (task && task_state_has_attempt(task->state))
            feed(world,
                (struct event){.kind = EVENT_STARTED, .task = id, .started.has_library = true});
        if (task && task->run->memory_wait.bytes && !world->programs[id].waits)
            feed(world, (struct event){.kind = EVENT_MEMORY_WAIT_END, .task = id});
    }
}

static void make_faults(struct world *world)
{
    for (int i = 0; i < world->crowd->n_gpus; i++)
        change_external(world, i);
    if (comes(world, world->crowd->faults.kills))
        kill_program(world);
    if (comes(world, world->crowd->faults.restarts))
        restart(world);
}

/* ---- samples ---- */

static void sample_gpu(struct world *world, int gpu)
{
    struct task_memory memory[CROWD_TASKS_MAX];
    struct event event = {.kind = EVENT_SAMPLE};
    struct core_sample *sample = &event.sample;
    int n_computing = 0;
    sample->gpu = gpu;
    sample->more_follow = gpu + 1 < world->crowd->n_gpus;
    sample->tasks = memory;
    sample->mem_used_bytes = reading_of((double)used_bytes(world, gpu));
    sample->external_processes = reading_of(world->state[gpu].external > 0);
    for (uint64_t id = 1; id <= (uint64_t)world->crowd->n_tasks; id++) {
        const struct program *program = &world->programs[id];
        if (program->gpu != gpu || held_bytes(program) == 0)
            continue;
        n_computing += computes(world, id);
        memory[sample->n_tasks++] = (struct task_memory){.task = id,
            .mem_used_bytes = reading_of((double)held_bytes(program)),
            .mps_clients = is_client(world),
            .hooked = 1,
            .carried = is_carried(world)};
    }
    double smact = n_computing > 1 ? 1 : 0.6 * n_computing;
    sample->smact = sample->utilisation = reading_of(smact);
    step_core(world, &event);
}

/* As the daemon does it: what waits is reported after a poll of the GPUs. */
static void sample(struct world *world)
{
    world->is_draining = true; /* what samples cause comes after all of them */
    for (int i = 0; i < world->crowd->n_gpus; i++)
        sample_gpu(world, i);
    for (uint64_t id = 1; id <= (uint64_t)world->crowd->n_tasks; id++) {
        struct program *program = &world->programs[id];
        struct event event = {.kind = EVENT_MEMORY_WAIT,
            .task = id,
            .memory_wait = {next_bytes(world, id), program->retries > 0}};
        bool is_open = program->is_alive && program->waits && !program->is_granted &&
                       !program->is_denied && !program->is_reported;
        program->is_reported |= is_open; /* the answer may come at once */
        if (is_open && step_core(world, &event) != 0)
            program->is_reported = false;
    }
    world->is_draining = false;
    feed(world, (struct event){.kind = EVENT_TICK}); /* with what the samples have left */
}

/* ---- the run ---- */

static void describe(struct world *world)
{
    char why[512];
    for (uint64_t id = 1; id <= (uint64_t)world->crowd->n_tasks; id++) {
        const struct task *task = core_task(world->core, id);
        const struct program *program = &world->programs[id];
        if (!task || task_state_is_done(task->state))
            continue;
        core_explain(world->core, id, world->now_us, why, sizeof why);
        print_error("task %2" PRIu64
                    " %s on %d: %.1f s of %.1f s, holds %.2f GiB of %.2f, %s%s%s\n",
            id, task_state_word(task->state), task->n_gpus ? task->gpus[0] : -1,
            (double)program->done_us / 1e6, (double)world->crowd->tasks[id - 1].work_us / 1e6,
            (double)held_bytes(program) / (double)GIB,
            (double)(program->blocks + program->context) / (double)GIB,
            program->waits ? "waits, " : "", program->is_gated ? "is gated, " : "", why);
    }
    for (int i = 0; i < world->crowd->n_gpus; i++)
        print_error("GPU %d: %.2f GiB free\n", i, (double)seen_free_bytes(world, i) / (double)GIB);
}

static bool is_external_anywhere(const struct world *world)
{
    for (int i = 0; i < world->crowd->n_gpus; i++)
        if (world->state[i].external)
            return true;
    return false;
}

/* A GPU that an external program is on is not judged until later. */
static void check_progress(struct world *world)
{
    for (int i = 0; i < world->crowd->n_gpus; i++) {
        const struct gpu_view *gpu = &core_view(world->core)->gpus[i];
        if (gpu->n_residents == 0 || is_external_anywhere(world))
            note_progress(world, i);
        if (world->now_us - world->state[i].progress_us > STILL_MAX_US) {
            describe(world);
            fail_msg("seed %" PRIu64 ": GPU %d stands still since %.1f s", world->crowd->seed, i,
                (double)world->state[i].progress_us / 1e6);
        }
    }
}

static int count_left(const struct world *world)
{
    int n = 0;
    for (uint64_t id = 1; id <= (uint64_t)world->crowd->n_tasks; id++) {
        const struct task *task = core_task(world->core, id);
        n += !task || !task_state_is_done(task->state);
    }
    return n;
}

static void submit(struct world *world, uint64_t id)
{
    const struct crowd_task *does = &world->crowd->tasks[id - 1];
    int64_t bytes = GIB;
    for (int i = 0; i < does->n_pieces; i++)
        bytes += does->pieces[i].bytes;
    struct task_request request = {.gpus = 1, .sharing = world->crowd->sharing};
    if (world->crowd->is_declared)
        request.need = (struct need){NEED_DECLARED, bytes};
    feed(world,
        (struct event){.kind = EVENT_SUBMIT, .task = id, .submit = {.uid = 1, .request = request}});
}

static void check_ends(const struct world *world)
{
    for (uint64_t id = 1; id <= (uint64_t)world->crowd->n_tasks; id++) {
        const struct program *program = &world->programs[id];
        enum task_state state = core_task(world->core, id)->state;
        if (state != (program->is_killed ? TASK_FAILED : TASK_COMPLETED) ||
            program->has_ended == program->is_killed)
            fail_msg("seed %" PRIu64 ": task %" PRIu64 " is %s", world->crowd->seed, id,
                task_state_word(state));
    }
}

/* The longest that the work takes one task after the other, with all that may hold it up. */
static int64_t limit_us(const struct crowd *crowd)
{
    int64_t limit = 300 * SECOND_US;
    for (int i = 0; i < crowd->n_tasks; i++)
        limit += 3 * crowd->tasks[i].work_us + 30 * SECOND_US;
    return limit;
}

struct crowd_result crowd_run(const struct crowd *crowd, FILE *log)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->crowd = crowd;
    world->log = log;
    world->random = crowd->seed * 0x9E3779B97F4A7C15u + 1;
    world->core = core_create(&crowd->settings);
    assert_non_null(world->core);
    for (int i = 0; i < crowd->n_gpus; i++) {
        world->gpus[i] = (struct gpu_identity){
            .is_place = true, .mem_total_bytes = crowd->gpu_bytes};
        snprintf(world->gpus[i].uuid, sizeof world->gpus[i].uuid, "GPU-%d", i);
        snprintf(world->gpus[i].label, sizeof world->gpus[i].label, "%d", i);
        snprintf(world->gpus[i].name, sizeof world->gpus[i].name, "NVIDIA H200");
    }
    list_gpus(world);
    int64_t last_us = limit_us(crowd);
    uint64_t next = 1;
    do {
        world->now_us += STEP_US;
        while (
            next <= (uint64_t)crowd->n_tasks && crowd->tasks[next - 1].submit_us <= world->now_us)
            submit(world, next++);
        make_faults(world);
        run_programs(world);
        run_orders(world);
        sample(world);
        check_progress(world);
        if (world->now_us > last_us) {
            describe(world);
            fail_msg("seed %" PRIu64 ": %d tasks have not ended", crowd->seed, count_left(world));
        }
    } while (next <= (uint64_t)crowd->n_tasks || count_left(world) > 0);
    check_ends(world);
    world->result.total_us = world->now_us;
    struct crowd_result result = world->result;
    for (size_t i = 0; i < world->n_past; i++)
        event_release(&world->past[i]);
    free(world->past);
    core_destroy(world->core);
    free(world);
    return result;
}
