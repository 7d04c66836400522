/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random walks: thousands of events, valid and invalid, on random machines. After each step the
 * state has to be consistent, another scheduling pass at the same time has to change nothing, and a
 * second core, which gets only what the log would hold, has to be in the same state.
 *
 * COLLOC_WALK_SEED=N walks with other random numbers: N is added to each seed. The seed of a walk
 * that fails is printed: COLLOC_WALK_SEED of that less 1 begins with it.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "core/core.h"
#include "core/state/recovery_need.h"
#include "policy/policies.h"
#include "pretend_gpus.h"

#define WALKS     26
#define STEPS     1500
#define GPUS_MAX  6
#define TASKS_MAX 200
#define ARRAY_MAX 6

struct walk {
    uint64_t random;
    struct core *core, *replayed;
    int64_t now_us;
    uint64_t next_task;
    int n_gpus, to_gpu;
    uint64_t moving; /* the task to move to `to_gpu` in the next step; 0: none */
    struct gpu_identity gpus[GPUS_MAX];
    struct task_memory memory[TASKS_MAX];
    struct {
        struct core_sample sample;
        struct task_memory memory[TASKS_MAX];
    } last[GPUS_MAX]; /* samples */
    struct dependency after[3];
    struct array_element elements[ARRAY_MAX];
    int accepted[EVENT_KINDS], refused[EVENT_KINDS], paused_for[YIELD_REASONS];
    uint64_t submitted;
};

static uint64_t draw(struct walk *walk, uint64_t below)
{
    walk->random ^= walk->random << 13;
    walk->random ^= walk->random >> 7;
    walk->random ^= walk->random << 17;
    return (walk->random >> 11) % below;
}

static bool chance(struct walk *walk, int per_cent)
{
    return draw(walk, 100) < (uint64_t)per_cent;
}

static const struct policy *any_policy(struct walk *walk)
{
    return policy_table[draw(walk, 9)];
}

static enum failure_class any_failure(struct walk *walk)
{
    if (chance(walk, 15))
        return FAILURE_NONE;
    if (chance(walk, 50))
        return FAILURE_GPU_OOM;
    return chance(walk, 50) ? FAILURE_MPS : (enum failure_class)draw(walk, FAILURE_CLASSES);
}

static struct need any_need(struct walk *walk)
{
    static const int64_t sizes[] = {0, 300 * MIB, 6 * GIB, 20 * GIB, 200 * GIB, INT64_MAX};
    return (struct need){(enum need_kind)draw(walk, 4), sizes[draw(walk, 6)]};
}

static struct reading any_reading(struct walk *walk, double most)
{
    return chance(walk, 10) ? READING_NONE : reading_of(most * (double)draw(walk, 101) / 100);
}

/* Mostly on tasks that are there; seldom on one that never was, or on a later one (a cycle). */
static struct dependency any_dependency(struct walk *walk)
{
    uint64_t first = draw(walk, walk->next_task) + (chance(walk, 3) ? 2 : 0);
    uint64_t last = chance(walk, 70) ? first : first + draw(walk, 4);
    return (struct dependency){
        (enum dependency_kind)draw(walk, DEPENDENCY_KINDS), first, last, chance(walk, 10)};
}

static void make_after(struct walk *walk, struct event *event)
{
    if (!chance(walk, 20))
        return;
    event->submit.request.after = walk->after;
    event->submit.request.n_after = 1 + (int)draw(walk, ARRAY_SIZE(walk->after));
    for (int i = 0; i < event->submit.request.n_after; i++)
        walk->after[i] = any_dependency(walk);
}

/* An array, seldom with an id that a task has. */
static void make_array(struct walk *walk, struct event *event)
{
    event->submit.elements = walk->elements;
    event->submit.n_elements = 1 + (int)draw(walk, ARRAY_MAX);
    event->submit.array_limit = chance(walk, 60) ? 1 + (int)draw(walk, 3) : 0;
    for (int i = 0; i < event->submit.n_elements; i++)
        walk->elements[i] = (struct array_element){walk->next_task++, i * 2};
    if (chance(walk, 5))
        walk->elements[0].task = draw(walk, walk->next_task);
}

/* What a driver reports of a task that the core may have forgotten. */
static void make_dependency(struct walk *walk, struct event *event)
{
    const struct task *task = core_task(walk->core, event->task);
    event->dependency.dependency = task && task->n_after && chance(walk, 90)
                                       ? task->after[draw(walk, (uint64_t)task->n_after)]
                                       : any_dependency(walk);
    event->dependency.holds = chance(walk, 50);
    event->dependency.by = event->dependency.dependency.first;
}

