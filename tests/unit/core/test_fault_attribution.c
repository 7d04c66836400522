/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks count as possible causes of a fault, and which of them run again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "policy/policies.h"
#include "pretend_gpus.h"

#define SECONDS(n) ((n)*SECOND_US)

/* Three tasks of one user that run on the one GPU. */
static struct core *three_running(enum sharing sharing)
{
    struct core *core = world_core(&policy_rr, 1);
    for (uint64_t task = 1; task <= 3; task++) {
        int64_t at_us = SECONDS(100) * (int64_t)task;
        world_sample(core, at_us, 0, 2.0 * (double)(task - 1), 0.1, 0);
        assert_int_equal(
            world_submit(core, at_us, task, (struct task_request){.gpus = 1, .sharing = sharing}),
            0);
        assert_int_equal(world_state(core, task), TASK_STARTING);
        world_input(core, at_us, EVENT_STARTED, task);
        world_sample(core, at_us + SECONDS(70), 0, 2.0 * (double)task, 0.1, 0);
    }
    return core;
}

static void fall(struct core *core, int64_t time_us, uint64_t task, enum failure_class failure)
{
    assert_int_equal(world_exit(core, time_us, task, failure), 0);
}

static bool is_back(const struct core *core, uint64_t task)
{
    const struct task *found = core_task(core, task);
    return (found->state == TASK_QUEUED || found->state == TASK_STARTING) &&
           found->requeue_count == 1;
}

static void start_again(struct core *core, int64_t time_us, uint64_t task)
{
    for (; world_state(core, task) != TASK_STARTING; time_us += SECONDS(70))
        world_sample(core, time_us, 0, 0, 0, 0);
    world_input(core, time_us, EVENT_STARTED, task);
}

static void all_who_fall_together_are_suspects(void **state)
{
    struct core *core = three_running(SHARING_MPS);
    fall(core, SECONDS(400), 2, FAILURE_GPU_FAULT);
    fall(core, SECONDS(401), 1, FAILURE_GPU_FAULT);
    fall(core, SECONDS(402), 3, FAILURE_GPU_FAULT);
    for (uint64_t task = 1; task <= 3; task++) {
        assert_true(is_back(core, task));
        assert_true(core_task(core, task)->possible_cause);
    }
    start_again(core, SECONDS(500), 1);
    assert_int_equal(core_task(core, 1)->run->share.sharing, SHARING_STREAMS);
    assert_int_equal(core_task(core, 1)->run->share.reason, SHARE_POSSIBLE_CAUSE);
    fall(core, SECONDS(5000), 1, FAILURE_GPU_FAULT);
    assert_int_equal(world_state(core, 1), TASK_FAILED);
    assert_int_equal(core_task(core, 3)->requeue_count, 1);
    core_destroy(core);
}

static void who_is_alone_under_mps_answers_for_himself(void **state)
{
    struct core *core = three_running(SHARING_MPS);
    fall(core, SECONDS(400), 1, FAILURE_NONE);
    fall(core, SECONDS(400), 2, FAILURE_NONE);
    fall(core, SECONDS(420), 3, FAILURE_GPU_FAULT);
    assert_int_equal(world_state(core, 3), TASK_FAILED);
    core_destroy(core);
}

static void a_fault_long_after_is_another(void **state)
{
    struct core *core = three_running(SHARING_MPS);
    fall(core, SECONDS(400), 1, FAILURE_NONE);
    fall(core, SECONDS(400), 2, FAILURE_GPU_FAULT);
    assert_true(is_back(core, 2));
    world_input(core, SECONDS(401), EVENT_HOLD, 2);
    fall(core, SECONDS(420), 3, FAILURE_GPU_FAULT);
    assert_int_equal(world_state(core, 3), TASK_FAILED);
    core_destroy(core);
}

static void by_streams_everybody_answers_for_himself(void **state)
{
    struct core *core = three_running(SHARING_STREAMS);
    fall(core, SECONDS(400), 2, FAILURE_GPU_FAULT);
    fall(core, SECONDS(401), 1, FAILURE_GPU_FAULT);
    assert_int_equal(world_state(core, 1), TASK_FAILED);
    core_destroy(core);
}

