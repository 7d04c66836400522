/* SPDX-License-Identifier: Apache-2.0 */
/* The rungs of successive halving, and which report at one goes on. */
#include "core/halving.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"

static const struct halving_rule by_3 = {.factor = 3, .first_step = 3};

static void rungs_are_a_factor_apart(void **state)
{
    static const struct {
        int64_t step;
        int rung;
    } table[] = {{0, -1}, {2, -1}, {3, 0}, {8, 0}, {9, 1}, {26, 1}, {27, 2}, {81, 3}};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_int_equal(halving_rung(&by_3, table[i].step), table[i].rung);
    for (int rung = 0; rung < 5; rung++)
        assert_int_equal(halving_rung(&by_3, halving_step(&by_3, rung)), rung);
}

static void the_largest_steps_do_not_overflow(void **state)
{
    const struct halving_rule high = {.factor = STOP_FACTOR_MAX, .first_step = STOP_STEP_MAX};
    const struct halving_rule low = {.factor = 2, .first_step = 1};
    assert_int_equal(halving_rung(&high, STOP_STEP_MAX), 0);
    assert_int_equal(halving_rung(&low, STOP_STEP_MAX), STOP_RUNGS_MAX - 1);
    assert_true(halving_step(&low, STOP_RUNGS_MAX - 1) <= STOP_STEP_MAX);
    assert_int_equal(halving_step(&high, STOP_RUNGS_MAX - 1), STOP_STEP_MAX);
}

/* The reports of the head of halving.c. */
static void the_best_of_a_factor_goes_on(void **state)
{
    static const struct {
        double value;
        int rank;
        bool is_losing;
    } reports[] = {{0.9, 1, false}, {0.5, 1, false}, {0.7, 2, true}, {0.4, 1, false},
        {0.6, 3, true}, {0.3, 1, false}, {0.4, 2, false}};
    double costs[ARRAY_SIZE(reports)];
    for (size_t i = 0; i < ARRAY_SIZE(reports); i++) {
        costs[i] = halving_cost(&by_3, reports[i].value);
        struct halving_rank rank = halving_judge(&by_3, 0, costs, i, costs[i]);
        assert_int_equal(rank.rank, reports[i].rank);
        assert_int_equal(rank.of, i + 1);
        assert_int_equal(rank.is_losing, reports[i].is_losing);
    }
}

static void what_is_no_number_is_the_worst(void **state)
{
    const struct halving_rule max = {.factor = 3, .first_step = 3, .is_max = true};
    const double wrong[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        double costs[] = {halving_cost(&max, -1e300)}, cost = halving_cost(&max, wrong[i]);
        assert_true(halving_judge(&max, 0, costs, 1, cost).is_losing);
        assert_true(halving_judge(&by_3, 0, costs, 1, halving_cost(&by_3, wrong[i])).is_losing);
    }
    assert_true(halving_cost(&max, 2) < halving_cost(&max, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rungs_are_a_factor_apart),
        cmocka_unit_test(the_largest_steps_do_not_overflow),
        cmocka_unit_test(the_best_of_a_factor_goes_on),
        cmocka_unit_test(what_is_no_number_is_the_worst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