static void make_update(struct walk *walk, struct event *event)
{
    struct task_update *update = &event->update;
    walk->after[0] = any_dependency(walk);
    *update = (struct task_update){.sets_time_limit = chance(walk, 30),
        .time_limit_us = (int64_t)draw(walk, 100) * SECOND_US,
        .sets_priority = chance(walk, 40),
        .priority = (int)draw(walk, 4) + PRIORITY_LOW,
        .sets_need = chance(walk, 20),
        .need = {NEED_DECLARED, 6 * GIB},
        .sets_begin = chance(walk, 20),
        .begin_us = chance(walk, 50) ? 0 : walk->now_us + SECOND_US,
        .sets_after = chance(walk, 20),
        .after = walk->after};
    update->n_after = update->sets_after && chance(walk, 80);
}

/* The first reservation in advance is cancelled, so that there are never many. */
static void make_reserve(struct walk *walk, struct event *event)
{
    int n;
    const struct advance *advances = core_advances(walk->core, &n);
    event->task = 0;
    if (event->kind == EVENT_UNRESERVE) {
        event->unreserve = n ? advances[0].id : 7;
        return;
    }
    int64_t from_us = walk->now_us + (int64_t)draw(walk, 20) * SECOND_US;
    event->reserve = (struct advance){.id = core_next_advance_id(walk->core) - chance(walk, 10),
        .gpus = (int)draw(walk, 3),
        .from_us = from_us,
        .until_us = from_us + (int64_t)draw(walk, 20) * SECOND_US,
        .n_users = 1,
        .users = {(uint32_t)draw(walk, 3)}};
}

static void make_submit(struct walk *walk, struct event *event)
{
    struct task_request *request = &event->submit.request;
    event->task = chance(walk, 3) ? draw(walk, walk->next_task + 1) : walk->next_task++;
    event->submit.uid = (uint32_t)draw(walk, 3);
    event->submit.held = chance(walk, 10);
    request->gpus = chance(walk, 70) ? 1 : (int)draw(walk, (uint64_t)walk->n_gpus + 2);
    request->policy = chance(walk, 50) ? any_policy(walk) : NULL;
    request->exclusive = chance(walk, 10);
    request->sharing = (enum sharing)draw(walk, 3);
    request->thread_percent = chance(walk, 20) ? (int)draw(walk, 101) : 0;
    request->need = any_need(walk);
    request->expect.smact = any_reading(walk, 1);
    int64_t expected_s = chance(walk, 50) ? (int64_t)draw(walk, 60) : 0;
    request->expect.time_us = expected_s ? reading_of((double)(expected_s * SECOND_US))
                                         : READING_NONE;
    request->time_limit_us = chance(walk, 20) ? (int64_t)draw(walk, 60) * SECOND_US : 0;
    request->priority = chance(walk, 20) ? (int)draw(walk, 4) - 1 : PRIORITY_NORMAL;
    request->once = chance(walk, 10);
    request->limited = chance(walk, 30);
    request->service.is_service = chance(walk, 15);
    request->service.p99_us = chance(walk, 80) ? 50 * MS_US : 0;
    request->slowdown_max = chance(walk, 30) ? reading_of(1 + (double)draw(walk, 200) / 100)
                                             : READING_NONE;
    request->begin_us = chance(walk, 10) ? walk->now_us + (int64_t)draw(walk, 30) * SECOND_US : 0;
    make_after(walk, event);
    if (event->task == walk->next_task - 1 && chance(walk, 6)) {
        make_array(walk, event);
        if (chance(walk, 70))
            event->submit.stop = (struct halving_rule){
                .factor = 3, .first_step = 3, .metric = "loss"};
    }
}

/* The last sample of the GPU, or one that differs a little. */
static void repeat_sample(struct walk *walk, struct core_sample *sample)
{
    int gpu = sample->gpu;
    *sample = walk->last[gpu].sample;
    sample->gpu = gpu;
    sample->tasks = walk->memory;
    memcpy(walk->memory, walk->last[gpu].memory, sizeof walk->memory);
    if (chance(walk, 20))
        sample->mem_used_bytes = any_reading(walk, 40.0 * (double)GIB);
    if (chance(walk, 20))
        sample->smact = any_reading(walk, 0.9);
    if (chance(walk, 20) && sample->n_tasks)
        walk->memory[draw(walk, (uint64_t)sample->n_tasks)].mem_used_bytes = any_reading(
            walk, 10.0 * (double)GIB);
}

