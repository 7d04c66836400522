/* SPDX-License-Identifier: Apache-2.0 */
/* Which output in the state folder is dropped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "daemon/kept_output.h"

enum { ADA = 1000, BOB = 1001 };

struct disk_space disk_get_space(const struct disk *disk)
{
    return (struct disk_space){0};
}

/* The tasks in the order of their files' times: numbers. */
static struct kept_file file_of(uint64_t task, uid_t uid, int64_t mib)
{
    return (struct kept_file){
        .task = task, .uid = uid, .bytes = mib * MIB, .changed_us = (int64_t)task * SECOND_US};
}

static void expect_dropped(struct kept_file *files, size_t n, struct kept_limits limits,
    const uint64_t *tasks, size_t n_tasks)
{
    size_t n_dropped = 0;
    kept_output_choose(files, n, &limits);
    for (size_t i = 0; i < n; i++) {
        bool is_expected = false;
        for (size_t k = 0; k < n_tasks; k++)
            is_expected |= files[i].task == tasks[k];
        assert_int_equal(files[i].is_dropped, is_expected);
        n_dropped += files[i].is_dropped;
    }
    assert_int_equal(n_dropped, n_tasks);
}

static void test_the_oldest_of_a_user_above_the_limit(void **state)
{
    struct kept_file files[] = {file_of(7, ADA, 4), file_of(1, BOB, 9), file_of(2, ADA, 4),
        file_of(5, ADA, 4), file_of(6, BOB, 1)};
    const uint64_t dropped[] = {2};
    expect_dropped(files, 5, (struct kept_limits){.user_bytes = 10 * MIB}, dropped, 1);
}

static void test_without_a_limit_all_stay(void **state)
{
    struct kept_file files[] = {file_of(1, ADA, 4000), file_of(2, BOB, 9000)};
    expect_dropped(files, 2, (struct kept_limits){0}, NULL, 0);
    expect_dropped(NULL, 0, (struct kept_limits){.user_bytes = MIB, .free_bytes = MIB}, NULL, 0);
}

/* The user with most gives way first, and then whoever has most. */
static void test_a_full_disk(void **state)
{
    struct kept_file files[] = {file_of(1, BOB, 9), file_of(2, ADA, 6), file_of(3, ADA, 6),
        file_of(4, BOB, 1), file_of(5, ADA, 6)};
    const uint64_t dropped[] = {1, 2, 3};
    expect_dropped(
        files, 5, (struct kept_limits){.free_bytes = 15 * MIB, .spare_bytes = 2 * MIB}, dropped, 3);
}

static void test_a_user_with_little_is_left_alone(void **state)
{
    struct kept_file files[] = {file_of(1, BOB, 1), file_of(2, ADA, 6)};
    const uint64_t dropped[] = {2};
    expect_dropped(
        files, 2, (struct kept_limits){.free_bytes = GIB, .spare_bytes = 2 * MIB}, dropped, 1);
}

/* What has been dropped is not dropped again, although the user is above the limit. */
static void test_ends_stay(void **state)
{
    struct kept_file files[200];
    for (size_t i = 0; i < 200; i++) {
        files[i] = file_of(i + 1, ADA, 0);
        files[i].bytes = KEPT_OUTPUT_LEFT;
    }
    expect_dropped(files, 200, (struct kept_limits){.user_bytes = MIB, .free_bytes = MIB}, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_oldest_of_a_user_above_the_limit),
        cmocka_unit_test(test_without_a_limit_all_stay),
        cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_a_user_with_little_is_left_alone),
        cmocka_unit_test(test_ends_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
