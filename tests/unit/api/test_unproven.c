/* SPDX-License-Identifier: Apache-2.0 */
/* Connections without a proven user: which is late, and which loses its place to a new one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/unproven.h"

enum { CROWD = 9, CALM = 5, MANY = UNPROVEN_PLACES + 1 };

/* Adds them one a microsecond. */
static void add_of(struct unproven_list *list, struct unproven *places, int n, uint64_t network)
{
    for (int i = 0; i < n; i++) {
        places[i] = (struct unproven){.network = network, .begun_us = list->n};
        unproven_add(list, &places[i]);
    }
}

static void test_the_oldest_of_the_crowd_loses_its_place(void **state)
{
    struct unproven_list list;
    struct unproven calm[2], crowd[MANY];
    unproven_init(&list);
    add_of(&list, calm, 2, CALM);
    add_of(&list, crowd, UNPROVEN_PLACES - 2, CROWD);
    assert_null(unproven_find_excess(&list));
    add_of(&list, &crowd[UNPROVEN_PLACES - 2], 1, CROWD);
    assert_ptr_equal(unproven_find_excess(&list), &crowd[0]);
    crowd[0].is_judged = true; /* its request is whole */
    assert_ptr_equal(unproven_find_excess(&list), &crowd[1]);
    unproven_remove(&list, &crowd[1]);
    assert_null(unproven_find_excess(&list));
    unproven_remove(&list, &crowd[1]); /* a second time: nothing */
    assert_int_equal(list.n, UNPROVEN_PLACES);
}

static void test_a_new_one_elsewhere_costs_the_crowd(void **state)
{
    struct unproven_list list;
    struct unproven calm[1], crowd[MANY];
    unproven_init(&list);
    add_of(&list, crowd, UNPROVEN_PLACES, CROWD);
    add_of(&list, calm, 1, CALM);
    assert_ptr_equal(unproven_find_excess(&list), &crowd[0]);
    for (int i = 0; i < UNPROVEN_PLACES; i++)
        crowd[i].is_judged = true;
    assert_ptr_equal(unproven_find_excess(&list), &crowd[UNPROVEN_PLACES - 1]);
}

static void test_without_a_crowd_the_oldest_loses_its_place(void **state)
{
    struct unproven_list list;
    struct unproven places[MANY];
    unproven_init(&list);
    for (int i = 0; i < MANY; i++)
        add_of(&list, &places[i], 1, (uint64_t)i);
    assert_ptr_equal(unproven_find_excess(&list), &places[0]);
}

static void test_a_place_ends_by_the_time_since_it_began(void **state)
{
    struct unproven_list list;
    struct unproven places[2];
    unproven_init(&list);
    assert_null(unproven_find_late(&list, UNPROVEN_MAX_US));
    add_of(&list, places, 2, CALM); /* at 0 and 1 */
    assert_null(unproven_find_late(&list, UNPROVEN_MAX_US - 1));
    assert_ptr_equal(unproven_find_late(&list, UNPROVEN_MAX_US), &places[0]);
    places[0].is_judged = true;
    assert_null(unproven_find_late(&list, UNPROVEN_MAX_US));
    assert_ptr_equal(unproven_find_late(&list, UNPROVEN_MAX_US + 1), &places[1]);
    unproven_remove(&list, &places[1]);
    assert_null(unproven_find_late(&list, JUDGED_MAX_US - 1));
    assert_ptr_equal(unproven_find_late(&list, JUDGED_MAX_US), &places[0]); /* munged is stuck */
    places[0].is_judged = false;                                            /* refused */
    assert_ptr_equal(unproven_find_late(&list, UNPROVEN_MAX_US), &places[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_oldest_of_the_crowd_loses_its_place),
        cmocka_unit_test(test_a_new_one_elsewhere_costs_the_crowd),
        cmocka_unit_test(test_without_a_crowd_the_oldest_loses_its_place),
        cmocka_unit_test(test_a_place_ends_by_the_time_since_it_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