static void fill_sample(struct walk *walk, struct event *event, int gpu)
{
    struct core_sample *sample = &event->sample;
    const struct cluster_view *view = core_view(walk->core);
    sample->gpu = gpu;
    if (sample->gpu >= 0 && sample->gpu < walk->n_gpus && chance(walk, 60)) {
        repeat_sample(walk, sample);
        return;
    }
    sample->lost = chance(walk, 2);
    sample->tasks = walk->memory;
    bool known = sample->gpu >= 0 && sample->gpu < view->n_gpus;
    bool empty = known && view->gpus[sample->gpu].n_residents == 0;
    sample->mem_used_bytes = empty && chance(walk, 80) ? reading_of(0)
                                                       : any_reading(walk, 40.0 * (double)GIB);
    sample->smact = any_reading(walk, 0.9);
    sample->utilisation = any_reading(walk, 1);
    sample->external_processes = chance(walk, 90) ? reading_of(0) : any_reading(walk, 2);
    for (int i = 0; known && i < view->gpus[sample->gpu].n_residents; i++)
        if (chance(walk, 80))
            walk->memory[sample->n_tasks++] = (struct task_memory){
                .task = view->gpus[sample->gpu].residents[i].task,
                .mem_used_bytes = any_reading(walk, 10.0 * (double)GIB)};
    if (chance(walk, 5))
        walk->memory[sample->n_tasks++] = (struct task_memory){
            .task = draw(walk, 1000), .mem_used_bytes = reading_of(1)};
    if (sample->gpu >= 0 && sample->gpu < walk->n_gpus) {
        walk->last[sample->gpu].sample = *sample;
        memcpy(walk->last[sample->gpu].memory, walk->memory, sizeof walk->memory);
    }
}

static void make_sample(struct walk *walk, struct event *event)
{
    bool is_any = chance(walk, 3);
    fill_sample(
        walk, event, is_any ? (int)draw(walk, 100) - 50 : (int)draw(walk, (uint64_t)walk->n_gpus));
}

static void make_gpus(struct walk *walk, struct event *event)
{
    for (int i = 0; i < walk->n_gpus; i++) {
        struct gpu_identity *id = &walk->gpus[i];
        snprintf(id->uuid, sizeof id->uuid, "GPU-%d", i);
        snprintf(id->label, sizeof id->label, "%d", i);
        id->mem_total_bytes = i == 1 ? 10 * GIB : 40 * GIB;
        id->memory_domain = i >= 3 && walk->n_gpus > 4; /* compute instances of one GPU instance */
        id->is_mig_instance = id->memory_domain || (i == 1 && walk->n_gpus > 2);
        id->is_gone = id->is_mig_instance && chance(walk, 30);
        id->is_place = !id->is_gone && chance(walk, 95);
        id->one_process = i == 2;
    }
    event->gpus.list = walk->gpus;
    event->gpus.n = chance(walk, 80) ? walk->n_gpus : (int)draw(walk, (uint64_t)walk->n_gpus + 1);
}

/* A task with an attempt, if there is one. */
static uint64_t any_attempt(struct walk *walk)
{
    uint64_t found = draw(walk, walk->next_task + 1), n = 0;
    for (const struct task *task = core_next_task(walk->core, 0); task;
         task = core_next_task(walk->core, task->id))
        if (task_state_has_attempt(task->state) && draw(walk, ++n) == 0)
            found = task->id;
    return found;
}

static void make_started(struct walk *walk, struct event *event)
{
    event->started.by_streams = chance(walk, 10);
    if (chance(walk, 50))
        event->task = any_attempt(walk);
}

/* Mostly a GPU that the task does not have. */
static int any_destination(struct walk *walk, uint64_t task)
{
    const struct cluster_view *view = core_view(walk->core);
    int gpu = (int)draw(walk, (uint64_t)walk->n_gpus + 2) - 1;
    for (int i = 0; i < view->n_gpus && gpu >= 0 && gpu < view->n_gpus; i++)
        if (gpu_view_resident(&view->gpus[gpu], task) || view->gpus[gpu].id.is_mig_instance)
            gpu = (gpu + 1) % view->n_gpus;
    return gpu;
}

/* A move needs a recent sample of the GPU: most moves come behind one. */
static struct event move_event(struct walk *walk, uint64_t task)
{
    struct event event = {.kind = EVENT_MOVE, .time_us = walk->now_us, .task = task};
    event.yield.gpus = &walk->to_gpu;
    event.yield.n = chance(walk, 90) ? 1 : 0;
    return event;
}

static void make_yield(struct walk *walk, struct event *event)
{
    if (chance(walk, 80))
        event->task = any_attempt(walk);
    if (event->kind == EVENT_MOVE) {
        walk->to_gpu = any_destination(walk, event->task);
        walk->moving = chance(walk, 80) ? event->task : 0;
        *event = move_event(walk, event->task);
        if (walk->moving) {
            *event = (struct event){.kind = EVENT_SAMPLE, .time_us = walk->now_us};
            fill_sample(walk, event, walk->to_gpu);
        }
    } else if (event->kind == EVENT_SUSPENDED) {
        int64_t gib = chance(walk, 80) ? (int64_t)draw(walk, 20) : 0;
        event->yielded.bytes = gib ? reading_of((double)(gib * GIB)) : READING_NONE;
        event->yielded.took_us = SECOND_US;
    } else if (event->kind == EVENT_SUSPENSION_FAILED) {
        event->suspension_failed.why = (enum suspension_failure)draw(walk, SUSPENSION_FAILURES);
        event->suspension_failed.is_suspended = chance(walk, 50);
    } else if (event->kind == EVENT_IDLE) {
        event->idle_us = (int64_t)draw(walk, 10 * SECOND_US);
    } else if (event->kind == EVENT_MEMORY_WAIT) {
        event->memory_wait.bytes = (int64_t)draw(walk, 10) * GIB;
    }
}

