/* SPDX-License-Identifier: Apache-2.0 */
/* Growable arrays: growth, limits of size, and what an error leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/array.h"

struct point {
    int x, y;
};

static void size_counts_items_not_bytes(void **state)
{
    struct point points[7];
    const char *names[] = {"a", "b", "c"};
    assert_int_equal(ARRAY_SIZE(points), 7);
    assert_int_equal(ARRAY_SIZE(names), 3);
}

static void append_keeps_all_in_order(void **state)
{
    struct point *points = NULL;
    size_t count = 0, capacity = 0;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(ARRAY_APPEND(points, count, capacity, (struct point){i, -i}), 0);
    assert_int_equal(count, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(points[i].x, i);
        assert_int_equal(points[i].y, -i);
    }
    free(points);
}

static void capacity_doubles_or_is_what_is_wanted(void **state)
{
    int *numbers = NULL;
    size_t capacity = 0, none = 0;
    assert_int_equal(ARRAY_RESERVE(numbers, capacity, none), 0);
    assert_null(numbers);
    assert_int_equal(ARRAY_RESERVE(numbers, capacity, 1), 0);
    assert_int_equal(capacity, 8);
    assert_int_equal(ARRAY_RESERVE(numbers, capacity, 8), 0);
    assert_int_equal(capacity, 8);
    assert_int_equal(ARRAY_RESERVE(numbers, capacity, 9), 0);
    assert_int_equal(capacity, 16);
    assert_int_equal(ARRAY_RESERVE(numbers, capacity, 100), 0);
    assert_int_equal(capacity, 100);
    assert_int_equal(ARRAY_RESERVE(numbers, capacity, 5), 0);
    assert_int_equal(capacity, 100);
    assert_int_equal(ARRAY_RESERVE(numbers, capacity, 101), 0);
    assert_int_equal(capacity, 200);
    free(numbers);
}

static void a_size_that_overflows_changes_nothing(void **state)
{
    struct point *points = NULL;
    size_t count = 0, capacity = 0;
    assert_int_equal(ARRAY_APPEND(points, count, capacity, (struct point){3, 4}), 0);
    struct point *before = points;
    assert_int_equal(ARRAY_RESERVE(points, capacity, SIZE_MAX), -ENOMEM);
    assert_int_equal(ARRAY_RESERVE(points, capacity, SIZE_MAX / sizeof *points + 1), -ENOMEM);
    assert_int_equal(ARRAY_RESERVE(points, capacity, -1), -ENOMEM);
    assert_int_equal(ARRAY_RESERVE(points, capacity, PTRDIFF_MAX / sizeof *points + 1), -ENOMEM);
    assert_ptr_equal(points, before);
    assert_int_equal(capacity, 8);
    assert_int_equal(count, 1);
    assert_int_equal(points[0].y, 4);
    free(points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_counts_items_not_bytes),
        cmocka_unit_test(append_keeps_all_in_order),
        cmocka_unit_test(capacity_doubles_or_is_what_is_wanted),
        cmocka_unit_test(a_size_that_overflows_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
