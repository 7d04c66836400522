/* SPDX-License-Identifier: Apache-2.0 */
/* When a thread that waits gets the true error, whatever other tasks do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "preload/wait_rule.h"

static void test_it_may_wait(void **state)
{
    const struct wait_case one = {.bytes = 50, .bound_ms = 1000};
    assert_null(wait_rule_why_fails(&one));
}

static void test_a_client_with_a_limit(void **state)
{
    struct wait_case one = {.bytes = 1 << 28, .limit_bytes = 3 << 28, .bound_ms = 1000};
    assert_null(wait_rule_why_fails(&one));
    one.held_bytes = 1 << 28;
    assert_null(wait_rule_why_fails(&one));
    one.held_bytes++;
    assert_string_equal(wait_rule_why_fails(&one), "it would exceed its MPS memory limit");
    one.limit_bytes = 0;
    assert_null(wait_rule_why_fails(&one));
}

static void test_tries_that_do_not_help(void **state)
{
    struct wait_case one = {.bytes = 1, .bound_ms = 1000, .retries = 19};
    assert_null(wait_rule_why_fails(&one));
    one.retries++;
    assert_non_null(wait_rule_why_fails(&one));
}

static void test_its_time_is_bounded(void **state)
{
    struct wait_case late = {.bytes = 60, .bound_ms = 1000, .waited_ms = 999};
    assert_null(wait_rule_why_fails(&late));
    late.waited_ms = 1000;
    assert_non_null(wait_rule_why_fails(&late));
}

static void test_a_rank_for_which_others_wait(void **state)
{
    struct wait_case rank = {.bytes = 1, .bound_ms = 1000, .ranks_ms = 400, .waited_ms = 399};
    assert_int_equal(wait_rule_bound_ms(&rank), 400);
    assert_null(wait_rule_why_fails(&rank));
    rank.waited_ms = 400;
    assert_non_null(strstr(wait_rule_why_fails(&rank), "suspend-ranks-max"));
    rank.ranks_ms = 2000;
    assert_int_equal(wait_rule_bound_ms(&rank), 1000);
    assert_null(wait_rule_why_fails(&rank));
    rank.ranks_ms = 0;
    assert_int_equal(wait_rule_bound_ms(&rank), 1000);
}

static void test_with_a_bound_of_nothing_none_waits(void **state)
{
    const struct wait_case one = {.bytes = 1};
    assert_non_null(wait_rule_why_fails(&one));
}

static void test_a_task_that_is_ended(void **state)
{
    const struct wait_case one = {.bytes = 1, .bound_ms = 1000, .is_ending = true};
    assert_string_equal(wait_rule_why_fails(&one), "its task is being ended");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_may_wait),
        cmocka_unit_test(test_a_client_with_a_limit),
        cmocka_unit_test(test_tries_that_do_not_help),
        cmocka_unit_test(test_its_time_is_bounded),
        cmocka_unit_test(test_a_rank_for_which_others_wait),
        cmocka_unit_test(test_with_a_bound_of_nothing_none_waits),
        cmocka_unit_test(test_a_task_that_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