static void make_suspension_cost(struct walk *walk, struct event *event)
{
    event->suspension_cost.way = draw(walk, SUSPENSION_WAYS);
    event->suspension_cost.cost = (struct suspension_cost){(int64_t)draw(walk, SECOND_US),
        (int64_t)draw(walk, 2 * SECOND_US), (int64_t)draw(walk, SECOND_US) - 100 * MS_US};
    event->suspension_cost.of_gpu = (int)(event->suspension_cost.cost.fixed_us %
                                          (core_view(walk->core)->n_gpus + 3)) -
                                    1;
}

/* Mostly of a promised task that runs. */
static void make_speed(struct walk *walk, struct event *event)
{
    for (int i = 0; i < 8 && chance(walk, 95); i++) {
        const struct task *task = core_task(walk->core, event->task);
        if (task && task->request.slowdown_max.valid)
            break;
        event->task = any_attempt(walk);
    }
    event->slowdown = chance(walk, 30) ? any_reading(walk, 4) : READING_NONE;
    event->step_us = any_reading(walk, 170.0 * MS_US);
}

/* Mostly of a service that runs. */
static void make_latency(struct walk *walk, struct event *event)
{
    for (int i = 0; i < 8 && chance(walk, 95); i++) {
        const struct task *task = core_task(walk->core, event->task);
        if (task && task->request.service.is_service)
            break;
        event->task = any_attempt(walk);
    }
    event->p99_us = any_reading(walk, 100.0 * MS_US);
}

/* Mostly of a task of an array that runs. */
static void make_metric(struct walk *walk, struct event *event)
{
    const struct task *task = core_next_task(walk->core, 0);
    uint64_t seen = 0;
    for (; task; task = core_next_task(walk->core, task->id)) {
        if (core_halving_rule(walk->core, task->array.id) && task->has_process &&
            draw(walk, ++seen) == 0) {
            event->task = task->array.id;
            event->metric.task = task->id;
        }
    }
    event->metric.rung = (int)draw(walk, 4);
    event->metric.value = any_reading(walk, 9);
}

static struct event make_input(struct walk *walk)
{
    static const enum event_kind often[] = {EVENT_SAMPLE, EVENT_SAMPLE, EVENT_SAMPLE, EVENT_SAMPLE,
        EVENT_SAMPLE, EVENT_SUBMIT, EVENT_STARTED, EVENT_STARTED, EVENT_EXITED, EVENT_EXITED,
        EVENT_ESTIMATE, EVENT_TICK, EVENT_RELEASE, EVENT_SUSPEND, EVENT_SUSPENDED, EVENT_RESUME,
        EVENT_RESUMED, EVENT_LATENCY, EVENT_LATENCY, EVENT_SPEED, EVENT_SPEED, EVENT_SPEED,
        EVENT_MOVE, EVENT_MOVE, EVENT_MOVE, EVENT_MOVED, EVENT_IDLE, EVENT_WAKE};
    static const enum event_kind seldom[] = {EVENT_UNSTARTED, EVENT_CANCEL, EVENT_RUN_AGAIN,
        EVENT_HOLD, EVENT_GPUS, EVENT_TICK, EVENT_SUSPENSION_FAILED, EVENT_MEMORY_WAIT,
        EVENT_MEMORY_WAIT_END, EVENT_DEPENDENCY, EVENT_UPDATE, EVENT_UPDATE, EVENT_RESERVE,
        EVENT_UNRESERVE, EVENT_SUSPENSION_COST, EVENT_METRIC, EVENT_METRIC, EVENT_METRIC};
    struct event event = {.time_us = walk->now_us};
    if (walk->moving) {
        event = move_event(walk, walk->moving);
        walk->moving = 0;
        return event;
    }
    event.kind = chance(walk, 85) ? often[draw(walk, ARRAY_SIZE(often))]
                                  : seldom[draw(walk, ARRAY_SIZE(seldom))];
    event.task = chance(walk, 5) ? draw(walk, UINT64_MAX) : draw(walk, walk->next_task + 1);
    if (event.kind == EVENT_SUBMIT)
        make_submit(walk, &event);
    else if (event.kind == EVENT_SAMPLE)
        make_sample(walk, &event);
    else if (event.kind == EVENT_GPUS)
        make_gpus(walk, &event);
    else if (event.kind == EVENT_ESTIMATE)
        event.estimate.need = any_need(walk);
    else if (event.kind == EVENT_EXITED)
        event.exited = (struct task_exit){.failure = any_failure(walk), .code = 1};
    else if (event.kind == EVENT_STARTED)
        make_started(walk, &event);
    else if (event.kind == EVENT_DEPENDENCY)
        make_dependency(walk, &event);
    else if (event.kind == EVENT_UPDATE)
        make_update(walk, &event);
    else if (event.kind == EVENT_RESERVE || event.kind == EVENT_UNRESERVE)
        make_reserve(walk, &event);
    else if (event.kind == EVENT_SUSPENSION_COST)
        make_suspension_cost(walk, &event);
    else if (event.kind == EVENT_METRIC)
        make_metric(walk, &event);
    else if (event.kind == EVENT_SPEED)
        make_speed(walk, &event);
    else if (event.kind == EVENT_LATENCY)
        make_latency(walk, &event);
    else if (event.kind >= EVENT_SUSPEND && event.kind < EVENT_TICK)
        make_yield(walk, &event);
    return event;
}

