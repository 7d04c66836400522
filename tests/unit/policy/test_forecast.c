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

/* Two compute instances with one memory. */
static void tasks_that_share_memory_start_when_it_suffices(void **state)
{
    struct core *core = world_instances_core(&policy_magm, 2, 0);
    struct task_request large = {.gpus = 1,
        .need = {NEED_DECLARED, 30 * GIB},
        .expect = {.smact = reading_of(0.1)},
        .time_limit_us = 60 * MINUTE};
    struct task_request small = large;
    small.need.bytes = 15 * GIB;
    assert_int_equal(world_submit(core, 1, 1, large), 0);
    assert_int_equal(world_submit(core, 1, 2, small), 0);
    assert_int_equal(world_submit(core, 1, 3, small), 0);
    assert_int_equal(world_submit(core, 1, 4, small), 0);
    static const int ids[] = {2, 3, 4}, minutes[] = {60, 60, 120};
    assert_starts(core, ids, minutes, ARRAY_SIZE(ids));
    core_destroy(core);
}

static void a_task_with_the_memory_to_itself_keeps_others_off(void **state)
{
    struct core *core = world_instances_core(&policy_magm, 2, 0);
    struct task_request first = {.gpus = 1,
        .exclusive = true,
        .need = {NEED_DECLARED, 2 * GIB},
        .expect = {.smact = reading_of(0.1)},
        .time_limit_us = 60 * MINUTE};
    struct task_request second = first, shared = first;
    second.time_limit_us = 30 * MINUTE;
    shared.exclusive = false;
    assert_int_equal(world_submit(core, 1, 1, first), 0);
    assert_int_equal(world_submit(core, 1, 2, second), 0);
    assert_int_equal(world_submit(core, 1, 3, shared), 0);
    static const int ids[] = {2, 3}, minutes[] = {60, 90};
    assert_starts(core, ids, minutes, ARRAY_SIZE(ids));
    core_destroy(core);
}

static void submit_request(struct core *core, uint64_t task, struct task_request request)
{
    assert_int_equal(world_submit(core, 1, task, request), 0);
}

static struct task_request beginning_in(int minutes, int limit_minutes)
{
    return (struct task_request){
        .gpus = 1, .begin_us = 1 + minutes * MINUTE, .time_limit_us = limit_minutes * MINUTE};
}

/* The example of forecast.c. Task 6 is of normal priority: it begins before the others start, but
 * they come first. */
static void tasks_take_their_place_at_their_begin_moment(void **state)
{
    struct core *core = start_core(2);
    submit(core, 1, 1, 60);
    submit(core, 2, 1, 20);
    submit(core, 3, 2, 30);
    submit(core, 4, 1, 20);
    struct task_request urgent = beginning_in(30, 10), normal = beginning_in(40, 10);
    urgent.priority = PRIORITY_HIGH;
    submit_request(core, 5, urgent);
    submit_request(core, 6, normal);
    static const int ids[] = {3, 4, 5, 6}, minutes[] = {60, 90, 30, 90};
    assert_starts(core, ids, minutes, ARRAY_SIZE(ids));
    core_destroy(core);
}

/* An older task is the head again once it may begin: it delays the others. Task 2 begins when
 * nothing is left of them, task 4 a hundred years from now, and task 5 began long ago. */
static void tasks_start_no_earlier_than_they_begin(void **state)
{
    enum { CENTURY = 100 * 365 * 24 * 60 };
    struct core *core = start_core(1);
    submit(core, 1, 1, 60);
    submit_request(core, 2, beginning_in(600, 10));
    submit_request(core, 3, beginning_in(60, 30));
    submit_request(core, 4, beginning_in(CENTURY, 10));
    submit_request(core, 5, beginning_in(0, 20));
    submit(core, 6, 1, 10);
    static const int ids[] = {5, 6, 3, 2, 4}, minutes[] = {90, 110, 60, 600, CENTURY};
    assert_starts(core, ids, minutes, ARRAY_SIZE(ids));
    core_destroy(core);
}

