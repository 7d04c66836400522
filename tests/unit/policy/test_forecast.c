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

/* Nodes of two GPUs, each for one task at a time. */
static struct core *start_cluster(int nodes)
{
    struct core_settings settings = core_settings_default();
    struct gpu_identity list[8];
    settings.policy = &policy_exclusive;
    settings.order = ORDER_FIFO;
    struct core *core = core_create(&settings);
    for (int i = 0; i < 2 * nodes; i++)
        list[i] = (struct gpu_identity){.mem_total_bytes = 40 * GIB,
            .is_place = true,
            .uuid = {'G', (char)('0' + i)},
            .label = {(char)('0' + i)},
            .node = i / 2,
            .index_on_node = i % 2};
    struct event event = {.kind = EVENT_GPUS, .time_us = 1, .gpus = {list, 2 * nodes}};
    assert_int_equal(core_step(core, &event), 0);
    for (int i = 0; i < 2 * nodes; i++)
        assert_int_equal(world_sample(core, 1, i, 0, 0, 0), 0);
    return core;
}

static void submit_over_nodes(struct core *core, uint64_t task, int nodes, int limit_minutes)
{
    struct task_request request = {
        .gpus = nodes, .nodes = nodes, .time_limit_us = limit_minutes * MINUTE};
    assert_int_equal(world_submit(core, 1, task, request), 0);
}

/* GPUs 0 and 1 are of one node, 2 and 3 of the other. Those that are free first, 1 and 2, are of
 * two: task 5 waits for 0. Task 6 wants the same GPU of each node. */
static void gpus_of_a_task_are_of_one_node_or_the_same_of_each(void **state)
{
    struct core *core = start_cluster(2);
    static const int limits[] = {30, 10, 10, 60};
    for (int i = 0; i < 4; i++)
        submit(core, (uint64_t)i + 1, 1, limits[i]);
    submit(core, 5, 2, 20);
    submit_over_nodes(core, 6, 2, 20);
    static const int ids[] = {5, 6}, minutes[] = {30, 50};
    assert_starts(core, ids, minutes, ARRAY_SIZE(ids));
    core_destroy(core);
}

static enum node_admission first_node_only(void *context, const struct task *task, int gpu)
{
    return gpu < 2 ? NODE_ADMITS : NODE_NEVER;
}

static void a_node_that_never_admits_a_task_is_left_out(void **state)
{
    struct core *core = start_cluster(2);
    submit(core, 1, 2, 60);
    submit(core, 2, 1, 10);
    const struct node_check check = {first_node_only, NULL};
    core_set_node_check(core, &check);
    submit(core, 3, 1, 10);
    static const int ids[] = {3}, minutes[] = {60};
    assert_starts(core, ids, minutes, ARRAY_SIZE(ids));
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_start_in_order_when_those_before_end),
        cmocka_unit_test(nothing_is_known_behind_a_task_that_never_fits),
        cmocka_unit_test(tasks_that_share_a_gpu_start_beside_each_other),
        cmocka_unit_test(gpus_of_a_task_are_of_one_node_or_the_same_of_each),
        cmocka_unit_test(a_node_that_never_admits_a_task_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
