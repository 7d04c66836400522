/* SPDX-License-Identifier: Apache-2.0 */
/* Moves completed to a permutation of all GPUs: the driver takes nothing less. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/gpu_permutation.h"

static void expect(const int *moves, const int *wanted, size_t count)
{
    int to[8];
    memcpy(to, moves, count * sizeof *to);
    assert_int_equal(gpu_permutation_complete(to, count), 0);
    assert_memory_equal(to, wanted, count * sizeof *to);
}

static void test_one_move_is_a_swap(void **state)
{
    expect((int[]){1, -1}, (int[]){1, 0}, 2);
    expect((int[]){2, -1, -1, -1}, (int[]){2, 1, 0, 3}, 4);
}

static void test_nothing_moves(void **state)
{
    expect((int[]){-1, -1, -1}, (int[]){0, 1, 2}, 3);
    expect((int[]){0, -1}, (int[]){0, 1}, 2);
}

static void test_a_chain_is_closed(void **state)
{
    expect((int[]){2, -1, 3, -1}, (int[]){2, 1, 3, 0}, 4);
    expect((int[]){1, 2, -1, -1}, (int[]){1, 2, 0, 3}, 4);
    expect((int[]){1, 0, 3, -1}, (int[]){1, 0, 3, 2}, 4);
}

static void test_no_permutation(void **state)
{
    const int wrong[][3] = {{1, 1, -1}, {3, -1, -1}, {-2, -1, -1}};
    for (size_t i = 0; i < 3; i++) {
        int to[3];
        memcpy(to, wrong[i], sizeof to);
        assert_int_equal(gpu_permutation_complete(to, 3), -EINVAL);
        assert_memory_equal(to, wrong[i], sizeof to);
    }
}

/* Every set of moves on four GPUs: refused, or completed to a permutation that contains them. */
static void test_all_of_four(void **state)
{
    int completed = 0;
    for (int n = 0; n < 5 * 5 * 5 * 5; n++) {
        int moves[4] = {n % 5 - 1, n / 5 % 5 - 1, n / 25 % 5 - 1, n / 125 - 1}, to[4];
        unsigned seen = 0;
        memcpy(to, moves, sizeof to);
        if (gpu_permutation_complete(to, 4) < 0)
            continue;
        completed++;
        for (int i = 0; i < 4; i++) {
            seen |= 1u << to[i];
            assert_true(moves[i] < 0 || to[i] == moves[i]);
        }
        assert_int_equal(seen, 15);
    }
    assert_int_equal(completed, 209); /* partial injections of four into four */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_move_is_a_swap),
        cmocka_unit_test(test_nothing_moves),
        cmocka_unit_test(test_a_chain_is_closed),
        cmocka_unit_test(test_no_permutation),
        cmocka_unit_test(test_all_of_four),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