static void an_idle_gpu_takes_a_task_at_its_begin_moment(void **state)
{
    struct core *core = start_core(1);
    submit_request(core, 1, beginning_in(30, 0));
    submit_request(core, 2, beginning_in(20, 5));
    static const int ids[] = {2, 1}, minutes[] = {20, 30};
    assert_starts(core, ids, minutes, ARRAY_SIZE(ids));
    core_destroy(core);
}

/* Tasks array + 1 and array + 2, one at a time. */
static void submit_array(struct core *core, uint64_t array, struct task_request request)
{
    const struct array_element elements[] = {{array + 1, 0}, {array + 2, 1}};
    struct event event = {.kind = EVENT_SUBMIT,
        .time_us = 1,
        .task = array,
        .submit = {.request = request,
            .elements = elements,
            .n_elements = ARRAY_SIZE(elements),
            .array_limit = 1}};
    assert_int_equal(core_step(core, &event), 0);
}

/* Task 1 has no time limit, so that the start of task 2 on both GPUs is not known. The array has a
 * limit, task 6 a dependency, and task 7 is held. */
static void the_begin_moment_is_known_where_the_start_is_not(void **state)
{
    struct forecast starts[FORECAST_TASKS_MAX];
    static const struct dependency after = {DEPENDENCY_ANY, 1, 1, false};
    struct core *core = start_core(2);
    struct task_request two_gpus = beginning_in(20, 10), depends = beginning_in(40, 10);
    two_gpus.gpus = 2;
    depends.after = &after;
    depends.n_after = 1;
    submit(core, 1, 1, 0);
    submit_request(core, 2, two_gpus);
    submit_array(core, 3, beginning_in(10, 10));
    submit_request(core, 6, depends);
    submit_request(core, 7, beginning_in(5, 10));
    assert_int_equal(world_input(core, 1, EVENT_HOLD, 7), 0);
    static const uint64_t ids[] = {4, 5, 2, 6};
    static const int begins[] = {10, 10, 20, 40};
    assert_int_equal(forecast_starts(core, 1, starts), ARRAY_SIZE(ids));
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        assert_int_equal(starts[i].task, ids[i]);
        assert_int_equal(starts[i].start_us, START_UNKNOWN);
        assert_int_equal(starts[i].begin_us, 1 + begins[i] * MINUTE);
    }
    core_destroy(core);
}

/* What becomes of the tasks of the queue behind those that are forecast is not known. The start of
 * a task that comes before them is. */
static void a_begin_behind_a_long_queue_is_not_predicted(void **state)
{
    enum { QUEUED = FORECAST_QUEUED_MAX + 1 };
    struct forecast starts[FORECAST_TASKS_MAX];
    struct core *core = start_core(1);
    struct task_request urgent = beginning_in(20, 10);
    urgent.priority = PRIORITY_HIGH;
    for (int i = 0; i <= QUEUED; i++)
        submit(core, (uint64_t)i + 1, 1, 60);
    submit_request(core, 1000, beginning_in(10, 10));
    submit_request(core, 1001, urgent);
    assert_int_equal(forecast_starts(core, 1, starts), FORECAST_QUEUED_MAX + 2);
    const struct forecast *begins = &starts[FORECAST_QUEUED_MAX];
    assert_int_equal(begins[0].task, 1000);
    assert_int_equal(begins[0].start_us, START_UNKNOWN);
    assert_int_equal(begins[1].task, 1001);
    assert_int_equal(begins[1].start_us, 1 + 60 * MINUTE);
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
    struct event event = {.kind = EVENT_GPUS, .time_us = 1, .gpus = {.list = list, .n = 2 * nodes}};
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
        cmocka_unit_test(tasks_that_share_memory_start_when_it_suffices),
        cmocka_unit_test(a_task_with_the_memory_to_itself_keeps_others_off),
        cmocka_unit_test(tasks_take_their_place_at_their_begin_moment),
        cmocka_unit_test(tasks_start_no_earlier_than_they_begin),
        cmocka_unit_test(an_idle_gpu_takes_a_task_at_its_begin_moment),
        cmocka_unit_test(the_begin_moment_is_known_where_the_start_is_not),
        cmocka_unit_test(a_begin_behind_a_long_queue_is_not_predicted),
        cmocka_unit_test(gpus_of_a_task_are_of_one_node_or_the_same_of_each),
        cmocka_unit_test(a_node_that_never_admits_a_task_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
