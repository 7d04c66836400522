/* SPDX-License-Identifier: Apache-2.0 */
/* Placement in a cluster of several servers: a task's GPUs are of one node, and the driver's host
 * check is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "core/core.h"
#include "policy/policies.h"
#include "pretend_gpus.h"

enum { NODES = 3, EACH = 2 };

static struct core *core;
static int64_t now_us;

/* Three nodes of two GPUs. */
static void begin_cluster(const struct policy *policy)
{
    struct core_settings settings = core_settings_default();
    struct gpu_identity list[NODES * EACH];
    settings.policy = policy;
    settings.order = ORDER_FIFO;
    settings.settle_us = settings.settle_max_us = 1;
    core = core_create(&settings);
    now_us = SECOND_US;
    for (int i = 0; i < NODES * EACH; i++) {
        list[i] = (struct gpu_identity){.mem_total_bytes = 40 * GIB,
            .is_place = true,
            .node = 7 + i / EACH,
            .index_on_node = i % EACH};
        snprintf(list[i].uuid, sizeof list[i].uuid, "GPU-%d", i);
        snprintf(list[i].label, sizeof list[i].label, "%d", i);
    }
    struct event event = {
        .kind = EVENT_GPUS, .time_us = now_us, .gpus = {.list = list, .n = ARRAY_SIZE(list)}};
    assert_int_equal(core_step(core, &event), 0);
}

static void sample_all(void)
{
    now_us += SECOND_US;
    for (int i = 0; i < NODES * EACH; i++)
        world_sample(core, now_us, i, 0, 0, 0);
}

static void submit(uint64_t id, int gpus)
{
    assert_int_equal(world_submit(core, now_us, id,
                         (struct task_request){.gpus = gpus, .exclusive = true, .once = true}),
        0);
}

static void assert_gpus_of(uint64_t id, int first, int second)
{
    const struct task *task = core_task(core, id);
    assert_int_equal(task->n_gpus, 2);
    assert_int_equal(task->gpus[0] + task->gpus[1], first + second);
    assert_int_equal(task->gpus[0] * task->gpus[1], first * second);
}

static void gpus_of_a_task_are_of_one_node(void **state)
{
    for (size_t i = 0; policy_table[i]; i++) {
        begin_cluster(policy_table[i]);
        sample_all();
        submit(1, 1);
        sample_all();
        submit(2, 2);
        const struct task *one = core_task(core, 1), *two = core_task(core, 2);
        assert_int_equal(two->state, TASK_STARTING);
        assert_int_equal(two->gpus[0] / EACH, two->gpus[1] / EACH);
        assert_int_not_equal(two->gpus[0] / EACH, one->gpus[0] / EACH);
        world_check(core);
        core_destroy(core);
    }
}

static void a_task_of_more_gpus_than_a_node_waits(void **state)
{
    begin_cluster(&policy_first_fit);
    sample_all();
    submit(1, EACH + 1);
    sample_all();
    assert_int_equal(world_state(core, 1), TASK_QUEUED);
    core_destroy(core);
}

static enum node_admission only_odd_gpus(void *context, const struct task *task, int gpu)
{
    int *asked = context;
    ++*asked;
    return gpu % 2 ? NODE_ADMITS : gpu == 0 ? NODE_NOT_NOW : NODE_NEVER;
}

static void the_driver_restricts_placements(void **state)
{
    for (size_t i = 0; policy_table[i]; i++) {
        char text[256];
        int asked = 0;
        const struct node_check host = {only_odd_gpus, &asked};
        begin_cluster(policy_table[i]);
        core_set_node_check(core, &host);
        sample_all();
        for (uint64_t id = 1; id <= 4; id++)
            submit(id, 1);
        for (uint64_t id = 1; id <= 3; id++)
            assert_int_equal(core_task(core, id)->gpus[0] % 2, 1);
        assert_int_equal(world_state(core, 4), TASK_QUEUED);
        assert_true(asked > 0);
        core_explain(core, 4, now_us, text, sizeof text);
        assert_non_null(strstr(text, "its server lacks"));
        core_destroy(core);
    }
}

/* GPUs 3 and 4 will be free first, but are of two nodes: 4 and 5 are drained. */
static void a_node_is_drained_for_a_recovering_task(void **state)
{
    static const double used_gib[] = {5, 5, 9, 2, 2, 8};
    begin_cluster(&policy_first_fit);
    sample_all();
    assert_int_equal(world_submit(core, now_us, 1, (struct task_request){.gpus = 2}), 0);
    for (uint64_t id = 2; id <= 5; id++) {
        submit(id, 1);
        world_input(core, now_us, EVENT_STARTED, id);
    }
    world_input(core, now_us, EVENT_STARTED, 1);
    assert_gpus_of(1, 0, 1);
    assert_int_equal(world_input(core, now_us, EVENT_EXTERNAL_SEEN, 1), 0);
    now_us += SECOND_US;
    for (int i = 0; i < NODES * EACH; i++) /* a process of no task is on GPUs 0 and 1 */
        world_sample(core, now_us, i, used_gib[i], 0.1, i < EACH);
    world_exit(core, now_us, 1, FAILURE_GPU_OOM);
    assert_int_equal(world_state(core, 1), TASK_RECOVERING);
    for (int i = 0; i < NODES * EACH; i++)
        assert_int_equal(core_view(core)->gpus[i].claims[CLAIM_DRAIN], i >= 4 ? 1 : 0);
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gpus_of_a_task_are_of_one_node),
        cmocka_unit_test(a_task_of_more_gpus_than_a_node_waits),
        cmocka_unit_test(the_driver_restricts_placements),
        cmocka_unit_test(a_node_is_drained_for_a_recovering_task)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
