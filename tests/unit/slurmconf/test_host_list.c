/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of nodes: "gpu[01-04],x". */
#include "../assert_has.h"
#include "slurmconf/host_list.h"

static void test_hosts(void **state)
{
    char name[16];
    assert_true(host_list_first(span_of("gpu[01-04],x"), name, sizeof name));
    assert_string_equal(name, "gpu01");
    assert_true(host_list_first(span_of("r[1-2]n"), name, sizeof name));
    assert_string_equal(name, "r1n");
    assert_false(host_list_first(span_of(""), name, sizeof name));
    assert_false(host_list_first(span_of("a-very-long-name-of-a-node"), name, sizeof name));
    assert_true(host_list_has(span_of("a,gpu[01-04,09]"), "gpu09"));
    assert_true(host_list_has(span_of("n[8-12]"), "n10"));
    assert_true(host_list_has(span_of("r[1-2]n"), "r2n"));
    assert_true(host_list_has(span_of("a,b"), "b"));
    assert_false(host_list_has(span_of("gpu[01-04]"), "gpu1"));
    assert_false(host_list_has(span_of("gpu[01-04]"), "gpu05"));
    assert_false(host_list_has(span_of("gpu[01-04]"), "gpu0x"));
    assert_false(host_list_has(span_of("gpu[01-04"), "gpu01"));
    assert_false(host_list_has(span_of("gpu[]"), "gpu"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
