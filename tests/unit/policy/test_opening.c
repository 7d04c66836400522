/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is predicted of the head of the queue (policy/opening.h): the example of opening.c, how
 * often a policy is asked for it, and that an answer does not depend on what was noted before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/array.h"
#include "core/memory_domain.h"
#include "policy/backfill.h"
#include "policy/opening.h"
#include "policy/policies.h"
#include "policy/stage.h"
#include "pretend_gpus.h"

enum { GPUS_MAX = 3 };

#define MINUTE (60 * SECOND_US)

/* ---- a policy that answers as another one does ---- */

static const struct policy *inner;
static int n_predicted; /* questions about GPUs as they are predicted to be */
static int n_noted;     /* questions that found an outlook noted */
static int n_ruled_out; /* answers that follow from the memory alone */

static void count_noted(const struct placement_query *query)
{
    for (int i = 0; query->outlooks && i < query->view->n_gpus; i++)
        n_noted += query->outlooks[i].is_noted;
}

/* Would the head be admitted beside the task once at most as many have left? */
static bool is_admitted_beside(
    const struct placement_query *of_head, int gpu, const struct task *joining, int n_left)
{
    struct placement_query query = *of_head;
    struct verdict verdict;
    struct stage stage;
    int chosen;
    stage_init(&stage, of_head, gpu);
    stage_add_task(&stage, joining, 1, of_head->now_us);
    query.view = &stage.view;
    query.on_one_gpu = true;
    query.head = NULL;
    query.first_gpu = query.end_gpu = 0;
    for (int i = 0; i <= n_left; i++) {
        if (inner->choose(&query, &chosen, &verdict) == PLACE_NOW)
            return true;
        stage_advance(&stage);
    }
    return false;
}

/* Where the memory rules the head out, no prediction admits it. */
static void check_ruled_out(const struct placement_query *query)
{
    struct placement_query of_head = *query;
    of_head.task = query->head;
    of_head.outlooks = NULL;
    for (int i = 0; i < query->view->n_gpus && query->head; i++) {
        int n_residents = query->view->gpus[i].n_residents;
        for (int n = 0; n <= n_residents && n_residents < PREDICT_RESIDENTS_MAX; n++) {
            if (!opening_is_ruled_out(&of_head, i, query->task, n))
                continue;
            assert_false(is_admitted_beside(&of_head, i, query->task, n));
            n_ruled_out++;
        }
    }
}

/* Asks twice, with what is noted and without. */
static enum placement_answer choose_twice(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    struct placement_query fresh = *query;
    struct verdict verdicts[GPUS_MAX];
    int gpus[GPUS_MAX];
    fresh.outlooks = NULL;
    n_predicted += query->on_one_gpu;
    if (query->on_one_gpu || !query->outlooks)
        return inner->choose(query, ret_gpus, ret_verdicts);
    count_noted(query);
    check_ruled_out(query);
    enum placement_answer first = inner->choose(&fresh, gpus, verdicts);
    enum placement_answer answer = inner->choose(query, ret_gpus, ret_verdicts);
    assert_int_equal(answer, first);
    for (int i = 0; i < query->view->n_gpus && answer == PLACE_WAIT; i++)
        assert_int_equal(ret_verdicts[i].kind, verdicts[i].kind);
    for (int i = 0; i < query->task->request.gpus && answer == PLACE_NOW; i++)
        assert_int_equal(ret_gpus[i], gpus[i]);
    return answer;
}

static enum placement_answer choose_once(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    n_predicted += query->on_one_gpu;
    return inner->choose(query, ret_gpus, ret_verdicts);
}

static bool are_alike(const struct opening *a, const struct opening *b)
{
    return a->gpu == b->gpu && a->at_us == b->at_us && a->n_left == b->n_left;
}

/* A prediction that ends early answers as one that does not. */
static int n_bounded;

static bool reserve_twice(const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us)
{
    struct opening all[GPUS_MAX], bounded;
    for (int i = 0; i < query->view->n_gpus; i++)
        assert_true(opening_predict(query, i, NULL, &all[i]));
    for (int i = 0; i < query->view->n_gpus; i++) {
        for (int k = 0; k < query->view->n_gpus; k++) {
            bool is_sooner = opening_is_before(&all[i], &all[k]);
            assert_int_equal(opening_predict(query, i, &all[k], &bounded), is_sooner);
            assert_true(!is_sooner || are_alike(&bounded, &all[i]));
            n_bounded += is_sooner;
        }
    }
    return backfill_reserve(query, ret_gpus, ret_start_us);
}

static const struct policy policy_once = {
    .name = "once", .choose = choose_once, .reserve = backfill_reserve};
static const struct policy policy_twice = {
    .name = "twice", .choose = choose_twice, .reserve = reserve_twice};

/* ---- pretend GPUs, on which each task has the memory that it requires ---- */

static struct core *core;
static int64_t now_us;
static bool is_faulty; /* then the GPUs take no task */