static bool is_logged(enum event_kind kind)
{
    return kind != EVENT_SAMPLE && kind != EVENT_LATENCY && kind != EVENT_SPEED &&
           kind != EVENT_TICK;
}

static void assert_same(char *expected, char *actual)
{
    assert_string_equal(expected, actual);
    free(expected);
    free(actual);
}

static void replay_step(struct walk *walk, const struct event *input)
{
    int n;
    const struct effect *effects = core_effects(walk->core, &n);
    if (is_logged(input->kind))
        assert_int_equal(core_apply(walk->replayed, input), 0);
    for (int i = 0; i < n; i++)
        if (effects[i].kind == EFFECT_APPEND) {
            assert_int_equal(core_apply(walk->replayed, &effects[i].event), 0);
            walk->accepted[effects[i].event.kind]++;
            if (effects[i].event.kind == EVENT_PAUSE)
                walk->paused_for[effects[i].event.yield.reason]++;
        }
}

static const char *const effect_words[] = {[EFFECT_APPEND] = "a decision",
    [EFFECT_START] = "the start",
    [EFFECT_KILL] = "the end",
    [EFFECT_WAIT] = "another reason for the wait",
    [EFFECT_SUSPEND] = "the suspension",
    [EFFECT_RESUME] = "the resumption",
    [EFFECT_MOVE] = "the move",
    [EFFECT_PAUSE] = "the pause",
    [EFFECT_CONTINUE] = "the end of the pause",
    [EFFECT_RELOCATE] = "the relocation",
    [EFFECT_GRANT_MEMORY] = "the grant of memory",
    [EFFECT_DENY_MEMORY] = "the denial of memory"};

static void tick(struct walk *walk)
{
    struct event event = {.kind = EVENT_TICK, .time_us = walk->now_us};
    assert_int_equal(core_step(walk->core, &event), 0);
    replay_step(walk, &event);
}

static int count_effects(const struct walk *walk, enum effect_kind kind)
{
    int n, found = 0;
    const struct effect *effects = core_effects(walk->core, &n);
    for (int i = 0; i < n; i++)
        found += effects[i].kind == kind;
    return found;
}

/* What may start beside a reservation depends on the time, too. */
static bool is_any_reserved(const struct walk *walk)
{
    int n;
    const struct cluster_view *view = core_view(walk->core);
    core_advances(walk->core, &n);
    for (int i = 0; i < view->n_gpus; i++)
        n += view->gpus[i].claims[CLAIM_HEAD] != 0;
    return n > 0;
}

/*
 * A pass does all that it can at once: another one at the same time decides nothing. Most samples
 * and speeds cause no pass. The next one may stop tasks then, by how long they have run; but if it
 * could start one, the sample should have caused it.
 */
static void check_pass_is_complete(struct walk *walk, enum event_kind after)
{
    int n;
    bool may_lack_pass = after == EVENT_SAMPLE || after == EVENT_SPEED;
    bool may_start = !may_lack_pass || is_any_reserved(walk);
    if (may_lack_pass || core_deadline_us(walk->core) <= walk->now_us)
        tick(walk);
    assert_true(may_start || count_effects(walk, EFFECT_START) == 0);
    tick(walk);
    const struct effect *effects = core_effects(walk->core, &n);
    for (int i = 0; i < n; i++)
        if (effects[i].kind != EFFECT_WAIT) /* a message: what came behind it may explain it anew */
            fail_msg("a second pass at the same time decides %s of task %" PRIu64,
                effect_words[effects[i].kind], effects[i].task);
}

/* No more tasks of an array are in queues or run than it allows. */
static void check_array_limit(const struct walk *walk, const struct task *task)
{
    int n = 0;
    for (const struct task *each = core_next_task(walk->core, task->array.id);
         each && each->array.id == task->array.id; each = core_next_task(walk->core, each->id))
        n += each->state != TASK_HELD && each->state != TASK_BLOCKED &&
             !task_state_is_done(each->state);
    assert_true(task->array.limit == 0 || n <= task->array.limit);
    if (task->state == TASK_BLOCKED && !task->n_after && !task->request.limited &&
        task->request.begin_us <= walk->now_us)
        assert_int_equal(n, task->array.limit);
}

