/* SPDX-License-Identifier: Apache-2.0 */
/* Loss curves that are given, and that are drawn. */
#include "sim/loss_curve.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"

enum { TRIALS = 400 };

static const struct halving_rule min_by_3 = {.factor = 3, .first_step = 3};
static const struct halving_rule max_by_3 = {.factor = 3, .first_step = 3, .is_max = true};

static void given_values_are_those_of_the_rungs(void **state)
{
    struct loss_curve curve;
    assert_int_equal(loss_curve_parse("0.9;nan;-2e-1", &curve), 0);
    assert_true(loss_curve_at(&curve, &min_by_3, 0).value == 0.9);
    assert_true(isnan(loss_curve_at(&curve, &min_by_3, 1).value));
    assert_true(loss_curve_at(&curve, &min_by_3, 2).value == -0.2);
    assert_false(loss_curve_at(&curve, &min_by_3, 3).valid);
    assert_true(loss_curve_end_cost(&curve, &min_by_3, 100) == -0.2);
    assert_true(loss_curve_end_cost(&curve, &max_by_3, 100) == 0.2);
    assert_int_equal(loss_curve_parse("0.9;nan", &curve), 0);
    assert_true(isinf(loss_curve_end_cost(&curve, &min_by_3, 100))); /* diverged: the worst */
}

static void other_texts_are_refused(void **state)
{
    static const char *const texts[] = {"", ";", "1;", ";1", "1;;2", "1,2", "inf", "NaN", "1e999",
        "0x10", "1 ", "nano", "1;0000000000000000000000000000000000000000000000000"};
    struct loss_curve curve;
    char many[4 * STOP_RUNGS_MAX + 4] = "1";
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_int_equal(loss_curve_parse(texts[i], &curve), -EINVAL);
    for (int i = 1; i < STOP_RUNGS_MAX; i++)
        strcat(many, ";1");
    assert_int_equal(loss_curve_parse(many, &curve), 0);
    assert_int_equal(loss_curve_parse(strcat(many, ";1"), &curve), -EINVAL);
}

static void drawn_curves_fall(void **state)
{
    for (uint64_t task = 1; task <= TRIALS; task++) {
        struct loss_curve curve = loss_curve_draw(7, task), again = loss_curve_draw(7, task);
        assert_memory_equal(&curve, &again, sizeof curve);
        for (int rung = 1; rung < 5; rung++) {
            double before = loss_curve_at(&curve, &min_by_3, rung - 1).value;
            double now = loss_curve_at(&curve, &min_by_3, rung).value;
            assert_true(now < before && now > 0);
            assert_true(loss_curve_at(&curve, &max_by_3, rung).value == -now);
        }
        assert_true(loss_curve_end_cost(&curve, &min_by_3, 27) ==
                    loss_curve_at(&curve, &min_by_3, 2).value);
        assert_true(loss_curve_end_cost(&curve, &min_by_3, 27) ==
                    loss_curve_end_cost(&curve, &max_by_3, 27));
    }
    assert_true(loss_curve_draw(7, 1).end != loss_curve_draw(8, 1).end);
}

/* Else an early stop could never lose the best trial, or would always. */
static void an_early_rank_says_much_but_not_all(void **state)
{
    int same_order = 0, pairs = TRIALS / 2;
    for (uint64_t i = 0; i < TRIALS; i += 2) {
        struct loss_curve a = loss_curve_draw(7, i), b = loss_curve_draw(7, i + 1);
        bool is_early = loss_curve_at(&a, &min_by_3, 0).value <
                        loss_curve_at(&b, &min_by_3, 0).value;
        bool is_late = loss_curve_end_cost(&a, &min_by_3, 81) <
                       loss_curve_end_cost(&b, &min_by_3, 81);
        same_order += is_early == is_late;
    }
    assert_in_range(same_order, pairs * 3 / 4, pairs - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_values_are_those_of_the_rungs),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(drawn_curves_fall),
        cmocka_unit_test(an_early_rank_says_much_but_not_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
