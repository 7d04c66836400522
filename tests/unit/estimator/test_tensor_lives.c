/* SPDX-License-Identifier: Apache-2.0 */
/* When a step needs each tensor: roots, last uses, first keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"
#include "estimator/physics/tensor_lives.h"

/* input 0 -> conv 1 -> relu in place 2, which it keeps -> linear 3, which keeps what it reads */
static void test_a_tensor_in_place_lives_with_its_root(void **state)
{
    struct op ops[] = {
        {.inputs = {0, TAPE_NONE, TAPE_NONE}, .output = 1, .keeps_inputs = true},
        {.inputs = {1, TAPE_NONE, TAPE_NONE}, .output = 2, .in_place = true, .keeps_output = true},
        {.inputs = {2, TAPE_NONE, TAPE_NONE}, .output = 3, .keeps_inputs = true},
    };
    const struct tape tape = {.ops = ops, .n_ops = ARRAY_SIZE(ops), .n_tensors = 4};
    static const struct tensor_life expected[] = {
        {0, 0, 0, LIFE_NONE, LIFE_NONE},
        {1, 2, 1, LIFE_NONE, LIFE_NONE},
        {1, LIFE_NONE, LIFE_NONE, LIFE_NONE, LIFE_NONE},
        {3, 2, LIFE_NONE, LIFE_NONE, LIFE_NONE},
    };
    struct tensor_life lives[4];
    tensor_lives_find(&tape, lives);
    assert_memory_equal(lives, expected, sizeof lives);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tensor_in_place_lives_with_its_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