/* No more limited tasks of a user are at work than the settings allow. */
static void check_user_limit(const struct walk *walk, uint32_t uid)
{
    int n = 0, most = core_get_settings(walk->core)->user_limits.tasks;
    for (const struct task *task = core_next_task(walk->core, 0); task;
         task = core_next_task(walk->core, task->id))
        n += task->uid == uid && task->request.limited && task->state != TASK_HELD &&
             task->state != TASK_BLOCKED && !task_state_is_done(task->state);
    assert_true(most == 0 || n <= most);
}

/* The users' copies are those of their tasks, and none is left of tasks that have none. */
static void check_copies(const struct walk *walk)
{
    double bytes = 0;
    for (const struct task *task = core_next_task(walk->core, 0); task;
         task = core_next_task(walk->core, task->id)) {
        double own = task->run->yield.counted_bytes;
        bool may_have = task_state_is_changing(task->state) || task->state == TASK_SUSPENDED;
        assert_true(own >= 0 && (may_have || own == 0));
        bytes += own;
    }
    assert_true(fabs(core_copies_bytes(walk->core) - bytes) < 1);
}

/* What policies read instead of the GPUs is noted as it is. */
static void check_open_bytes(const struct walk *walk)
{
    const struct cluster_view *seen = core_view(walk->core);
    for (int i = 0; i < seen->n_gpus; i++)
        assert_true(seen->open_bytes[i] == gpu_view_open_bytes(&seen->gpus[i]));
}

/* No task is blocked without a cause, and none that runs has one. */
static void check_gates(const struct walk *walk)
{
    for (uint32_t uid = 0; uid < 3; uid++)
        check_user_limit(walk, uid);
    for (const struct task *task = core_next_task(walk->core, 0); task;
         task = core_next_task(walk->core, task->id)) {
        if (task->state == TASK_BLOCKED)
            assert_true(task->n_after > 0 || task->request.begin_us > walk->now_us ||
                        task->array.limit > 0 || task->request.limited);
        if (task->array.id)
            check_array_limit(walk, task);
        if (task_state_has_attempt(task->state))
            assert_true(task->n_after == 0 && task->request.begin_us <= walk->now_us);
        for (int i = 0; i < task->n_after; i++)
            assert_true(task->after[i].last < task->id);
        assert_true(
            core_recovers_alone(walk->core, task) == core_recovery_need(walk->core, task).is_alone);
    }
}

static void step(struct walk *walk)
{
    walk->now_us += (int64_t)draw(walk, 1500000);
    struct event event = make_input(walk);
    char *before = world_digest(walk->core);
    int r = core_step(walk->core, &event);
    assert_true(r >= 0);
    if (r == 0) {
        replay_step(walk, &event);
        free(before);
    } else {
        assert_same(before, world_digest(walk->core));
    }
    (r ? walk->refused : walk->accepted)[event.kind]++;
    if (r == 0 && event.kind == EVENT_SUBMIT)
        walk->submitted += event.submit.elements ? (uint64_t)event.submit.n_elements : 1;
    world_check(walk->core);
    bool leaves_pass = event.kind == EVENT_CANCEL && chance(walk, 50); /* to the next step */
    if (r == 0 && !leaves_pass)
        check_pass_is_complete(walk, event.kind);
    if (r == 0)
        check_gates(walk);
    check_copies(walk);
    check_open_bytes(walk);
    assert_same(world_digest(walk->core), world_digest(walk->replayed));
}

static void explain_all(const struct walk *walk)
{
    char text[512];
    for (const struct task *task = core_next_task(walk->core, 0); task;
         task = core_next_task(walk->core, task->id)) {
        core_explain(walk->core, task->id, walk->now_us, text, sizeof text);
        bool has_stopped = task->run->yield.since_us != 0;
        assert_int_equal(text[0] != '\0', task->queue || task->state == TASK_HELD || has_stopped ||
                                              task->run->memory_wait.bytes > 0);
        assert_int_equal(
            strcmp(core_reason_word(walk->core, task->id), "None") != 0, text[0] != '\0');
    }
}

static void check_no_task_lost(const struct walk *walk, uint64_t submitted)
{
    uint64_t n = 0;
    for (const struct task *task = core_next_task(walk->core, 0); task;
         task = core_next_task(walk->core, task->id))
        n++;
    assert_int_equal(n, submitted);
}

static uint64_t seed_under_way; /* 0: no walk is */

/* What COLLOC_WALK_SEED adds to the seeds of all walks. */
static uint64_t seed_offset(void)
{
    const char *text = getenv("COLLOC_WALK_SEED");
    return text ? strtoull(text, NULL, 10) : 0;
}