static void sample(int gpu)
{
    const struct gpu_view *view = &core_view(core)->gpus[gpu];
    struct task_memory tasks[16];
    double used = 0;
    struct event event = {.kind = EVENT_SAMPLE, .time_us = now_us};
    for (int i = 0; i < view->n_residents && i < (int)ARRAY_SIZE(tasks); i++) {
        const struct resident *resident = &view->residents[i];
        tasks[event.sample.n_tasks++] = (struct task_memory){
            .task = resident->task, .mem_used_bytes = resident->need_bytes};
    }
    const struct resident *each;
    struct domain_walk walk = memory_domain_walk(view);
    while ((each = memory_domain_resident(&walk)))
        used += each->need_bytes.value;
    event.sample.gpu = gpu;
    event.sample.tasks = tasks;
    event.sample.mem_used_bytes = reading_of(used);
    event.sample.smact = event.sample.utilisation = reading_of(0.05 * view->n_residents);
    event.sample.external_processes = reading_of(0);
    event.sample.faulty = is_faulty;
    assert_int_equal(core_step(core, &event), 0);
}

static void let_pass(int seconds)
{
    for (; seconds > 0; seconds--) {
        now_us += SECOND_US;
        for (int i = 0; i < core_view(core)->n_gpus; i++)
            sample(i);
    }
}

/* Returns whether the task starts. */
static bool submit(uint64_t id, int64_t bytes)
{
    struct task_request request = {
        .gpus = 1, .need = {NEED_DECLARED, bytes}, .expect = {.smact = reading_of(0.05)}};
    assert_int_equal(world_submit(core, now_us, id, request), 0);
    return world_state(core, id) != TASK_QUEUED;
}

/* ---- the example ---- */

/* A, B and C are 1, 2 and 3; the head, 4, is admitted when A has left. */
static void start_example(void)
{
    static const int gib[] = {20, 2, 2};
    inner = &policy_magm;
    core = world_core(&policy_once, 1);
    now_us = 0;
    let_pass(1);
    for (size_t i = 0; i < ARRAY_SIZE(gib); i++) {
        assert_true(submit(i + 1, gib[i] * GIB));
        let_pass(100);
    }
    assert_false(submit(4, 30 * GIB));
}

static void a_task_starts_if_the_head_is_admitted_after_as_many_have_left(void **state)
{
    start_example();
    assert_false(submit(5, 8 * GIB));
    assert_true(submit(6, 1 * GIB));
    core_destroy(core);
}

/* Asked are, of the head without the task: as the GPU is, and when A has left. With any of the
 * tasks there, the memory is short for certain. */
static void the_head_is_predicted_once_for_all_tasks_behind_it(void **state)
{
    enum { BEHIND = 30 };
    start_example();
    for (int i = 1; i < BEHIND; i++)
        assert_false(submit(10 + (uint64_t)i, 8 * GIB + i));
    n_predicted = 0;
    assert_false(submit(10 + BEHIND, 8 * GIB));
    assert_int_equal(n_predicted, 2);
    core_destroy(core);
}

/* Without A, which leaves first, 36 GiB are free: too little for the head and 5 GiB. */
static void a_task_that_leaves_too_little_memory_is_not_predicted(void **state)
{
    start_example();
    n_predicted = 0;
    assert_false(submit(5, 5 * GIB));
    assert_int_equal(n_predicted, 2); /* without the task */
    core_destroy(core);
}

static void a_task_like_the_head_waits_without_being_tried(void **state)
{
    start_example();
    n_predicted = 0;
    assert_false(submit(5, 30 * GIB));
    assert_int_equal(n_predicted, 0);
    core_destroy(core);
}

/* Minutes: 0: not known. */
static void submit_timed(uint64_t id, int gib, double smact, int expected, int limit)
{
    struct task_request request = {.gpus = 1,
        .need = {NEED_DECLARED, gib * GIB},
        .expect = {.smact = reading_of(smact)},
        .time_limit_us = limit * MINUTE};
    if (expected)
        request.expect.time_us = reading_of((double)(expected * MINUTE));
    assert_int_equal(world_submit(core, now_us, id, request), 0);
}

/* GPU 0 admits the head when task 1 ends, after 60 min. Returns how often the head's policy is
 * asked about it and about GPU 1, where task 2 runs. */
static int count_predicted(int expected, int limit)
{
    inner = &policy_magm;
    core = world_core(&policy_once, 2);
    now_us = 0;
    let_pass(1);
    submit_timed(1, 30, 0.05, 0, 60);
    let_pass(100);
    submit_timed(2, 30, 0.05, expected, limit);
    let_pass(100);
    n_predicted = 0;
    assert_false(submit(3, 20 * GIB));
    core_destroy(core);
    return n_predicted;
}

/* A task of known time may end sooner than by its limit. */
static void a_gpu_that_opens_no_sooner_is_not_predicted(void **state)
{
    assert_int_equal(count_predicted(0, 50), 1 + 1);
    assert_int_equal(count_predicted(10, 90), 1 + 1);
    assert_int_equal(count_predicted(0, 90), 1);
    assert_int_equal(count_predicted(0, 0), 1);
}

