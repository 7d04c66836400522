/* SPDX-License-Identifier: Apache-2.0 */
/* What a page says of the carrier of its process, and which orders it gets: in each state, and as a
 * page of anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "preload/page_orders.h"

enum { PID = 12 };

static struct preload_page page;
static char text[128];

static void begin(enum preload_carry_state where, enum preload_carry_why why)
{
    memset(&page, 0, sizeof page);
    page.carry_state = where;
    page.carry_why = why;
}

static bool can_carry(enum preload_carry_state where, enum preload_carry_why why)
{
    begin(where, why);
    strcpy(text, "nothing");
    bool can = page_can_carry(&page);
    assert_int_equal(page_explain_carrier(&page, PID, text, sizeof text), !can);
    assert_true(strncmp(text, can ? "nothing" : "process 12: ", 7) == 0);
    return can;
}

static void test_memory_that_is_here(void **state)
{
    assert_true(can_carry(PRELOAD_CARRY_IS_HERE, PRELOAD_CARRY_CAN));
    assert_true(can_carry(PRELOAD_CARRY_WAITING, PRELOAD_CARRY_CAN));
    for (uint32_t why = PRELOAD_CARRY_CAN + 1; why <= PRELOAD_CARRY_WHYS; why++) {
        assert_false(can_carry(PRELOAD_CARRY_IS_HERE, why));
        assert_false(can_carry(PRELOAD_CARRY_WAITING, why));
    }
}

/* It has been carried: a sample of its way back must not say that it cannot be. */
static void test_memory_that_is_not_here(void **state)
{
    for (uint32_t where = PRELOAD_CARRY_COPYING; where <= PRELOAD_CARRY_RETURNING; where++) {
        assert_true(can_carry(where, PRELOAD_CARRY_CAN));
        assert_true(can_carry(where, PRELOAD_CARRY_NO_GPU_MEMORY));
    }
}

static void test_what_no_carrier_has(void **state)
{
    assert_false(can_carry(PRELOAD_CARRY_NONE, PRELOAD_CARRY_CAN));
    assert_string_equal(text, "process 12: it has no memory that can be carried yet");
    assert_false(can_carry(PRELOAD_CARRY_NONE, PRELOAD_CARRY_SEVERAL_GPUS));
    assert_string_equal(text, "process 12: several GPUs are visible to it");
    assert_false(can_carry(PRELOAD_CARRY_LOST, PRELOAD_CARRY_CAN));
    assert_string_equal(text, "process 12: the copy of its memory was lost");
    assert_false(can_carry(UINT32_MAX, PRELOAD_CARRY_CAN));
    assert_false(page_can_carry(NULL));
    assert_true(page_explain_carrier(NULL, PID, text, sizeof text));
    assert_string_equal(
        text, "process 12: no preloaded library answers for it: it has ended, or runs without");
}

static uint32_t goal(void)
{
    return page.carry_order & PRELOAD_CARRY_GOAL_MASK;
}

/* The library reads the order when the return has ended: then its memory leaves again. */
static void test_an_order_out_on_the_way_back(void **state)
{
    begin(PRELOAD_CARRY_IS_AWAY, PRELOAD_CARRY_CAN);
    assert_int_equal(page_carry(&page, false), PRELOAD_CARRIES_STILL);
    page.carry_state = PRELOAD_CARRY_RETURNING;
    assert_int_equal(page_carry(&page, false), PRELOAD_CARRIES_STILL);
    uint32_t back = page.carry_order;
    assert_int_equal(page_carry(&page, true), PRELOAD_CARRIES_STILL);
    assert_int_equal(goal(), PRELOAD_CARRY_AWAY);
    assert_int_not_equal(page.carry_order, back);
    page.carry_state = PRELOAD_CARRY_IS_HERE; /* the return has ended */
    page.carry_done = back;
    assert_int_equal(page_carry(&page, true), PRELOAD_CARRIES_STILL);
    page.carry_state = PRELOAD_CARRY_IS_AWAY;
    page.carry_done = page.carry_order;
    assert_int_equal(page_carry(&page, true), PRELOAD_CARRIES_DONE);
}

/* It stays closed while memory of the process is not here. */
static void test_a_gate_before_memory_that_is_away(void **state)
{
    for (uint32_t where = 0; where <= PRELOAD_CARRY_LOST + 1; where++) {
        begin(where, PRELOAD_CARRY_CAN);
        page_set_gate(&page, true);
        page_set_gate(&page, false);
        assert_int_equal(page.gate, where >= PRELOAD_CARRY_COPYING);
    }
}

/* Any words, as a process may write them, also between two calls: each call ends, and answers with
 * one of its answers. */
static void test_a_page_of_anything(void **state)
{
    static const uint32_t words[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 1U << 31, UINT32_MAX};
    const uint32_t n = sizeof words / sizeof *words;
    for (uint32_t i = 0; i < n * n * n * n; i++) {
        begin(words[i % n], words[i / n % n]);
        page.carry_order = words[i / n / n % n];
        page.carry_done = words[i / n / n / n % n];
        page.carry_lies = page.carry_places = (uint8_t)page.carry_order;
        page.carry_place = (uint16_t)page.carry_order;
        assert_true(page_carry(&page, i % 2) <= PRELOAD_CARRIES_STILL);
        assert_true(page_relocate(&page, PRELOAD_PLACE_OWN) <= PRELOAD_CARRIES_STILL);
        assert_true(page_lies(&page) < PRELOAD_PLACES);
        page_heal(&page);
        page_explain_carrier(&page, PID, text, sizeof text);
        assert_non_null(memchr(text, '\0', sizeof text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_that_is_here),
        cmocka_unit_test(test_memory_that_is_not_here),
        cmocka_unit_test(test_what_no_carrier_has),
        cmocka_unit_test(test_an_order_out_on_the_way_back),
        cmocka_unit_test(test_a_gate_before_memory_that_is_away),
        cmocka_unit_test(test_a_page_of_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
