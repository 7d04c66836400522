/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy that is added from outside: this program has a policy_table of its own, which replaces
 * the product's when it is linked. All that lists or finds policies has to know the new one.
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

static enum placement_answer choose_nothing(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    memset(ret_verdicts, 0, (size_t)query->view->n_gpus * sizeof *ret_verdicts);
    return PLACE_WAIT;
}

static const struct policy pretend = {
    .name = "pretend", .help = "places nothing", .choose = choose_nothing};

const struct policy *const policy_table[] = {&policy_magm, &pretend, NULL};

static void it_is_found_and_listed(void **state)
{
    assert_ptr_equal(policy_find("pretend"), &pretend);
    assert_string_equal(policy_name_at(1), "pretend");
    assert_null(policy_name_at(2));
    assert_null(policy_find("rr"));
}

static void help_and_completion_of_task_options_know_it(void **state)
{
    const struct option_spec *spec = &task_options[TASK_POLICY];
    char help[OPTION_HELP_MAX];
    option_help_text(spec->help, spec->choice_at, help, sizeof help);
    assert_non_null(strstr(help, "magm, pretend;"));
    assert_string_equal(option_choice(spec, 1), "pretend");
    assert_null(option_choice(spec, 2));
}

static void the_simulator_knows_it(void **state)
{
    struct sim_policy found;
    assert_true(sim_policy_find("pretend", &found));
    assert_ptr_equal(found.policy, &pretend);
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
