/* SPDX-License-Identifier: Apache-2.0 */
/* Services: which ends lead to a restart, what a report may say, how long it holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/policies.h"
#include "pretend_gpus.h"

#define S SECOND_US

static const struct task_request service = {.gpus = 1,
    .need = {NEED_DECLARED, 2 * GIB},
    .expect.smact = {.value = 0.2, .valid = true},
    .service = {true, 50 * MS_US}};

static int report(struct core *core, int64_t time_us, uint64_t task, double p99_ms)
{
    struct event event = {.kind = EVENT_LATENCY, .time_us = time_us, .task = task};
    event.p99_us = p99_ms >= 0 ? reading_of(p99_ms * MS_US) : READING_NONE;
    return core_step(core, &event);
}

/* A core on whose GPU the service 1 runs since t=1. */
static struct core *core_with_service(struct task_request request)
{
    struct core *core = world_core(&policy_magm, 1);
    world_sample(core, 0, 0, 0, 0, 0);
    assert_int_equal(world_submit(core, S, 1, request), 0);
    assert_int_equal(world_input(core, S, EVENT_STARTED, 1), 0);
    return core;
}

static void only_what_colloc_did_not_end_is_run_again(void **state)
{
    static const struct {
        enum failure_class failure;
        enum task_state after;
    } cases[] = {{FAILURE_NONE, TASK_BLOCKED}, {FAILURE_PROGRAM, TASK_BLOCKED},
        {FAILURE_SIGNAL, TASK_BLOCKED}, {FAILURE_GPU_OOM, TASK_BLOCKED},
        {FAILURE_LAUNCH, TASK_BLOCKED}, {FAILURE_CANCELLED, TASK_CANCELLED},
        {FAILURE_TIME_LIMIT, TASK_TIMEOUT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct core *core = core_with_service(service);
        world_exit(core, 5 * S, 1, cases[i].failure);
        assert_int_equal(world_state(core, 1), cases[i].after);
        world_check(core);
        core_destroy(core);
    }
}

static void one_that_is_run_once_is_not_run_again(void **state)
{
    struct task_request once = service;
    once.once = true;
    struct core *core = core_with_service(once);
    world_exit(core, 5 * S, 1, FAILURE_PROGRAM);
    assert_int_equal(world_state(core, 1), TASK_FAILED);
    core_destroy(core);
}

static void reports_are_of_services_that_run(void **state)
{
    struct core *core = core_with_service(service);
    assert_int_equal(report(core, 2 * S, 1, 20), 0);
    assert_int_equal(report(core, 2 * S, 1, -1), 0);
    assert_int_equal(report(core, 2 * S, 7, 20), CORE_NO_SUCH_TASK);
    struct event event = {.kind = EVENT_LATENCY, .time_us = 2 * S, .task = 1};
    event.p99_us = (struct reading){.value = -1, .valid = true};
    assert_int_equal(core_step(core, &event), CORE_NOT_NOW);
    assert_int_equal(world_submit(core, 2 * S, 2, (struct task_request){.gpus = 1}), 0);
    assert_int_equal(report(core, 2 * S, 2, 20), CORE_NOT_NOW);
    world_exit(core, 5 * S, 1, FAILURE_NONE);
    assert_int_equal(report(core, 5 * S, 1, 20), CORE_NOT_NOW);
    core_destroy(core);
}

/* A task that hardly slows the service down waits for the hold, and no report may be old. */
/* It comes to its GPUs one by one; on the first it finds a training. */
static void a_service_of_two_gpus_comes_beside_others(void **state)
{
    struct core *core = world_core(&policy_rr, 2);
    struct task_request request = service;
    for (int gpu = 0; gpu < 2; gpu++)
        world_sample(core, 0, gpu, 0, 0, 0);
    for (uint64_t task = 1; task <= 2; task++) {
        assert_int_equal(world_submit(core, S, task,
                             (struct task_request){.gpus = 1,
                                 .need = {NEED_DECLARED, 2 * GIB},
                                 .expect.smact = {.value = 0.1, .valid = true}}),
            0);
        assert_int_equal(world_input(core, S, EVENT_STARTED, task), 0);
    }
    for (int64_t t = 2; t < 200; t++)
        for (int gpu = 0; gpu < 2; gpu++)
            world_sample(core, t * S, gpu, 2, 0.1, 0);
    request.gpus = 2;
    assert_int_equal(world_submit(core, 200 * S, 3, request), 0);
    assert_int_equal(core_task(core, 3)->n_gpus, 2);
    core_destroy(core);
}

static void old_reports_admit_nothing(void **state)
{
    const struct task_request small = {.gpus = 1,
        .need = {NEED_DECLARED, 2 * GIB},
        .expect.smact = {.value = 0.01, .valid = true}};
    for (int is_old = 0; is_old < 2; is_old++) {
        struct core *core = core_with_service(service);
        for (int t = 2; t <= 70; t++) {
            world_sample(core, t * S, 0, 2, 0.2, 0);
            assert_int_equal(report(core, t * S, 1, 20), 0);
        }
        int64_t now_us = (is_old ? 120 : 71) * S;
        world_sample(core, now_us, 0, 2, 0.2, 0);
        assert_int_equal(world_submit(core, now_us, 2, small), 0);
        assert_int_equal(world_state(core, 2), is_old ? TASK_QUEUED : TASK_STARTING);
        core_destroy(core);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_colloc_did_not_end_is_run_again),
        cmocka_unit_test(one_that_is_run_once_is_not_run_again),
        cmocka_unit_test(reports_are_of_services_that_run),
        cmocka_unit_test(a_service_of_two_gpus_comes_beside_others),
        cmocka_unit_test(old_reports_admit_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
