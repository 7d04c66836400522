/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of policy/backfill.h, tested against runs without backfill. Machines, tasks and
 * times are drawn at random. Whenever a task becomes the head of the queue and has to wait, two
 * runs continue from there: one with backfill, one without. Times are known and right, and sharing
 * slows no task; so the head must not start later with backfill, except for the second until the
 * next sample shows free memory. Tasks arrive with falling times: the head takes longest, and
 * remains the head.
 *
 * Of the policies that go by the queue's order: no head starts later than was predicted when it
 * became the head; or, where times are not known, than the last task ends that ran then. So it is,
 * too, of the few wide tasks of a user beside another who floods the queue.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "policy/policies.h"
#include "sim/chance.h"
#include "sim/sim_driver.h"

enum { TASKS_MAX = 160, TASKS = 24, GPUS_MAX = 4, RUNS = 5 };

/* How long tasks take, as the core knows it. */
enum times { TIMES_EXPECTED, TIMES_LIMITED, TIMES_UNKNOWN };

struct pretend {
    int64_t arrives_us, runs_us, memory_bytes, started_us;
    int64_t starts_by_us; /* as was predicted when it became the head; 0: it did not wait */
    bool runs;
};

struct world {
    uint64_t seed;
    int n_gpus;
    struct gpu_identity gpus[GPUS_MAX];
    int n_tasks;
    struct pretend tasks[TASKS_MAX + 1]; /* by id */
    uint64_t frozen; /* once this task is the head and waits, no task is backfilled; 0: never so */
    bool is_frozen;
    uint64_t waited[TASKS_MAX + 1]; /* the heads that had to wait, in order */
    int n_waited;
    enum times times;
    bool is_flooded; /* by user 2; every sixth task is user 1's, short, and has all GPUs */
    struct core_settings settings;
    struct sim *sim;
};

static uint64_t draw(const struct world *world, uint64_t index, uint64_t n)
{
    return chance_below(world->seed, index, n);
}

static void on_start(void *context, struct sim *sim, const struct task *task)
{
    struct world *world = context;
    struct pretend *pretend = &world->tasks[task->id];
    pretend->started_us = sim_now_us(sim);
    pretend->runs = true;
    struct event started = {.kind = EVENT_STARTED, .time_us = sim_now_us(sim), .task = task->id};
    struct event exited = {
        .kind = EVENT_EXITED, .time_us = sim_now_us(sim) + pretend->runs_us, .task = task->id};
    assert_int_equal(sim_schedule_event(sim, &started), 0);
    assert_int_equal(sim_schedule_event(sim, &exited), 0);
}

static void on_kill(void *context, struct sim *sim, const struct task *task)
{
    fail();
}

/* Tasks take their memory at once, and their activity is as given: so low that none is slowed. */
static void sample(struct world *world, int gpu)
{
    struct task_memory seen[TASKS_MAX];
    struct event event = {
        .kind = EVENT_SAMPLE, .time_us = sim_now_us(world->sim), .sample = {.gpu = gpu}};
    const struct gpu_view *view = &core_view(sim_core(world->sim))->gpus[gpu];
    double used = 0;
    for (int i = 0; i < view->n_residents; i++) {
        double bytes = (double)world->tasks[view->residents[i].task].memory_bytes;
        seen[event.sample.n_tasks++] = (struct task_memory){
            .task = view->residents[i].task, .mem_used_bytes = reading_of(bytes)};
        used += bytes;
    }
    event.sample.tasks = seen;
    event.sample.mem_used_bytes = reading_of(used);
    event.sample.smact = event.sample.utilisation = reading_of(0.001 * view->n_residents);
    event.sample.external_processes = reading_of(0);
    assert_int_equal(sim_step(world->sim, &event), 0);
}

/* The only wake-up: all GPUs are sampled. */
static void on_wake(void *context, struct sim *sim, const struct sim_wakeup *wakeup)
{
    struct world *world = context;
    for (int i = 0; i < world->n_gpus; i++)
        sample(world, i);
    struct sim_wakeup next = {.time_us = wakeup->time_us + SECOND_US};
    for (const struct task *task = core_next_task(sim_core(sim), 0); task;
         task = core_next_task(sim_core(sim), task->id))
        if (!task_state_is_done(task->state)) {
            sim_schedule_wakeup(sim, &next);
            return;
        }
    if (wakeup->time_us <= world->tasks[world->n_tasks].arrives_us)
        sim_schedule_wakeup(sim, &next);
}

