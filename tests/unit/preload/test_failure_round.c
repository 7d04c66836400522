/* SPDX-License-Identifier: Apache-2.0 */
/* Which failure of an allocation is final. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/failure_round.h"

/* Returns the place of the first final failure, or -1. */
static int first_final(const uint64_t *bytes, int n)
{
    struct failure_round round = {0};
    for (int i = 0; i < n; i++)
        if (failure_round_add(&round, bytes[i]))
            return i;
    return -1;
}

static void test_the_same_size_again(void **state)
{
    assert_int_equal(first_final((uint64_t[]){256, 256}, 2), 1);
}

static void test_the_smallest_of_a_round(void **state)
{
    assert_int_equal(first_final((uint64_t[]){512, 460, 414, 512, 460, 414}, 6), 5);
}

static void test_a_larger_size_is_another_allocation(void **state)
{
    assert_int_equal(first_final((uint64_t[]){100, 300, 300}, 3), 2);
}

static void test_it_stays_final(void **state)
{
    struct failure_round round = {0};
    failure_round_add(&round, 256);
    assert_true(failure_round_add(&round, 256));
    assert_true(failure_round_add(&round, 256));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_size_again),
        cmocka_unit_test(test_the_smallest_of_a_round),
        cmocka_unit_test(test_a_larger_size_is_another_allocation),
        cmocka_unit_test(test_it_stays_final),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
