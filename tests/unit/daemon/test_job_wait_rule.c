/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the table of job_wait_rule.h, in their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "daemon/node/job_wait_rule.h"

/* 10 GiB are wanted of a GPU of 40, of which 5 are free. */
static struct job_wait_case waiting(void)
{
    return (struct job_wait_case){
        .general = {.bytes = 10 * (uint64_t)GIB, .waited_ms = 1000, .bound_ms = WAIT_BOUND_MS},
        .free_bytes = reading_of(5 * GIB),
        .total_bytes = reading_of(40.0 * GIB)};
}

static void check(const struct job_wait_case *c, enum job_wait_answer answer, const char *why)
{
    const char *found = NULL;
    assert_int_equal(job_wait_decide(c, &found), answer);
    if (why)
        assert_string_equal(found, why);
}

static void test_it_waits_and_tries_when_there_is_enough(void **state)
{
    struct job_wait_case c = waiting();
    check(&c, JOB_WAIT_ON, NULL);
    c.free_bytes = reading_of(10.0 * GIB);
    check(&c, JOB_WAIT_TRY, NULL);
    c.is_taken = true;
    check(&c, JOB_WAIT_ON, NULL);
    c = waiting();
    c.free_bytes = READING_NONE;
    check(&c, JOB_WAIT_TRY, NULL);
}

static void test_the_general_limits_are_first(void **state)
{
    struct job_wait_case c = waiting();
    c.free_bytes = reading_of(30.0 * GIB);
    c.general.waited_ms = c.general.bound_ms;
    check(&c, JOB_WAIT_FAIL, "it has waited as long as memory-wait allows");
}

static void test_more_than_the_gpu_has(void **state)
{
    struct job_wait_case c = waiting();
    c.general.held_bytes = 31 * (uint64_t)GIB;
    check(&c, JOB_WAIT_FAIL, "the GPU has less memory in all");
    c.total_bytes = READING_NONE;
    check(&c, JOB_WAIT_ON, NULL);
}

static void test_alone_for_some_seconds(void **state)
{
    struct job_wait_case c = waiting();
    c.alone_us = 2 * SECOND_US;
    check(&c, JOB_WAIT_ON, NULL);
    c.alone_us = 3 * SECOND_US;
    check(&c, JOB_WAIT_FAIL, "its job is alone on the GPU");
    c.free_bytes = reading_of(20.0 * GIB);
    check(&c, JOB_WAIT_TRY, NULL);
}

static void test_when_all_wait_the_youngest_gives_up(void **state)
{
    struct job_wait_case c = waiting();
    c.all_wait = true;
    check(&c, JOB_WAIT_ON, NULL);
    c.is_youngest = true;
    check(&c, JOB_WAIT_FAIL, "all jobs on the GPU wait, and it is the youngest");
    c.all_wait = false;
    check(&c, JOB_WAIT_ON, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_waits_and_tries_when_there_is_enough),
        cmocka_unit_test(test_the_general_limits_are_first),
        cmocka_unit_test(test_more_than_the_gpu_has),
        cmocka_unit_test(test_alone_for_some_seconds),
        cmocka_unit_test(test_when_all_wait_the_youngest_gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