static struct walk start_walk(uint64_t number)
{
    uint64_t seed = seed_under_way = number + seed_offset();
    struct walk walk = {.random = seed * 0x9E3779B97F4A7C15u + 1, .next_task = 1};
    struct core_settings settings = core_settings_default();
    settings.policy = any_policy(&walk);
    settings.conditions.tasks_per_gpu_max = (int)draw(&walk, 4);
    settings.settle_us = (int64_t)draw(&walk, 10) * SECOND_US;
    settings.recoveries_max = (int)draw(&walk, 4);
    settings.can_suspend = settings.preload = seed % 4 != 0;
    settings.suspend_unused_us = seed % 3 == 0 ? 0 : SECOND_US;
    settings.copies_max_bytes = seed % 5 ? 0 : (int64_t)(seed % 7) * 10 * GIB;
    settings.can_pause = seed % 3 != 0;
    settings.probe_share = seed % 4 ? 0.5 : 0;
    settings.thins_out = seed % 5 != 0;
    settings.preempt = seed % 2 != 0;
    settings.look_ahead = seed % 4 == 1;
    settings.make_room = seed % 3 != 1;
    settings.user_limits.tasks = (int)draw(&walk, 4);
    settings.user_limits.gpus = seed % 2 ? GPUS_MAX + 2 : 0;
    walk.core = core_create(&settings);
    walk.replayed = core_create(&settings);
    walk.n_gpus = 1 + (int)draw(&walk, GPUS_MAX);
    struct event event = {.kind = EVENT_GPUS};
    make_gpus(&walk, &event);
    assert_int_equal(core_step(walk.core, &event), 0);
    assert_int_equal(core_apply(walk.replayed, &event), 0);
    return walk;
}

static void end_walk(struct walk *walk)
{
    core_destroy(walk->core);
    core_destroy(walk->replayed);
    seed_under_way = 0;
}

/* After each test, passed or failed. */
static int report_seed(void **state)
{
    if (seed_under_way)
        print_error("the walk had the seed %" PRIu64 "\n", seed_under_way);
    return 0;
}

static void walks_keep_the_state_sound_and_replayable(void **state)
{
    int accepted[EVENT_KINDS] = {0}, refused[EVENT_KINDS] = {0}, ends[TASK_STATES] = {0};
    int n_probes = 0;
    for (uint64_t number = 1; number <= WALKS; number++) {
        struct walk walk = start_walk(number);
        for (int i = 0; i < STEPS && walk.next_task < TASKS_MAX; i++)
            step(&walk);
        explain_all(&walk);
        check_no_task_lost(&walk, walk.submitted);
        for (int i = 0; i < EVENT_KINDS; i++) {
            accepted[i] += walk.accepted[i];
            refused[i] += walk.refused[i];
        }
        n_probes += walk.paused_for[YIELD_TO_PROBE];
        for (const struct task *task = core_next_task(walk.core, 0); task;
             task = core_next_task(walk.core, task->id))
            ends[task->state]++;
        end_walk(&walk);
    }
    if (seed_offset())
        return;
    /* The walks have been everywhere. */
    for (enum event_kind kind = EVENT_GPUS; kind < EVENT_KINDS; kind++) {
        bool is_refusable = kind < EVENT_TICK && kind != EVENT_GPUS;
        if (kind == EVENT_RELOCATING || kind == EVENT_RELOCATED)
            continue; /* these GPUs have no NVLink: tests/scenario/neighbour-*.scenario */
        if (kind == EVENT_DELAYS)
            continue; /* no mix is measured for long enough here: test_delays.c */
        if (kind == EVENT_STEP)
            continue; /* it changes nothing: tests/system/test_srun_steps.py */
        if (accepted[kind] == 0)
            fail_msg("%s was never accepted", event_name(kind));
        assert_int_equal(refused[kind] > 0, is_refusable);
    }
    assert_true(n_probes > 0);
    for (int i = TASK_COMPLETED; i < TASK_STATES; i++)
        if (ends[i] == 0)
            fail_msg("no task has ended %s", task_state_word((enum task_state)i));
}

/* ---- no task waits for ever ---- */

static bool is_known(const struct walk *walk, const struct dependency *dependency)
{
    const struct task *task = core_next_task(walk->core, dependency->first - 1);
    return task && task->id <= dependency->last;
}

/* Reports tasks that never were as ended, as a driver does with those that the core forgot. */
static void settle_dependencies(struct walk *walk, const struct task *task)
{
    for (int i = 0; i < task->n_after;) {
        struct event event = {.kind = EVENT_DEPENDENCY,
            .time_us = walk->now_us,
            .task = task->id,
            .dependency = {task->after[i], true, task->after[i].first}};
        if (is_known(walk, &task->after[i]))
            i++;
        else
            assert_int_equal(core_step(walk->core, &event), 0);
    }
}

/* Ends each wait that time does not end: cancels requests beyond the machine, releases held tasks,
 * gives estimates, settles dependencies on unknown tasks. */
