/* SPDX-License-Identifier: Apache-2.0 */
/* How a task gives way to one that does not have its promised speed: by a move, where that is
 * possible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/policies.h"
#include "pretend_gpus.h"

#define S SECOND_US

static struct task_request training(double smact)
{
    return (struct task_request){
        .gpus = 1, .need = {NEED_DECLARED, 4 * GIB}, .expect.smact = reading_of(smact)};
}

static void submit(struct core *core, int64_t time_us, uint64_t task, struct task_request request)
{
    assert_int_equal(world_submit(core, time_us, task, request), 0);
    assert_int_equal(world_input(core, time_us, EVENT_STARTED, task), 0);
}

/* Task 1, with a promise of 1.4, and task 2 are on GPU 0 from t=60 on; GPU 1 is empty from then. */
static struct core *start(void)
{
    struct core *core = world_core(&policy_first_fit, 2);
    struct core_settings settings = *core_get_settings(core);
    settings.can_suspend = settings.can_pause = true;
    core_configure(core, &settings);
    struct task_request promised = training(0.4);
    promised.slowdown_max = reading_of(1.4);
    world_sample(core, 1, 0, 0, 0, 0);
    world_sample(core, 1, 1, 39, 0, 1);
    submit(core, S, 1, promised);
    for (int t = 2; t <= 60; t++)
        world_sample(core, t * S, 0, 4, 0.4, 0);
    submit(core, 60 * S, 2, training(0.3));
    assert_int_equal(core_task(core, 2)->gpus[0], 0);
    return core;
}

/* Reports that the promised task takes 1.6 times as long as alone, until something happens to task
 * 2, or for a minute. Returns the time. */
static int64_t miss_promise(struct core *core, int64_t from_us)
{
    int64_t now_us = from_us;
    for (int t = 1; t <= 60 && world_state(core, 2) == TASK_RUNNING; t++) {
        now_us = from_us + t * S;
        world_sample(core, now_us, 0, 8, 0.7, 0);
        world_sample(core, now_us, 1, 0, 0, 0);
        struct event event = {
            .kind = EVENT_SPEED, .time_us = now_us, .task = 1, .slowdown = reading_of(1.6)};
        assert_int_equal(core_step(core, &event), 0);
        world_check(core);
    }
    return now_us;
}

static void a_task_is_moved_where_another_gpu_takes_it(void **state)
{
    struct core *core = start();
    int64_t now_us = miss_promise(core, 60 * S);
    assert_int_equal(world_state(core, 2), TASK_MOVING);
    assert_int_equal(world_count(core, EFFECT_MOVE, 2), 1);
    assert_int_equal(world_input(core, now_us + 5 * S, EVENT_MOVED, 2), 0);
    assert_int_equal(core_task(core, 2)->n_gpus, 1);
    assert_int_equal(core_task(core, 2)->gpus[0], 1);
    world_check(core);
    core_destroy(core);
}

/* A task that may be suspended again is paused: each failure costs it seconds. */
static void a_move_that_failed_is_not_tried_again(void **state)
{
    struct core *core = start();
    int64_t now_us = miss_promise(core, 60 * S);
    assert_int_equal(world_state(core, 2), TASK_MOVING);
    struct event failed = {.kind = EVENT_SUSPENSION_FAILED, .time_us = now_us + 5 * S, .task = 2};
    failed.suspension_failed.why = SUSPENSION_NOT_NOW;
    assert_int_equal(core_step(core, &failed), 0);
    assert_int_equal(world_state(core, 2), TASK_RUNNING);
    assert_int_equal(core_task(core, 2)->gpus[0], 0);
    miss_promise(core, now_us + 5 * S);
    assert_int_equal(world_state(core, 2), TASK_PAUSED);
    world_check(core);
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_is_moved_where_another_gpu_takes_it),
        cmocka_unit_test(a_move_that_failed_is_not_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
