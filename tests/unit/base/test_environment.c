/* SPDX-License-Identifier: Apache-2.0 */
/* Environments of child processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/environment.h"

static char two[] = "A_TWO=2", paths[] = "PATHS=/bin", three[] = "B=3", more[] = "MORE=4";
static const char *const beginnings[] = {"A_", "PATH=", NULL};

static int has(char **list, const char *entry)
{
    while (*list && strcmp(*list, entry) != 0)
        list++;
    return *list != NULL;
}

static void test_it_keeps_or_leaves_out(void **state)
{
    char *own[] = {two, paths, three, NULL}, *added[] = {more, NULL}, **before = environ;
    environ = own;
    char **kept = environment_make(beginnings, true, added);
    char **others = environment_make(beginnings, false, added);
    environ = before;
    assert_true(has(kept, "A_TWO=2") && !has(kept, "PATHS=/bin") && !has(kept, "B=3"));
    assert_true(!has(others, "A_TWO=2") && has(others, "PATHS=/bin") && has(others, "B=3"));
    assert_true(has(kept, "MORE=4") && has(others, "MORE=4"));
    free(kept);
    free(others);
}

static void test_nothing_to_keep_and_nothing_to_add(void **state)
{
    char *none[] = {NULL}, **before = environ;
    environ = none;
    char **list = environment_make(beginnings, true, none);
    environ = before;
    assert_non_null(list);
    assert_null(list[0]);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_keeps_or_leaves_out),
        cmocka_unit_test(test_nothing_to_keep_and_nothing_to_add),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