/*
 * Task 1 ends by its limit after 60 min, and then the head, task 2, is admitted. Task 3 ends
 * before. Task 4 slows it down, so that it ends later: the head has to wait for tasks 1 and 3, as
 * it would without task 4. What was noted before task 3 started says only for task 1. Both are
 * tried in one pass.
 */
static void after_a_placement_the_head_is_predicted_anew(void **state)
{
    inner = &policy_predictive;
    core = world_core(&policy_once, 1);
    now_us = 0;
    let_pass(1);
    submit_timed(1, 10, 0.05, 0, 60);
    is_faulty = true;
    let_pass(1);
    submit_timed(2, 30, 0.1, 0, 0);
    submit_timed(3, 9, 0.3, 50, 0);
    submit_timed(4, 1, 0.7, 0, 0);
    is_faulty = false;
    let_pass(1);
    assert_int_equal(world_state(core, 2), TASK_QUEUED);
    assert_int_equal(world_state(core, 3), TASK_STARTING);
    assert_int_equal(world_state(core, 4), TASK_STARTING);
    core_destroy(core);
}

/* Task 2, the head, waits for both GPUs, for 60 min. Task 3 fits only on GPU 1, which is idle:
 * predictive tests idle GPUs first, then all. */
static void an_idle_gpu_is_tested_once(void **state)
{
    inner = &policy_predictive;
    core = world_core(&policy_once, 2);
    now_us = 0;
    let_pass(1);
    submit_timed(1, 30, 0.05, 60, 0);
    let_pass(1);
    struct task_request wide = {.gpus = 2, .need = {NEED_DECLARED, 30 * GIB}};
    assert_int_equal(world_submit(core, now_us, 2, wide), 0);
    n_predicted = 0;
    assert_false(submit(3, 20 * GIB));
    assert_int_equal(n_predicted, 1);
    core_destroy(core);
}

/* ---- random tasks ---- */

static struct task_request random_request(void)
{
    struct task_request request = {.gpus = 1 + rand() % 4 / 3,
        .need = {NEED_DECLARED, (1 + rand() % 30) * GIB},
        .expect = {.smact = reading_of(0.01 * (rand() % 40))}};
    if (rand() % 2)
        request.time_limit_us = (1 + rand() % 60) * 60 * SECOND_US;
    if (rand() % 2)
        request.expect.time_us = reading_of((1 + rand() % 3600) * (double)SECOND_US);
    return request;
}

/* Ends a random one of the tasks that hold GPUs. */
static void end_any(uint64_t last)
{
    uint64_t id = 1 + (uint64_t)rand() % last;
    for (uint64_t i = 0; i < last; i++, id = id % last + 1) {
        if (!task_state_holds_gpus(world_state(core, id)))
            continue;
        if (world_state(core, id) == TASK_STARTING)
            assert_int_equal(world_input(core, now_us, EVENT_STARTED, id), 0);
        if (world_state(core, id) == TASK_RUNNING)
            assert_int_equal(world_exit(core, now_us, id, FAILURE_NONE), 0);
        return;
    }
}

static void what_was_noted_changes_no_answer(void **state)
{
    static const struct policy *const policies[] = {&policy_magm, &policy_predictive, &policy_lug};
    enum { RUNS = 10, TASKS = 60 };
    n_noted = n_bounded = n_ruled_out = 0;
    for (int run = 0; run < RUNS * (int)ARRAY_SIZE(policies); run++) {
        srand((unsigned)run);
        inner = policies[run % (int)ARRAY_SIZE(policies)];
        int n_gpus = 1 + run % GPUS_MAX;
        core = run / GPUS_MAX % 2
                   ? world_instances_core(&policy_twice, n_gpus - n_gpus / 3, n_gpus / 3)
                   : world_core(&policy_twice, n_gpus);
        now_us = 0;
        let_pass(1);
        for (uint64_t id = 1; id <= TASKS; id++) {
            assert_int_equal(world_submit(core, now_us, id, random_request()), 0);
            let_pass(rand() % 30);
            if (rand() % 2)
                end_any(id);
        }
        core_destroy(core);
    }
    assert_true(n_noted > 1000 && n_bounded > 100 && n_ruled_out > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_starts_if_the_head_is_admitted_after_as_many_have_left),
        cmocka_unit_test(the_head_is_predicted_once_for_all_tasks_behind_it),
        cmocka_unit_test(a_task_that_leaves_too_little_memory_is_not_predicted),
        cmocka_unit_test(a_task_like_the_head_waits_without_being_tried),
        cmocka_unit_test(a_gpu_that_opens_no_sooner_is_not_predicted),
        cmocka_unit_test(after_a_placement_the_head_is_predicted_anew),
        cmocka_unit_test(an_idle_gpu_is_tested_once),
        cmocka_unit_test(what_was_noted_changes_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
