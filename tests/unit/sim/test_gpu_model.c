/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a GPU: numbers calculated by hand from the model in gpu_model.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/units.h"
#include "sim/gpu_model.h"

static const struct gpu_constants laws = {.context_bytes = 500 * MIB, .ramp_s = 20};

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9)
        fail_msg("%.12f is not %.12f", value, expected);
}

static void test_a_short_task_has_a_short_ramp(void **state)
{
    assert_near(gpu_memory_due_s(&laws, 1000, MEMORY_STEPS - 1), 20);
    assert_near(gpu_memory_due_s(&laws, 10, MEMORY_STEPS - 1), 5);
    assert_near(gpu_memory_due_s(&laws, 10, 0), 0);
}

static void test_pages_from_anywhere(void **state)
{
    struct gpu_memory memory = {.capacity_bytes = 100 * MIB};
    for (uint64_t owner = 1; owner <= 5; owner++)
        assert_int_equal(gpu_memory_take(&memory, owner, 20 * MIB), 0);
    gpu_memory_release(&memory, 2);
    gpu_memory_release(&memory, 4);
    assert_int_equal(gpu_memory_take(&memory, 6, 40 * MIB + 1), GPU_MEMORY_FULL);
    assert_int_equal(gpu_memory_take(&memory, 6, 40 * MIB), 0);
    assert_int_equal(gpu_memory_of(&memory, 6), 40 * MIB);
    assert_int_equal(gpu_memory_of(&memory, 5), 20 * MIB);
    assert_int_equal(memory.used_bytes, 100 * MIB);
    gpu_memory_fini(&memory);
}

static void test_holes_of_linear_memory(void **state)
{
    struct gpu_memory memory = {.capacity_bytes = 100 * MIB, .linear = true};
    assert_int_equal(gpu_memory_take(&memory, 1, 30 * MIB), 0);
    assert_int_equal(gpu_memory_take(&memory, 2, 19 * MIB + 1), 0); /* 20 MiB */
    assert_int_equal(gpu_memory_take(&memory, 3, 30 * MIB), 0);
    assert_int_equal(memory.used_bytes, 80 * MIB);
    gpu_memory_release(&memory, 2);
    assert_int_equal(
        gpu_memory_take(&memory, 4, 30 * MIB), GPU_MEMORY_FULL); /* 40 are free, in two holes */
    assert_int_equal(gpu_memory_take(&memory, 4, 20 * MIB), 0);
    assert_int_equal(memory.segments[1].owner, 4); /* first fit */
    assert_int_equal(gpu_memory_take(&memory, 4, 20 * MIB), 0);
    assert_int_equal(gpu_memory_of(&memory, 4), 40 * MIB);
    assert_int_equal(gpu_memory_take(&memory, 5, 1), GPU_MEMORY_FULL);
    gpu_memory_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_short_task_has_a_short_ramp),
        cmocka_unit_test(test_pages_from_anywhere),
        cmocka_unit_test(test_holes_of_linear_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
