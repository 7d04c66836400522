/* SPDX-License-Identifier: Apache-2.0 */
/* Fault messages: text, prefix, truncation, and callers without a fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/fault.h"

static void test_set_returns_negative_errno(void **state)
{
    struct fault fault;
    assert_int_equal(fault_set(&fault, EINVAL, "batch %d: must be at least 1", -5), -EINVAL);
    assert_string_equal(fault.text, "batch -5: must be at least 1");
}

static void test_the_fault_may_be_null(void **state)
{
    assert_int_equal(fault_set(NULL, ENOENT, "no %s", "file"), -ENOENT);
    assert_int_equal(fault_prefix(NULL, -ENOENT, "there"), -ENOENT);
}

static void test_set_cuts_long_text(void **state)
{
    struct fault fault;
    memset(&fault, 'x', sizeof fault);
    assert_int_equal(fault_set(&fault, EINVAL, "%2000d", 1), -EINVAL);
    assert_int_equal(strlen(fault.text), sizeof fault.text - 1);
}

static void test_prefix_says_where(void **state)
{
    struct fault fault;
    int r = fault_set(&fault, ERANGE, "65 GPUs asked of 4");
    assert_int_equal(fault_prefix(&fault, r, "%s:%d", "train.rad", 7), -ERANGE);
    assert_string_equal(fault.text, "train.rad:7: 65 GPUs asked of 4");
}

static void test_prefix_fits_whatever_the_lengths(void **state)
{
    for (int before = 0; before <= 1200; before += 7) {
        for (int after = 0; after <= 1200; after += 31) {
            struct fault fault;
            memset(&fault, 'x', sizeof fault);
            fault_set(&fault, EINVAL, "%*s", after, "");
            assert_int_equal(fault_prefix(&fault, 3, "%*s", before, ""), 3);
            assert_true(strnlen(fault.text, sizeof fault.text) < sizeof fault.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_returns_negative_errno),
        cmocka_unit_test(test_the_fault_may_be_null),
        cmocka_unit_test(test_set_cuts_long_text),
        cmocka_unit_test(test_prefix_says_where),
        cmocka_unit_test(test_prefix_fits_whatever_the_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
