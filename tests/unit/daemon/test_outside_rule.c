/* SPDX-License-Identifier: Apache-2.0 */
/* One message for each person and hour, about processes that live for a while. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/outside/outside_rule.h"

static const struct allowed_users listed = {.list = {1500}, .n = 1};

static void a_person_gets_one_message_an_hour(void **state)
{
    struct outside_rule rule = {0};
    int64_t now_us = 5 * SECOND_US;
    assert_false(outside_rule_review(&rule, 1000, true, now_us, &listed));
    assert_true(outside_rule_review(&rule, 1000, false, now_us, &listed));
    for (int i = 0; i < 100; i++)
        assert_false(outside_rule_review(&rule, 1000, false, now_us + i, &listed));
    assert_true(outside_rule_review(&rule, 1001, false, now_us, &listed));
    now_us += OUTSIDE_EVERY_US;
    assert_true(outside_rule_review(&rule, 1000, false, now_us, &listed));
    assert_int_equal(rule.n, 1); /* older ones are forgotten */
    outside_rule_fini(&rule);
}

static void services_and_listed_users_get_none(void **state)
{
    struct outside_rule rule = {0};
    static const uint32_t users[] = {0, 33, 999, 1500, 61184, 65519};
    for (size_t i = 0; i < sizeof users / sizeof *users; i++)
        assert_false(outside_rule_review(&rule, users[i], false, 0, &listed));
    assert_true(outside_rule_review(&rule, 65534, false, 0, &listed));
    outside_rule_fini(&rule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_person_gets_one_message_an_hour),
        cmocka_unit_test(services_and_listed_users_get_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