static void an_ecc_error_is_the_gpus(void **state)
{
    struct core *core = three_running(SHARING_MPS);
    struct event event = {.kind = EVENT_EXITED, .time_us = SECONDS(400), .task = 2};
    event.exited = (struct task_exit){.failure = FAILURE_GPU_FAULT, .code = 1, .by_gpu = true};
    assert_int_equal(core_step(core, &event), 0);
    assert_true(is_back(core, 2));
    assert_false(core_task(core, 2)->possible_cause);
    assert_int_equal(core_task(core, 2)->mps_failures, 0);
    fall(core, SECONDS(401), 1, FAILURE_NONE);
    fall(core, SECONDS(402), 3, FAILURE_GPU_FAULT); /* not beside it: its own */
    assert_int_equal(world_state(core, 3), TASK_FAILED);
    core_destroy(core);
}

static void a_lost_server_is_no_task_s_fault(void **state)
{
    struct core *core = three_running(SHARING_MPS);
    for (uint64_t task = 1; task <= 3; task++) {
        fall(core, SECONDS(400), task, FAILURE_MPS);
        assert_true(is_back(core, task));
        assert_false(core_task(core, task)->possible_cause);
    }
    core_destroy(core);
}

static void not_for_ever(void **state)
{
    struct core *core = three_running(SHARING_MPS);
    fall(core, SECONDS(400), 2, FAILURE_NONE);
    fall(core, SECONDS(400), 3, FAILURE_NONE);
    int64_t at_us = SECONDS(500);
    int starts = 1;
    for (; starts < 10 && !task_state_is_done(world_state(core, 1)); starts++) {
        fall(core, at_us, 1, FAILURE_MPS);
        world_sample(core, at_us += SECONDS(100), 0, 0, 0, 0);
        if (world_state(core, 1) == TASK_STARTING)
            world_input(core, at_us, EVENT_STARTED, 1);
    }
    assert_int_equal(world_state(core, 1), TASK_FAILED);
    assert_int_equal(
        core_task(core, 1)->requeue_count, 2); /* the third attempt ran without MPS: at fault */
    core_destroy(core);
}

static void a_cancelled_one_is_not_started_again(void **state)
{
    struct core *core = three_running(SHARING_MPS);
    world_input(core, SECONDS(400), EVENT_CANCEL, 1);
    fall(core, SECONDS(401), 1, FAILURE_MPS);
    assert_int_equal(world_state(core, 1), TASK_CANCELLED);
    core_destroy(core);
}

static void its_own_limit_counts_as_a_reason_to_recover(void **state)
{
    struct core *core = world_core(&policy_magm, 1);
    struct task_request request = {
        .gpus = 1, .sharing = SHARING_MPS, .need = {NEED_ESTIMATED, 4 * GIB}};
    world_sample(core, SECONDS(1), 0, 0, 0, 0);
    world_submit(core, SECONDS(1), 1, request);
    world_input(core, SECONDS(1), EVENT_STARTED, 1);
    assert_int_equal(core_task(core, 1)->run->share.mem_limit_bytes, 6 * GIB);
    fall(core, SECONDS(2), 1, FAILURE_GPU_OOM);
    world_sample(core, SECONDS(3), 0, 0, 0, 0);
    assert_int_equal(world_state(core, 1), TASK_STARTING);
    assert_int_equal(core_task(core, 1)->run->share.mem_limit_bytes, 0);
    world_input(core, SECONDS(3), EVENT_STARTED, 1);
    fall(core, SECONDS(4), 1, FAILURE_GPU_OOM);
    assert_int_equal(world_state(core, 1), TASK_OUT_OF_MEMORY);
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_who_fall_together_are_suspects),
        cmocka_unit_test(who_is_alone_under_mps_answers_for_himself),
        cmocka_unit_test(an_ecc_error_is_the_gpus),
        cmocka_unit_test(a_lost_server_is_no_task_s_fault),
        cmocka_unit_test(a_fault_long_after_is_another),
        cmocka_unit_test(by_streams_everybody_answers_for_himself),
        cmocka_unit_test(not_for_ever),
        cmocka_unit_test(a_cancelled_one_is_not_started_again),
        cmocka_unit_test(its_own_limit_counts_as_a_reason_to_recover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
