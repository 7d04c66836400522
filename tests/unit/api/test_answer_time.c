/* SPDX-License-Identifier: Apache-2.0 */
/* How long clients wait for the answer to which request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/answer_time.h"

static void test_a_copy_of_memory_may_take_an_hour(void **state)
{
    (void)state;
    assert_int_equal(answer_time_max_s("/v1/tasks/12/suspend"), ANSWER_COPY_MAX_S);
    assert_int_equal(answer_time_max_s("/v1/tasks/12_7/resume"), ANSWER_COPY_MAX_S);
    assert_int_equal(answer_time_max_s("/v1/tasks/12/move?dry=1"), ANSWER_COPY_MAX_S);
}

static void test_all_others_have_the_usual_time(void **state)
{
    (void)state;
    assert_int_equal(answer_time_max_s("/v1/tasks"), ANSWER_MAX_S);
    assert_int_equal(answer_time_max_s("/v1/tasks/12/wait?timeout_s=30"), ANSWER_MAX_S);
    assert_int_equal(answer_time_max_s("/v1/tasks?name=/move"), ANSWER_MAX_S);
    assert_int_equal(answer_time_max_s("/v1/tasks/remove"), ANSWER_MAX_S);
    assert_int_equal(answer_time_max_s(""), ANSWER_MAX_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_copy_of_memory_may_take_an_hour),
        cmocka_unit_test(test_all_others_have_the_usual_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
