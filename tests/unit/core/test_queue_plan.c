/* SPDX-License-Identifier: Apache-2.0 */
/* Each order that a plan may have, and that a task of unknown time is the last in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/queue_plan.h"

/* The older one takes 30 s on two GPUs and must start first; the younger one 20 s on one. */
static struct task older = {.id = 1,
    .submitted_us = 1,
    .latest_start_us = 100,
    .request = {.gpus = 2, .expect.time_us = {30, true}}};
static struct task younger = {.id = 2,
    .submitted_us = 2,
    .latest_start_us = 200,
    .request = {.gpus = 1, .expect.time_us = {20, true}}};

static void assert_first(enum plan_order order, const struct task *a, const struct task *b)
{
    const struct queue_plan plan = {order, 0};
    assert_true(queue_plan_is_before(&plan, a, b));
    assert_false(queue_plan_is_before(&plan, b, a));
}

static void each_order_has_its_key(void **state)
{
    assert_first(PLAN_SHORTEST, &younger, &older);
    assert_first(PLAN_LONGEST, &older, &younger);
    assert_first(PLAN_OLDEST, &older, &younger);
    assert_first(PLAN_LATEST_START, &older, &younger);
    assert_first(PLAN_FEWEST_GPUS, &older, &younger);
}

static void a_named_task_is_the_first(void **state)
{
    const struct queue_plan plan = {PLAN_OLDEST, 2};
    assert_true(queue_plan_is_before(&plan, &younger, &older));
    assert_false(queue_plan_is_before(&plan, &older, &younger));
}

static void a_task_of_unknown_time_is_the_last(void **state)
{
    const struct task unknown = {.id = 3, .submitted_us = 3, .request.gpus = 1};
    for (enum plan_order order = PLAN_SHORTEST; order < PLAN_ORDERS; order++)
        assert_first(order, &younger, &unknown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_order_has_its_key),
        cmocka_unit_test(a_named_task_is_the_first),
        cmocka_unit_test(a_task_of_unknown_time_is_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
