/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of profilers: the program comes last and unchanged, the output is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exec/profiler.h"

static char interpreter[] = "python3", script[] = "/home/ada/fit %s.py", option[] = "--output=%d";
static char *program[] = {interpreter, script, option, NULL};

static void assert_command(enum profiler profiler, const char *name, const char *output)
{
    char **argv = profiler_command(profiler, "/tmp/a b/3-1.0", program);
    size_t n = 0;
    bool is_named = false;
    assert_non_null(argv);
    assert_string_equal(argv[0], name);
    for (; argv[n]; n++)
        is_named |= strcmp(argv[n], output) == 0;
    assert_true(is_named);
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(argv[n - 3 + i], program[i]);
    assert_string_equal(profiler_program(profiler), name);
    free(argv);
}

static void test_each_profiler_runs_the_program(void **state)
{
    assert_command(PROFILER_NSYS, "nsys", "--output=/tmp/a b/3-1.0");
    assert_command(PROFILER_NSYS_RANGES, "nsys", "--output=/tmp/a b/3-1.0");
    assert_command(PROFILER_NCU, "ncu", "/tmp/a b/3-1.0");
    assert_command(PROFILER_NCU_RANGES, "ncu", "/tmp/a b/3-1.0");
}

static void test_without_a_profiler_it_is_the_program(void **state)
{
    char **argv = profiler_command(PROFILER_NONE, "x", program);
    assert_memory_equal(argv, program, sizeof program);
    assert_null(profiler_program(PROFILER_NONE));
    free(argv);
}

static void test_names(void **state)
{
    assert_int_equal(profiler_parse("nsys"), PROFILER_NSYS);
    assert_int_equal(profiler_parse("ncu"), PROFILER_NCU);
    assert_int_equal(profiler_parse("perf"), PROFILER_NONE);
    assert_int_equal(profiler_parse(NULL), PROFILER_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_profiler_runs_the_program),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_without_a_profiler_it_is_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