/* When the last of the tasks ends that run now. */
static int64_t all_end_us(const struct world *world)
{
    int64_t last_us = sim_now_us(world->sim);
    for (int id = 1; id <= world->n_tasks; id++) {
        const struct pretend *task = &world->tasks[id];
        int64_t ends_us = task->started_us + task->runs_us;
        if (task->runs && ends_us > last_us)
            last_us = ends_us;
    }
    return last_us;
}

static void record_head(struct world *world, struct sim *sim, uint64_t head)
{
    int64_t start_us = core_view(sim_core(sim))->reservation_start_us;
    if (!world->tasks[head].starts_by_us)
        world->tasks[head].starts_by_us = start_us == START_UNKNOWN ? all_end_us(world) : start_us;
}

static void on_event(void *context, struct sim *sim, const struct event *event)
{
}

static void on_wait(void *context, struct sim *sim, uint64_t task)
{
    struct world *world = context;
    record_head(world, sim, task);
    if (world->n_waited == 0 || world->waited[world->n_waited - 1] != task)
        world->waited[world->n_waited++] = task;
    if (task != world->frozen || world->is_frozen)
        return;
    world->is_frozen = true;
    world->settings.backfill = false;
    core_configure(sim_core(sim), &world->settings);
}

static int shorter(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

static void make(struct world *world, uint64_t seed)
{
    int64_t times_us[TASKS];
    *world = (struct world){.seed = seed, .settings = core_settings_default()};
    world->settings.policy = &policy_predictive;
    world->settings.settle_us = 0;
    world->n_gpus = 1 + (int)draw(world, 1, GPUS_MAX);
    for (int i = 0; i < world->n_gpus; i++) {
        world->gpus[i] = (struct gpu_identity){.mem_total_bytes = 40 * GIB, .is_place = true};
        snprintf(world->gpus[i].uuid, sizeof world->gpus[i].uuid, "GPU-%d", i);
    }
    world->n_tasks = TASKS;
    for (uint64_t id = 1; id <= TASKS; id++)
        times_us[id - 1] = (int64_t)(10 + draw(world, 10 * id + 1, 300)) * SECOND_US;
    qsort(times_us, TASKS, sizeof *times_us, shorter);
    for (uint64_t id = 1; id <= TASKS; id++) {
        struct pretend *task = &world->tasks[id];
        task->arrives_us = world->tasks[id - 1].arrives_us +
                           (int64_t)draw(world, 10 * id, 30) * SECOND_US;
        task->runs_us = times_us[id - 1];
        task->memory_bytes = (int64_t)(1 + draw(world, 10 * id + 2, 36)) * GIB;
    }
}

static bool is_wide(const struct world *world, uint64_t id)
{
    return world->is_flooded && id % 6 == 0;
}

static struct event submission(const struct world *world, uint64_t id)
{
    const struct pretend *task = &world->tasks[id];
    struct event event = {.kind = EVENT_SUBMIT, .time_us = task->arrives_us + 1, .task = id};
    event.submit.request = (struct task_request){
        .gpus = is_wide(world, id) ? world->n_gpus
                                   : 1 + (int)draw(world, 10 * id + 3, (uint64_t)world->n_gpus),
        .sharing = SHARING_STREAMS,
        .need = {NEED_DECLARED, task->memory_bytes},
        .expect = {reading_of(1e-9), reading_of(1e-9), reading_of(0), READING_NONE},
    };
    event.submit.uid = is_wide(world, id) ? 1 : 2;
    if (world->times == TIMES_EXPECTED)
        event.submit.request.expect.time_us = reading_of((double)task->runs_us);
    if (world->times == TIMES_LIMITED)
        event.submit.request.time_limit_us = task->runs_us +
                                             (int64_t)draw(world, 10 * id + 5, 100) * SECOND_US;
    return event;
}

static void play(struct world *world)
{
    const struct sim_world behind = {world, on_start, on_kill, on_wake, NULL};
    const struct sim_observer observer = {world, on_event, on_wait};
    world->sim = sim_create(&world->settings, &behind, &observer);
    struct event gpus = {.kind = EVENT_GPUS, .gpus = {.list = world->gpus, .n = world->n_gpus}};
    struct sim_wakeup samples = {.time_us = 0};
    assert_int_equal(sim_schedule_event(world->sim, &gpus), 0);
    assert_int_equal(sim_schedule_wakeup(world->sim, &samples), 0);
    for (int id = 1; id <= world->n_tasks; id++) {
        struct event event = submission(world, (uint64_t)id);
        assert_int_equal(sim_schedule_event(world->sim, &event), 0);
    }
    assert_int_equal(sim_run(world->sim, INT64_MAX), 0);
    for (int id = 1; id <= world->n_tasks; id++)
        assert_int_equal(core_task(sim_core(world->sim), (uint64_t)id)->state, TASK_COMPLETED);
    sim_destroy(world->sim);
}

/* Runs the world of the seed; no task is backfilled once `frozen` is the head and waits. */
static void run(struct world *world, uint64_t seed, uint64_t frozen)
{
    make(world, seed);
    world->frozen = frozen;
    play(world);
}

static void the_head_starts_no_later(void **state)
{
    static struct world free_run, patient_run;
    int compared = 0, sooner = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        run(&free_run, seed, 0);
        for (int i = 0; i < free_run.n_waited; i++) {
            uint64_t first = free_run.waited[i];
            run(&patient_run, seed, first);
            if (free_run.tasks[first].started_us > patient_run.tasks[first].started_us + SECOND_US)
                fail_msg("seed %d: task %d starts at %.0f s, not at %.0f s", (int)seed, (int)first,
                    (double)free_run.tasks[first].started_us / 1e6,
                    (double)patient_run.tasks[first].started_us / 1e6);
            for (uint64_t id = first + 1; id <= TASKS; id++)
                sooner += free_run.tasks[id].started_us < patient_run.tasks[id].started_us;
            compared++;
        }
    }
    assert_true(compared > RUNS);
    assert_true(sooner > RUNS);
}

