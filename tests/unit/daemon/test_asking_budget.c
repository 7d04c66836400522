/* SPDX-License-Identifier: Apache-2.0 */
/* What each user may have cuDNN asked in a day. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/kernels/asking_budget.h"

static void test_answers_of_a_day(void **state)
{
    struct asking_budget budget = {0};
    int64_t now_us = HOUR_US;
    assert_null(asking_budget_check(&budget, 1, ASKING_ANSWERS_A_DAY, now_us));
    assert_non_null(asking_budget_check(&budget, 1, ASKING_ANSWERS_A_DAY + 1, now_us));
    asking_budget_note(&budget, 1, 9900, SECOND_US, now_us);
    assert_null(asking_budget_check(&budget, 1, 100, now_us));
    assert_non_null(asking_budget_check(&budget, 1, 101, now_us));
    assert_null(asking_budget_check(&budget, 2, 10000, now_us));
    asking_budget_note(&budget, 1, 100, SECOND_US, now_us + 23 * HOUR_US);
    assert_non_null(asking_budget_check(&budget, 1, 1, now_us + DAY_US - 1));
    assert_null(asking_budget_check(&budget, 1, 10000, now_us + DAY_US));
    asking_budget_fini(&budget);
}

/* Questions that take long are few. */
static void test_time_of_a_day(void **state)
{
    struct asking_budget budget = {0};
    for (int i = 0; i < 36; i++) {
        assert_null(asking_budget_check(&budget, 1, 1, i * MINUTE_US));
        asking_budget_note(&budget, 1, 1, 20 * SECOND_US, i * MINUTE_US);
    }
    assert_non_null(asking_budget_check(&budget, 1, 1, 36 * MINUTE_US));
    assert_null(asking_budget_check(&budget, 2, 1, 36 * MINUTE_US));
    assert_null(asking_budget_check(&budget, 1, 1, DAY_US));
    asking_budget_fini(&budget);
}

/* Each day others: only those of the last day are kept. */
static void test_the_list_does_not_grow(void **state)
{
    struct asking_budget budget = {0};
    for (unsigned i = 0; i < 1000; i++)
        asking_budget_note(&budget, i, 1, 0, i * HOUR_US);
    assert_int_equal(budget.n, 24);
    asking_budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_of_a_day),
        cmocka_unit_test(test_time_of_a_day),
        cmocka_unit_test(test_the_list_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
