/* SPDX-License-Identifier: Apache-2.0 */
/* How a training takes its memory: the example of memory_steps.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"
#include "sharing/memory_steps.h"

static void test_the_example(void **state)
{
    static const int64_t expected_mib[MEMORY_STEPS] = {500, 500, 500, 1000, 2000, 2000, 2000};
    static const double expected_s[MEMORY_STEPS] = {0, 0, 4, 8, 12, 16, 20};
    int64_t sum = 0;
    for (int i = 0; i < MEMORY_STEPS; i++) {
        int64_t bytes = memory_step_bytes(8500 * MIB, 500 * MIB, i);
        assert_int_equal(bytes, expected_mib[i] * MIB);
        assert_true(fabs(memory_step_due_s(20, i) - expected_s[i]) < 1e-9);
        sum += bytes;
    }
    assert_int_equal(sum, 8500 * MIB);
}

static void test_less_than_a_context(void **state)
{
    assert_int_equal(memory_step_bytes(100 * MIB, 500 * MIB, 0), 100 * MIB);
    assert_int_equal(memory_step_bytes(100 * MIB, 500 * MIB, 6), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_example),
        cmocka_unit_test(test_less_than_a_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
