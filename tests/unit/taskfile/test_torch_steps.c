/* SPDX-License-Identifier: Apache-2.0 */
/* --profile=torch, with and without steps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"
#include "taskfile/torch_steps.h"

static void steps_are_parsed(void **state)
{
    static const struct {
        const char *text;
        struct torch_steps steps;
    } cases[] = {{"torch", {0, 0}}, {"torch:step=100,steps=7", {100, 7}},
        {"torch:steps=7,step=100", {100, 7}}, {"torch:step=100", {100, 5}},
        {"torch:steps=3", {10, 3}}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct torch_steps found;
        assert_int_equal(torch_steps_parse(cases[i].text, &found), 0);
        assert_int_equal(found.step, cases[i].steps.step);
        assert_int_equal(found.steps, cases[i].steps.steps);
        assert_ptr_equal(torch_steps_canonical(cases[i].text), cases[i].text);
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const texts[] = {"", "nsys", "torchy", "torch:", "torch:step",
        "torch:step=", "torch:step=0", "torch:step=-1", "torch:steps=1001", "torch:step=1,",
        "torch:steps=1;2", "torch:step=1,other=2",
        "torch:step=11111111111111111111111111111111111111"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct torch_steps found;
        assert_int_not_equal(torch_steps_parse(texts[i], &found), 0);
        assert_null(torch_steps_canonical(texts[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_parsed),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
