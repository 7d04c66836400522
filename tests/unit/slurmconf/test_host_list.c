/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of nodes: "gpu[01-04],x". */
#include "../assert_has.h"
#include "base/array.h"
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

/* Joins the names with blanks. */
static int join_name(void *context, const char *name)
{
    strcat(strcat(context, name), " ");
    return 0;
}

static void test_whole_lists(void **state)
{
    static const char *const invalid[] = {"", ",", "n[", "n]", "n[]", "n[1x-3]", "n[1-3y]",
        "n[3-1]", "n[-3]", "n[1-]", "n[1--3]", "n[1-2]m[3-4]", "n[[1]]", "n[1-1025]", "a,n[1-1024]",
        "n[9223372036854775807]", "n[1-9223372036854775807]", "n[99999999999999999999]"};
    char names[256] = "";
    for (size_t i = 0; i < ARRAY_SIZE(invalid); i++)
        assert_false(host_list_is_valid(span_of(invalid[i])));
    assert_true(host_list_is_valid(span_of("n[1-1024]")));
    assert_true(host_list_is_valid(span_of("n[08-10,3],,m,[1-2]x")));
    assert_int_equal(host_list_for_each(span_of("n[08-10,3],,m,[1-2]x"), join_name, names), 0);
    assert_string_equal(names, "n08 n09 n10 n3 m 1x 2x ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_whole_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
