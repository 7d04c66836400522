/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a scheduling pass: their order, and what each does alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "core/core.h"
#include "core/pass/schedule.h"
#include "policy/policies.h"
#include "pretend_gpus.h"

static const struct pass_stage *find_stage(const char *name)
{
    int n;
    const struct pass_stage *stages = core_pass_stages(&n);
    for (int i = 0; i < n; i++)
        if (strcmp(stages[i].name, name) == 0)
            return &stages[i];
    fail_msg("there is no stage %s", name);
    return NULL;
}

static void the_order_is_that_of_the_table(void **state)
{
    static const char *const names[] = {"memory", "services", "promises", "probes", "recovery",
        "failing", "recall", "reserved", "queues", "unused", "host", "room", "contexts", "lent"};
    int n;
    const struct pass_stage *stages = core_pass_stages(&n);
    assert_int_equal(n, ARRAY_SIZE(names));
    for (int i = 0; i < n; i++) {
        print_message("%d. %s: %s\n", i + 1, stages[i].name, stages[i].why);
        assert_string_equal(stages[i].name, names[i]);
        assert_true(strlen(stages[i].why) > 0);
    }
}

/* Events that are applied decide nothing: each stage can be run alone after them. */
static void a_queued_task_is_placed_by_the_stage_of_the_queues(void **state)
{
    struct core *core = world_core(&policy_magm, 1);
    const struct event submit = {.kind = EVENT_SUBMIT,
        .task = 1,
        .submit = {.request = {.gpus = 1, .need = {NEED_DECLARED, 10 * GIB}}}};
    const struct event sample = {.kind = EVENT_SAMPLE,
        .time_us = 1,
        .sample = {.mem_used_bytes = reading_of(0),
            .smact = reading_of(0),
            .external_processes = reading_of(0)}};
    assert_int_equal(core_apply(core, &submit), 0);
    assert_int_equal(core_apply(core, &sample), 0);
    int n;
    const struct pass_stage *stages = core_pass_stages(&n);
    for (const struct pass_stage *each = stages; each < stages + n; each++) {
        assert_int_equal(each->run(core, 2), 0);
        bool is_placed = each >= find_stage("queues");
        assert_int_equal(world_state(core, 1), is_placed ? TASK_STARTING : TASK_QUEUED);
    }
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_that_of_the_table),
        cmocka_unit_test(a_queued_task_is_placed_by_the_stage_of_the_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
