/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of --stop, and any other text. */
#include "core/stop_spec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"

static void forms_are_read(void **state)
{
    struct halving_rule rule;
    struct fault fault = {0};
    assert_int_equal(stop_spec_parse("asha:metric=val_loss,min,rung=3", &fault, &rule), 0);
    assert_string_equal(rule.metric, "val_loss");
    assert_false(rule.is_max);
    assert_int_equal(rule.first_step, 3);
    assert_int_equal(rule.factor, 3);
    assert_int_equal(stop_spec_parse("asha:factor=4,rung=1,max,metric=a/b=c", &fault, &rule), 0);
    assert_string_equal(rule.metric, "a/b=c");
    assert_true(rule.is_max);
    assert_int_equal(rule.factor, 4);
}

static void other_texts_are_refused(void **state)
{
    static const char *const bad[] = {"", "asha", "asha:", "asha:,", "asha:metric=a,min",
        "asha:metric=a,min,rung=3,", "asha:metric=a,min,rung=x", "asha:metric=a,min,rung=-1",
        "asha:metric=a,min,min,rung=3", "asha:metric=a,min,rung=3,factor=1",
        "asha:metric=a,min,rung=9007199254740993", "asha:metric=\xff,min,rung=3",
        "hyperband:metric=a,min,rung=3"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct halving_rule rule = {.factor = 77};
        struct fault fault = {0};
        assert_int_equal(stop_spec_parse(bad[i], &fault, &rule), -EINVAL);
        assert_non_null(strstr(fault.text, "stop="));
        assert_int_equal(rule.factor, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_read),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
