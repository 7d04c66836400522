/* SPDX-License-Identifier: Apache-2.0 */
/* The hold after tasks have given way: its table, and both ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/hold.h"

static void a_newcomer_that_is_missed_soon_doubles_it(void **state)
{
    assert_int_equal(hold_next_doublings(0, 2, 100, 104), 1);
    assert_int_equal(hold_next_doublings(1, 2, 100, 115), 2);
    assert_int_equal(hold_next_doublings(2, 2, 100, 220), 0);
}

static void five_holds_are_the_bound(void **state)
{
    assert_int_equal(hold_next_doublings(0, 10, 100, 149), 1);
    assert_int_equal(hold_next_doublings(0, 10, 100, 150), 0);
    assert_int_equal(hold_next_doublings(1, 10, 100, 199), 2);
}

static void it_is_at_most_sixteen_times_the_first(void **state)
{
    int doublings = 0;
    for (int i = 0; i < 10; i++)
        doublings = hold_next_doublings(doublings, 10, 100, 101);
    assert_int_equal(10 << doublings, 160);
}

static void without_a_newcomer_it_is_the_first_again(void **state)
{
    assert_int_equal(hold_next_doublings(3, 10, 0, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_newcomer_that_is_missed_soon_doubles_it),
        cmocka_unit_test(five_holds_are_the_bound),
        cmocka_unit_test(it_is_at_most_sixteen_times_the_first),
        cmocka_unit_test(without_a_newcomer_it_is_the_first_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
