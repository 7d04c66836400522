/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a simulation's policies, and which of them know every task's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policies.h"
#include "sim/oracle.h"

static bool is_listed(const char *name)
{
    for (size_t i = 0; sim_policy_name_at(i); i++)
        if (strcmp(sim_policy_name_at(i), name) == 0)
            return true;
    return false;
}

static void test_the_list_and_the_policies_agree(void **state)
{
    struct sim_policy policy;
    for (size_t i = 0; sim_policy_name_at(i); i++)
        assert_true(sim_policy_find(sim_policy_name_at(i), &policy));
    for (int i = 0; policy_table[i]; i++)
        assert_true(is_listed(policy_table[i]->name));
}

static void test_oracles_know_and_others_do_not(void **state)
{
    struct sim_policy policy;
    assert_true(
        sim_policy_find("OWF", &policy) && policy.knows_memory && policy.policy == &policy_magm);
    assert_true(sim_policy_find("magm", &policy) && !policy.knows_memory);
    assert_false(sim_policy_find("owl", &policy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_list_and_the_policies_agree),
        cmocka_unit_test(test_oracles_know_and_others_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
