/* SPDX-License-Identifier: Apache-2.0 */
/* When waiting tasks are expected to start (policy/forecast.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"
#include "policy/forecast.h"
#include "policy/policies.h"
#include "pretend_gpus.h"

#define MINUTE (60 * SECOND_US)

static void submit(struct core *core, uint64_t task, int gpus, int limit_minutes)
{
    struct task_request request = {.gpus = gpus, .time_limit_us = limit_minutes * MINUTE};
    assert_int_equal(world_submit(core, 1, task, request), 0);
}

/* GPUs for one task at a time, all idle. */
static struct core *start_core(int n_gpus)
{
    struct core *core = world_core(&policy_exclusive, n_gpus);
    for (int i = 0; i < n_gpus; i++)
        assert_int_equal(world_sample(core, 1, i, 0, 0, 0), 0);
    return core;
}

/* `minutes`: -1: not known */
static void assert_starts(const struct core *core, const int *ids, const int *minutes, int n)
{
    struct forecast starts[FORECAST_TASKS_MAX];
    assert_int_equal(forecast_starts(core, 1, starts), n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(starts[i].task, ids[i]);
        assert_int_equal(
            starts[i].start_us, minutes[i] < 0 ? START_UNKNOWN : 1 + minutes[i] * MINUTE);
    }
}

/* The example of forecast.c, and a task of unknown time behind it. */
static void tasks_start_in_order_when_those_before_end(void **state)
{
    struct core *core = start_core(2);
    submit(core, 1, 1, 60);
    submit(core, 2, 1, 20);
    submit(core, 3, 2, 30);
    submit(core, 4, 1, 0);
    submit(core, 5, 1, 10);
    submit(core, 6, 1, 10);
    submit(core, 7, 2, 10);
    submit(core, 8, 1, 10);
    static const int ids[] = {3, 4, 5, 6, 7, 8};
    static const int minutes[] = {60, 90, 90, 100, -1, -1};
    assert_starts(core, ids, minutes, ARRAY_SIZE(ids));
    core_destroy(core);
}

static void nothing_is_known_behind_a_task_that_never_fits(void **state)
{
    struct core *core = start_core(1);
    submit(core, 1, 1, 60);
    submit(core, 2, 2, 10);
    submit(core, 3, 1, 10);
    static const int ids[] = {2, 3}, minutes[] = {-1, -1};
    assert_starts(core, ids, minutes, ARRAY_SIZE(ids));
    core_destroy(core);
}

static void tasks_that_share_a_gpu_start_beside_each_other(void **state)
{
    struct core *core = world_core(&policy_magm, 1);
    struct task_request large = {.gpus = 1,
        .need = {NEED_DECLARED, 30 * GIB},
        .expect = {.smact = reading_of(0.1)},
        .time_limit_us = 60 * MINUTE};
    struct task_request small = large;
    small.need.bytes = 15 * GIB;
    assert_int_equal(world_sample(core, 1, 0, 0, 0, 0), 0);
    assert_int_equal(world_submit(core, 1, 1, large), 0);
    assert_int_equal(world_submit(core, 1, 2, small), 0);
    assert_int_equal(world_submit(core, 1, 3, small), 0);
    assert_int_equal(world_submit(core, 1, 4, small), 0);
    static const int ids[] = {2, 3, 4}, minutes[] = {60, 60, 120};
    assert_starts(core, ids, minutes, ARRAY_SIZE(ids));
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_start_in_order_when_those_before_end),
        cmocka_unit_test(nothing_is_known_behind_a_task_that_never_fits),
        cmocka_unit_test(tasks_that_share_a_gpu_start_beside_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