static void unblock(struct walk *walk)
{
    struct fault fault;
    struct event event = {.kind = EVENT_GPUS,
        .time_us = walk->now_us,
        .gpus = {.list = walk->gpus, .n = walk->n_gpus}};
    for (int i = 0; i < walk->n_gpus; i++) {
        walk->gpus[i].is_place = true;
        walk->gpus[i].is_gone = false;
    }
    assert_int_equal(core_step(walk->core, &event), 0);
    for (const struct task *task = core_next_task(walk->core, 0); task;
         task = core_next_task(walk->core, task->id)) {
        event = (struct event){.kind = EVENT_ESTIMATE, .time_us = walk->now_us, .task = task->id};
        core_step(walk->core, &event);
        settle_dependencies(walk, task);
        world_input(walk->core, walk->now_us, EVENT_RESUME, task->id);
        if (core_check_request(walk->core, &task->request, &fault) < 0)
            world_input(walk->core, walk->now_us, EVENT_CANCEL, task->id);
        else
            world_input(walk->core, walk->now_us, EVENT_RELEASE, task->id);
    }
}

/* Suspensions, resumptions and moves that are under way succeed. */
static void answer_yields(struct walk *walk)
{
    static const enum event_kind answers[] = {EVENT_SUSPENDED, EVENT_RESUMED, EVENT_MOVED};
    for (const struct task *task = core_next_task(walk->core, 0); task;
         task = core_next_task(walk->core, task->id))
        for (size_t i = 0; i < ARRAY_SIZE(answers) && task_state_is_changing(task->state); i++)
            world_input(walk->core, walk->now_us, answers[i], task->id);
}

/* Ends tasks that hold GPUs, half of them for lack of GPU memory, so that the recovery queue and
 * the main queue compete. Services end by a cancel only. */
static int end_running(struct walk *walk)
{
    int unfinished = 0;
    for (const struct task *task = core_next_task(walk->core, 0); task;
         task = core_next_task(walk->core, task->id)) {
        unfinished += !task_state_is_done(task->state);
        if (task->request.service.is_service && chance(walk, 10))
            world_input(walk->core, walk->now_us, EVENT_CANCEL, task->id);
        bool computes = task_state_holds_gpus(task->state) && task->state != TASK_PAUSED;
        bool is_killed = task->state == TASK_SUSPENDED && task->ending;
        if ((computes || is_killed) && chance(walk, 30))
            world_exit(walk->core, walk->now_us, task->id,
                chance(walk, 50) ? FAILURE_GPU_OOM : FAILURE_NONE);
    }
    return unfinished;
}

static void every_task_comes_to_an_end(void **state)
{
    for (uint64_t number = 1; number <= WALKS; number++) {
        struct walk walk = start_walk(number);
        for (int i = 0; i < 400; i++)
            step(&walk);
        unblock(&walk);
        int rounds = 0;
        do {
            walk.now_us += SECOND_US;
            for (int i = 0; i < walk.n_gpus; i++) {
                int n = core_view(walk.core)->gpus[i].n_residents;
                assert_int_equal(world_sample(walk.core, walk.now_us, i, 4 * n, 0.1 * n, 0), 0);
            }
            answer_yields(&walk);
            world_check(walk.core);
            assert_true(++rounds < 3000);
        } while (end_running(&walk) > 0);
        end_walk(&walk);
    }
}

/* What is under way is done again; a task that is to end is ended, after that. */
static void check_effect_is_repeated(const struct core *core, const struct task *task)
{
    static const int effects[TASK_STATES] = {[TASK_PAUSED] = EFFECT_PAUSE,
        [TASK_SUSPENDING] = EFFECT_SUSPEND,
        [TASK_RESUMING] = EFFECT_RESUME,
        [TASK_MOVING] = EFFECT_MOVE};
    bool is_changing = task_state_is_changing(task->state);
    if (effects[task->state])
        assert_int_equal(world_count(core, (enum effect_kind)effects[task->state], task->id), 1);
    assert_int_equal(world_count(core, EFFECT_KILL, task->id), task->ending && !is_changing);
}

/* A crash may cut the log anywhere. After the replay of any part of it, each task can still end. */
static void a_log_cut_anywhere_leads_on(void **state)
{
    for (uint64_t number = 1; number <= WALKS; number++) {
        struct walk walk = start_walk(number);
        int steps = (int)draw(&walk, 600);
        for (int i = 0; i < steps; i++)
            step(&walk);
        struct event last;
        do {
            last = make_input(&walk);
        } while (!is_logged(last.kind) || core_apply(walk.replayed, &last) != 0);

        walk.now_us += SECOND_US;
        struct event tick = {.kind = EVENT_TICK, .time_us = walk.now_us};
        assert_int_equal(core_step(walk.replayed, &tick), 0);
        world_check(walk.replayed);
        for (const struct task *task = core_next_task(walk.replayed, 0); task;
             task = core_next_task(walk.replayed, task->id)) {
            if (!task_state_has_attempt(task->state))
                continue;
            assert_int_equal(world_input(walk.replayed, walk.now_us, EVENT_STARTED, task->id), 0);
            check_effect_is_repeated(walk.replayed, task);
        }
        world_check(walk.replayed);
        end_walk(&walk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(walks_keep_the_state_sound_and_replayable, report_seed),
        cmocka_unit_test_teardown(every_task_comes_to_an_end, report_seed),
        cmocka_unit_test_teardown(a_log_cut_anywhere_leads_on, report_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
