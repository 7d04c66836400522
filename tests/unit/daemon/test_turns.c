/* SPDX-License-Identifier: Apache-2.0 */
/* Users take turns, and each user's entries keep their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/turns.h"

enum { ADA = 1000, BOB = 1001, EVE = 1002 };

static struct turn ada[3], bob[2], eve;

static void fill(struct turns *turns)
{
    for (int i = 0; i < 3; i++)
        ada[i].user = ADA;
    bob[0].user = bob[1].user = BOB;
    eve.user = EVE;
    *turns = (struct turns){0};
    for (int i = 0; i < 3; i++)
        turns_add(turns, &ada[i]);
    turns_add(turns, &bob[0]);
    turns_add(turns, &bob[1]);
    turns_add(turns, &eve);
}

static void test_a_user_with_many_entries_does_not_delay_others(void **state)
{
    struct turns turns;
    struct turn *const order[] = {&ada[0], &bob[0], &eve, &ada[1], &bob[1], &ada[2]};
    fill(&turns);
    for (int i = 0; i < 6; i++)
        assert_ptr_equal(turns_take(&turns), order[i]);
    assert_null(turns_take(&turns));
}

static void test_what_is_put_back_stays_first_of_its_user(void **state)
{
    struct turns turns;
    struct turn *const order[] = {&ada[0], &bob[0], &eve, &ada[0], &bob[0], &eve, &ada[0]};
    fill(&turns);
    for (int i = 0; i < 7; i++) {
        struct turn *taken = turns_take(&turns);
        assert_ptr_equal(taken, order[i]);
        turns_put_back(&turns, taken);
    }
}

static void test_a_new_user_waits_for_one_turn_of_each(void **state)
{
    struct turns turns;
    fill(&turns);
    struct turn late = {.user = 1003};
    turns_put_back(&turns, turns_take(&turns));
    turns_add(&turns, &late);
    assert_ptr_equal(turns_take(&turns), &bob[0]);
    assert_ptr_equal(turns_take(&turns), &eve);
    assert_ptr_equal(turns_take(&turns), &ada[0]);
    assert_ptr_equal(turns_take(&turns), &late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_user_with_many_entries_does_not_delay_others),
        cmocka_unit_test(test_what_is_put_back_stays_first_of_its_user),
        cmocka_unit_test(test_a_new_user_waits_for_one_turn_of_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
