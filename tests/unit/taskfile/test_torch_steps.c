/* SPDX-License-Identifier: Apache-2.0 */
/* --profile=torch, with and without steps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

static void the_wrong_part_is_named(void **state)
{
    static const struct {
        const char *text, *start; /* of the message; NULL: none */
    } cases[] = {{"torch:step=100,steps=0", "steps has to be a number from 1 to 1000"},
        {"torch:step=0,steps=0", "step has to be a number from 1 to"},
        {"torch:steps=many", "steps has to"}, {"torch:stps=1", "torch takes step=N and steps=M"},
        {"torch:", "torch takes"}, {"torch:step=1,", "torch takes"}, {"torch:step=1", NULL},
        {"torch", NULL}, {"torchy", NULL}, {"nsys:step=1", NULL}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *wrong = torch_steps_wrong_part(cases[i].text), *start = cases[i].start;
        assert_int_equal(wrong != NULL, start != NULL);
        assert_true(!start || strncmp(wrong, start, strlen(start)) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_parsed),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(the_wrong_part_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
