/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the threads that wait for one GPU try again, and which give up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/wait_rule.h"

static const struct wait_limits LIMITS = {
    .total_bytes = {.value = 100, .valid = true},
    .free_bytes = {.value = 50, .valid = true},
    .bound_ms = 1000,
};

static enum wait_word word_for(struct wait_case one, const struct wait_limits *limits)
{
    enum wait_word word;
    wait_rule_decide(&one, 1, limits, &word);
    return word;
}

static void test_one(void **state)
{
    assert_int_equal(
        word_for((struct wait_case){.bytes = 50, .is_asking = true}, &LIMITS), WAIT_RETRY);
    assert_int_equal(
        word_for((struct wait_case){.bytes = 51, .is_asking = true}, &LIMITS), WAIT_ON);
    assert_int_equal(
        word_for((struct wait_case){.bytes = 101, .is_asking = true}, &LIMITS), WAIT_FAIL);
    assert_int_equal(word_for((struct wait_case){.bytes = 50}, &LIMITS), WAIT_ON);
}

static void test_with_what_it_holds(void **state)
{
    struct wait_case one = {.bytes = 40, .held_bytes = 60, .is_asking = true};
    assert_int_equal(word_for(one, &LIMITS), WAIT_RETRY);
    one.held_bytes = 61;
    assert_int_equal(word_for(one, &LIMITS), WAIT_FAIL);
}

static void test_a_client_with_a_limit(void **state)
{
    const struct wait_limits limits = {.free_bytes = {1e12, true}, .bound_ms = 1000};
    struct wait_case one = {.bytes = 1 << 28, .limit_bytes = 3 << 28, .is_asking = true};
    assert_int_equal(word_for(one, &limits), WAIT_RETRY);
    one.held_bytes = 1 << 28;
    assert_int_equal(word_for(one, &limits), WAIT_RETRY);
    one.held_bytes++;
    assert_int_equal(word_for(one, &limits), WAIT_FAIL);
}

static void test_retries_that_do_not_help(void **state)
{
    struct wait_case one = {.bytes = 1, .retries = 19, .is_asking = true};
    assert_int_equal(word_for(one, &LIMITS), WAIT_RETRY);
    one.retries++;
    assert_int_equal(word_for(one, &LIMITS), WAIT_FAIL);
}

static void test_alone_it_waits_for_what_just_ended(void **state)
{
    const struct wait_limits limits = {.free_bytes = {50, true}, .bound_ms = 100000};
    struct wait_case one = {.bytes = 60, .is_alone = true, .waited_ms = 2999, .is_asking = true};
    assert_int_equal(word_for(one, &limits), WAIT_ON);
    one.waited_ms++;
    assert_int_equal(word_for(one, &limits), WAIT_FAIL);
    one.is_alone = false;
    assert_int_equal(word_for(one, &limits), WAIT_ON);
}

static void test_its_time_is_bounded(void **state)
{
    struct wait_case late = {.bytes = 60, .waited_ms = 999, .is_asking = true};
    assert_int_equal(word_for(late, &LIMITS), WAIT_ON);
    late.waited_ms = 1000;
    assert_int_equal(word_for(late, &LIMITS), WAIT_FAIL);
}

static void test_a_task_that_is_ended(void **state)
{
    assert_int_equal(
        word_for((struct wait_case){.bytes = 1, .is_ending = true, .is_asking = true}, &LIMITS),
        WAIT_FAIL);
}

static void test_unknown_is_tried(void **state)
{
    const struct wait_limits unknown = {.bound_ms = 1000};
    assert_int_equal(
        word_for((struct wait_case){.bytes = 1000, .is_asking = true}, &unknown), WAIT_RETRY);
}

static void test_the_same_memory_is_promised_once(void **state)
{
    const struct wait_case cases[] = {{.bytes = 60, .is_asking = true},
        {.bytes = 30, .is_asking = true}, {.bytes = 30, .is_asking = true},
        {.bytes = 20, .is_asking = true}};
    const enum wait_word expected[] = {WAIT_ON, WAIT_RETRY, WAIT_ON, WAIT_RETRY};
    enum wait_word words[4];
    wait_rule_decide(cases, 4, &LIMITS, words);
    for (int i = 0; i < 4; i++)
        assert_int_equal(words[i], expected[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_with_what_it_holds),
        cmocka_unit_test(test_a_client_with_a_limit),
        cmocka_unit_test(test_retries_that_do_not_help),
        cmocka_unit_test(test_alone_it_waits_for_what_just_ended),
        cmocka_unit_test(test_its_time_is_bounded),
        cmocka_unit_test(test_a_task_that_is_ended),
        cmocka_unit_test(test_unknown_is_tried),
        cmocka_unit_test(test_the_same_memory_is_promised_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
