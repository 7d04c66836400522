/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy that is added to the table is known wherever policies are listed or found: this program
 * is linked with pretend_policies.c. (test_programs.py tests whole programs.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policies.h"
#include "sim/oracle.h"
#include "taskfile/description.h"

static void it_is_found_and_listed(void **state)
{
    assert_string_equal(policy_find("pretend")->help, "places nothing");
    assert_string_equal(policy_name_at(1), "pretend");
    assert_null(policy_name_at(2));
    assert_null(policy_find("rr"));
}

static void help_and_completion_of_task_options_know_it(void **state)
{
    const struct option_spec *spec = &task_options[TASK_POLICY];
    char help[OPTION_HELP_MAX];
    option_help_text(spec, help, sizeof help);
    assert_non_null(strstr(help, "magm, pretend;"));
    assert_string_equal(option_choice(spec, 1), "pretend");
    assert_null(option_choice(spec, 2));
}

static void the_simulator_knows_it(void **state)
{
    struct sim_policy found;
    assert_true(sim_policy_find("pretend", &found));
    assert_ptr_equal(found.policy, policy_find("pretend"));
    assert_string_equal(sim_policy_name_at(1), "pretend");
    assert_string_equal(sim_policy_name_at(2), "off");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_found_and_listed),
        cmocka_unit_test(help_and_completion_of_task_options_know_it),
        cmocka_unit_test(the_simulator_knows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
