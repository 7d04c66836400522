/* SPDX-License-Identifier: Apache-2.0 */
/* When a peak may be what TensorFlow or JAX took at its start. */
#include "daemon/preallocation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_environment_says_it(void **state)
{
    static const struct {
        const char *growth, *preallocate, *fraction;
        enum preallocation wanted;
    } cases[] = {
        {NULL, NULL, NULL, PREALLOCATION_NOT_SET},
        {"true", NULL, NULL, PREALLOCATION_NOT_SET},
        {NULL, "false", NULL, PREALLOCATION_NOT_SET},
        {"true", "false", NULL, PREALLOCATION_OFF},
        {"true", "0", "0.5", PREALLOCATION_OFF},
        {"false", "false", NULL, PREALLOCATION_ASKED},
        {NULL, "True", NULL, PREALLOCATION_ASKED},
        {NULL, NULL, "0.5", PREALLOCATION_ASKED},
        {"", "", NULL, PREALLOCATION_NOT_SET},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum preallocation said = preallocation_of(
            cases[i].growth, cases[i].preallocate, cases[i].fraction);
        assert_int_equal(said, cases[i].wanted);
        assert_int_equal(preallocation_parse(preallocation_name(said)), said);
    }
    assert_int_equal(preallocation_parse("of a later version"), PREALLOCATION_NOT_SET);
}

static void a_large_share_of_an_own_gpu_is_not_learned(void **state)
{
    const struct reading total = reading_of(100);
    assert_true(preallocation_explains(PREALLOCATION_NOT_SET, true, 75, total));
    assert_true(preallocation_explains(PREALLOCATION_NOT_SET, true, 70, total));
    assert_false(preallocation_explains(PREALLOCATION_NOT_SET, true, 69, total));
    assert_false(preallocation_explains(PREALLOCATION_NOT_SET, true, 75, READING_NONE));
    assert_false(preallocation_explains(PREALLOCATION_OFF, true, 99, total));
}

static void a_task_that_may_share_was_told_not_to(void **state)
{
    assert_false(preallocation_explains(PREALLOCATION_NOT_SET, false, 99, reading_of(100)));
    assert_true(preallocation_explains(PREALLOCATION_ASKED, false, 10, reading_of(100)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_says_it),
        cmocka_unit_test(a_large_share_of_an_own_gpu_is_not_learned),
        cmocka_unit_test(a_task_that_may_share_was_told_not_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
