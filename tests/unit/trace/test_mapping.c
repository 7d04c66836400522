/* SPDX-License-Identifier: Apache-2.0 */
/* A job becomes the task of its number of GPUs that takes most nearly as long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "trace/mapping.h"

static struct sim_task tasks[] = {
    {.name = (char *)"none", .gpus = 1, .solo_s = 0},
    {.name = (char *)"short", .gpus = 1, .solo_s = 100},
    {.name = (char *)"long", .gpus = 1, .solo_s = 10000},
    {.name = (char *)"twin", .gpus = 1, .solo_s = 10100},
    {.name = (char *)"pair", .gpus = 2, .solo_s = 500},
    {.name = (char *)"eight", .gpus = 8, .solo_s = 500},
};
static const struct catalogue catalogue = {.tasks = tasks, .n = ARRAY_SIZE(tasks)};

static const char *nearest(uint64_t seed, int gpus, double length_s)
{
    struct mapping mapping;
    assert_int_equal(mapping_init(&mapping, &catalogue, seed), 0);
    struct log_job job = {.length_us = (int64_t)(length_s * (double)SECOND_US), .gpus = gpus};
    const char *name = mapping_nearest(&mapping, &job)->name;
    mapping_fini(&mapping);
    return name;
}

static void test_nearest(void **state)
{
    assert_string_equal(nearest(0, 1, 1), "short"); /* by ratio: nothing is near to no time */
    assert_string_equal(nearest(0, 1, 0.0015), "none");
    assert_string_equal(nearest(0, 1, 900), "short");
    assert_string_equal(nearest(0, 2, 1e6), "pair");
    assert_string_equal(nearest(0, 3, 500), "pair");
    assert_string_equal(nearest(0, 4, 500), "pair"); /* as near as eight: the fewer */
    assert_string_equal(nearest(0, 5, 500), "eight");
    assert_string_equal(nearest(0, 100000, 500), "eight");
}

static void test_ties_are_left_to_the_seed(void **state)
{
    int twins = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        const char *name = nearest(seed, 1, 12000);
        assert_true(strcmp(name, "long") == 0 || strcmp(name, "twin") == 0);
        assert_string_equal(name, nearest(seed, 1, 12000));
        twins += strcmp(name, "twin") == 0;
    }
    assert_in_range(twins, 60, 140);
}

static void test_any(void **state)
{
    struct mapping mapping;
    int seen[4] = {0};
    assert_int_equal(mapping_init(&mapping, &catalogue, 7), 0);
    for (int i = 0; i < 400; i++) {
        const struct sim_task *task = mapping_any(&mapping, 1);
        assert_int_equal(task->gpus, 1);
        seen[task - tasks]++;
    }
    for (int i = 0; i < 4; i++)
        assert_in_range(seen[i], 50, 150);
    assert_string_equal(mapping_any(&mapping, 16)->name, "eight");
    mapping_fini(&mapping);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_ties_are_left_to_the_seed),
        cmocka_unit_test(test_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