/* How many tasks of the run started before one that was submitted earlier. */
static int count_passing(const struct world *world)
{
    int n = 0;
    for (int id = 2; id <= world->n_tasks; id++)
        n += world->tasks[id].started_us < world->tasks[id - 1].started_us;
    return n;
}

/* Seconds: samples have to show free memory and, of the tasks that are there then, the activity. */
enum { SEEN_AFTER = 6 };

static int check_heads(
    const struct policy *policy, enum times times, bool is_flooded, uint64_t seed, const char *what)
{
    static struct world world;
    make(&world, seed);
    world.settings.policy = policy;
    world.times = times;
    world.is_flooded = is_flooded;
    for (uint64_t id = 1; id <= TASKS; id++)
        if (is_wide(&world, id))
            world.tasks[id].runs_us = 10 * SECOND_US;
    play(&world);
    for (int id = 1; id <= TASKS; id++) {
        const struct pretend *task = &world.tasks[id];
        bool stays_head = !is_flooded || is_wide(&world, (uint64_t)id);
        if (stays_head && task->starts_by_us &&
            task->started_us > task->starts_by_us + SEEN_AFTER * SECOND_US)
            fail_msg("%s, times %s, seed %d: task %d starts at %.0f s, not by %.0f s", policy->name,
                what, (int)seed, id, (double)task->started_us / 1e6,
                (double)task->starts_by_us / 1e6);
    }
    return count_passing(&world);
}

static void every_head_starts_as_predicted(void **state)
{
    static const struct policy *const policies[] = {
        &policy_exclusive, &policy_magm, &policy_lug, &policy_best_fit};
    static const char *const names[] = {"expected", "limited", "unknown"};
    for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
        for (enum times times = TIMES_EXPECTED; times <= TIMES_UNKNOWN; times++) {
            int passed = 0;
            for (uint64_t seed = 1; seed <= 4 * RUNS; seed++) {
                passed += check_heads(policies[i], times, false, seed, names[times]);
                check_heads(policies[i], times, true, seed, names[times]);
            }
            bool may_pass = times != TIMES_UNKNOWN || !policies[i]->exclusive_gpus;
            if (may_pass && passed < RUNS)
                fail_msg("%s, times %s: %d backfilled", policies[i]->name, names[times], passed);
        }
}

/* One GPU, tasks that fill it; the first is shorter than all later ones. */
static void a_task_that_a_hundred_passed_is_the_head(void **state)
{
    static struct world world;
    make(&world, 1);
    world.n_gpus = 1;
    world.n_tasks = TASKS_MAX;
    for (int id = 1; id <= TASKS_MAX; id++)
        world.tasks[id] = (struct pretend){.arrives_us = SECOND_US,
            .runs_us = (id == 2 ? 5 : 6) * SECOND_US,
            .memory_bytes = 36 * GIB};
    play(&world);
    int before = 0;
    for (int id = 3; id <= TASKS_MAX; id++)
        before += world.tasks[id].started_us < world.tasks[2].started_us;
    assert_int_equal(before, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_head_starts_no_later),
        cmocka_unit_test(every_head_starts_as_predicted),
        cmocka_unit_test(a_task_that_a_hundred_passed_is_the_head)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
