/* SPDX-License-Identifier: Apache-2.0 */
/* Which process gets which order to PyTorch's profiler, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "exec/torch_dispatch.h"

enum { NOON = 1700000000 };

static struct torch_dispatch dispatch;

static void take(int64_t number, int64_t now_s)
{
    torch_dispatch_take(
        &dispatch, &(struct torch_order){.number = number, .steps = 5}, now_s * SECOND_US);
}

/* The number of the order that a process gets, 0 for none. */
static int64_t next(pid_t pid, int64_t now_s)
{
    struct torch_given given = torch_dispatch_next(&dispatch, pid, now_s * SECOND_US);
    return given.order ? given.order->number : 0;
}

static int begin(void **state)
{
    dispatch = (struct torch_dispatch){0};
    return 0;
}

static void each_process_gets_each_order_once(void **state)
{
    assert_int_equal(next(1, 0), 0);
    take(NOON, 100);
    assert_int_equal(next(1, 100), NOON);
    assert_int_equal(next(2, 104), NOON);
    assert_int_equal(next(1, 105), 0);
    assert_int_equal(next(2, 109), 0);
    take(NOON + 1, 200);
    assert_int_equal(torch_dispatch_next(&dispatch, 1, 200 * SECOND_US).count, 2);
    assert_int_equal(next(1, 205), 0);
}

static void an_old_order_is_not_for_a_new_process(void **state)
{
    assert_int_equal(next(1, 0), 0);
    take(NOON, 100);
    assert_int_equal(next(2, 100 + TORCH_ORDER_FRESH_S), NOON);
    assert_int_equal(next(3, 101 + TORCH_ORDER_FRESH_S), 0);
    take(NOON, 3600); /* the file still has it */
    assert_int_equal(next(4, 3600), 0);
    assert_int_equal(next(1, 3600), NOON); /* it ran, but has not asked since */
    take(NOON + 1, 3601);
    assert_int_equal(next(4, 3602), NOON + 1);
}

static void the_order_of_the_submission_is_for_all(void **state)
{
    torch_dispatch_submitted(&dispatch, &(struct torch_order){.number = 1, .step = 100});
    assert_int_equal(next(1, 0), 1);
    take(NOON, 100);
    assert_int_equal(next(1, 100), NOON);
    struct torch_given given = torch_dispatch_next(&dispatch, 2, HOUR_US);
    assert_int_equal(given.order->number, 1);
    assert_int_equal(given.count, 1);
    assert_int_equal(next(2, 3605), 0);
}

static void a_clock_that_steps_back_loses_no_order(void **state)
{
    take(NOON, 100);
    assert_int_equal(next(1, 100), NOON);
    take(NOON - 3600, 110);
    assert_int_equal(next(1, 110), NOON - 3600);
    assert_int_equal(next(1, 115), 0);
}

static void too_many_processes(void **state)
{
    for (pid_t pid = 1; pid <= TORCH_PROCESSES_MAX; pid++)
        assert_int_equal(next(pid, 0), 0);
    take(NOON, 1);
    assert_int_equal(next(TORCH_PROCESSES_MAX + 1, 1), 0);
    assert_int_equal(next(TORCH_PROCESSES_MAX, 1), NOON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_process_gets_each_order_once, begin),
        cmocka_unit_test_setup(an_old_order_is_not_for_a_new_process, begin),
        cmocka_unit_test_setup(the_order_of_the_submission_is_for_all, begin),
        cmocka_unit_test_setup(a_clock_that_steps_back_loses_no_order, begin),
        cmocka_unit_test_setup(too_many_processes, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
