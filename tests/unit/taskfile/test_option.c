/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of options by the table. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../assert_has.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "taskfile/description.h"
#include "taskfile/option_words.h"

static struct option_value values[TASK_OPTION_MAX];
static struct fault fault;

static int take(const char *const *words)
{
    struct option_set set = {task_options, task_option_count, values};
    int count = 0;
    while (words[count])
        count++;
    fault = (struct fault){0};
    return options_take(&set, 1, words, count, &fault);
}

#define TAKE(...) take((const char *const[]){__VA_ARGS__, NULL})

static int clear(void **state)
{
    option_values_fini(values, TASK_OPTION_MAX);
    return 0;
}

static void test_spellings(void **state)
{
    assert_int_equal(TAKE("--gpus=2"), 1);
    assert_int_equal(values[TASK_GPUS].number, 2);
    assert_int_equal(TAKE("--gpus", "3"), 2);
    assert_int_equal(values[TASK_GPUS].number, 3);
    assert_int_equal(TAKE("-G4"), 1);
    assert_int_equal(TAKE("-G", "4", "-Jx"), 3);
    assert_int_equal(values[TASK_GPUS].number, 4);
    assert_string_equal(values[TASK_NAME].text, "x");
    assert_int_equal(TAKE("--job-name=y"), 1);
    assert_string_equal(values[TASK_NAME].text, "y");
}

static void test_stops_before_operands(void **state)
{
    assert_int_equal(TAKE("--hold", "train.sh", "--gpus=2"), 1);
    assert_false(values[TASK_GPUS].set);
    assert_int_equal(TAKE("--", "--gpus=2"), 0);
    assert_int_equal(TAKE("-", "--gpus=2"), 0);
    assert_int_equal(TAKE("--name", "--", "x"), 2);
}

static void test_units(void **state)
{
    assert_int_equal(TAKE("--memory=6G", "--time=1-02:03:04", "--grace=0"), 3);
    assert_int_equal(values[TASK_MEMORY].number, 6 * GIB);
    assert_int_equal(values[TASK_TIME].number, (((24 + 2) * 60 + 3) * 60 + 4) * SECOND_US);
    assert_int_equal(values[TASK_GRACE].number, 0);
    assert_int_equal(TAKE("--smact=0.65", "--expect=2h"), 2);
    assert_int_equal(values[TASK_SMACT].number, 650000);
    assert_int_equal(values[TASK_EXPECT].number, 7200 * SECOND_US);
    assert_int_equal(TAKE("--memory=9000MiB", "-t90"), 2);
    assert_int_equal(values[TASK_MEMORY].number, 9000 * MIB);
    assert_int_equal(values[TASK_TIME].number, 5400 * SECOND_US);
}

static void test_sizes_keep_their_units(void **state)
{
    assert_int_equal(TAKE("--memory=12GB"), 1);
    assert_int_equal(values[TASK_MEMORY].number, 12000000000);
    assert_int_equal(TAKE("--memory=12GiB"), 1);
    assert_int_equal(values[TASK_MEMORY].number, 12 * GIB);
    assert_int_equal(TAKE("--memory", "12"), -EINVAL);
    assert_string_equal(
        fault.text, "--memory=12: has no unit; write --memory=12GiB, or 12MiB if you mean that");
    assert_int_equal(TAKE("--memory=1.5"), -EINVAL);
    assert_has(fault.text, "1.5GiB");
}

static void test_mem_is_host_memory_as_in_slurm(void **state)
{
    assert_int_equal(TAKE("--mem=32000"), 1);
    assert_int_equal(values[TASK_HOST_MEMORY].number, 32000 * MIB);
    assert_false(values[TASK_MEMORY].set);
    assert_int_equal(TAKE("--host-memory=64G"), 1);
    assert_int_equal(values[TASK_HOST_MEMORY].number, 64 * GIB);
}

static void test_flags(void **state)
{
    assert_int_equal(TAKE("--hold", "--exclusive=no"), 2);
    assert_int_equal(values[TASK_HOLD].number, 1);
    assert_true(values[TASK_EXCLUSIVE].set);
    assert_int_equal(values[TASK_EXCLUSIVE].number, 0);
    assert_int_equal(TAKE("--hold=maybe"), -EINVAL);
    assert_has(fault.text, "--hold=maybe: not yes or no");
}

static void test_bad_numbers(void **state)
{
    assert_int_equal(TAKE("--batch=0"), -ERANGE);
    assert_string_equal(fault.text, "--batch=0: must be from 1 to 1000000000");
    assert_int_equal(TAKE("--batch=-5"), -ERANGE);
    assert_int_equal(TAKE("--batch=1000000000000000000"), -ERANGE);
    assert_int_equal(TAKE("--batch=99999999999999999999999"), -ERANGE);
    assert_int_equal(TAKE("--batch=12x"), -EINVAL);
    assert_int_equal(TAKE("--batch=1.5"), -EINVAL);
    assert_int_equal(TAKE("--batch="), -EINVAL);
    assert_int_equal(TAKE("--gpus=-1"), -ERANGE);
    assert_int_equal(TAKE("--gpus=65536"), -ERANGE);
    assert_int_equal(TAKE("--memory=0G"), -ERANGE);
    assert_int_equal(TAKE("--memory=lots"), -EINVAL);
    assert_has(fault.text, "not a size");
    assert_int_equal(TAKE("--smact=65"), -EINVAL);
    assert_has(fault.text, "from 0 to 1");
    assert_int_equal(TAKE("--smact=-0.1"), -EINVAL);
    assert_int_equal(TAKE("--time=0"), -ERANGE);
    assert_int_equal(TAKE("--time=soon"), -EINVAL);
    assert_has(fault.text, "HH:MM:SS");
}

static void test_bad_texts(void **state)
{
    char long_name[5000] = "--name=";
    memset(long_name + 7, 'x', sizeof long_name - 8);
    assert_int_equal(TAKE(long_name), -E2BIG);
    assert_int_equal(TAKE("--name="), -EINVAL);
    assert_int_equal(TAKE("--name=a\033[31mb"), -EINVAL);
    assert_has(fault.text, "control character");
    assert_int_equal(TAKE("--name=\xff\xfe"), -EILSEQ);
    assert_int_equal(TAKE("--sharing=mpz"), -EINVAL);
    assert_has(fault.text, "must be one of streams, mps, auto, default");
    assert_int_equal(TAKE("--summary"), -EINVAL);
    assert_string_equal(fault.text, "--summary: needs a value (FILE)");
}

static void assert_suggestion(const char *word, const char *near)
{
    assert_int_equal(TAKE(word), -EINVAL);
    assert_has(fault.text, "no such option");
    if (near)
        assert_has(fault.text, near);
    else
        assert_null(strstr(fault.text, "did you mean"));
}

static void test_long_texts(void **state)
{
    char name[300] = "--name=";
    memset(name + strlen(name), 'x', 255);
    assert_int_equal(TAKE(name), 1);
    strcat(name, "x");
    assert_int_equal(TAKE(name), -E2BIG);
    assert_string_equal(fault.text, "--name: value of 256 bytes; at most 255");
}

static void test_unknown_suggests_near_name(void **state)
{
    assert_suggestion("--gpsu=1", "did you mean --gpus?");
    assert_suggestion("--gpu=1", "--gpus=1 is the number of GPUs");
    assert_suggestion("--sumary=x", "did you mean --summary?");
    assert_suggestion("--exclsuive", "did you mean --exclusive?");
    assert_suggestion("--partition=gpu", NULL);
    assert_suggestion("-Z", NULL);
}

static void test_overlay_keeps_unset(void **state)
{
    struct option_value base[TASK_OPTION_MAX] = {0};
    assert_int_equal(TAKE("--gpus=2", "--name=script"), 2);
    assert_int_equal(option_values_overlay(base, values, TASK_OPTION_MAX), 0);
    clear(NULL);
    assert_int_equal(TAKE("--name=line"), 1);
    assert_int_equal(option_values_overlay(base, values, TASK_OPTION_MAX), 0);
    assert_int_equal(base[TASK_GPUS].number, 2);
    assert_string_equal(base[TASK_NAME].text, "line");
    option_values_fini(base, TASK_OPTION_MAX);
}

static void test_table_is_whole(void **state)
{
    for (size_t i = 0; i < task_option_count; i++) {
        const struct option_spec *spec = &task_options[i];
        assert_true(spec->name && spec->help && spec->field);
        assert_true((spec->kind == OPTION_FLAG) == (spec->argument == NULL));
        assert_ptr_equal(option_find(task_options, task_option_count, spec->name), spec);
        assert_true(!spec->shown_as || strlen(spec->shown_as) <= 12);
    }
}

static void test_defaults_are_values_that_help_names(void **state)
{
    assert_string_equal(task_options[TASK_GRACE].default_text, "30s");
    for (size_t i = 0; i < task_option_count; i++) {
        const struct option_spec *spec = &task_options[i];
        assert_int_equal(!spec->default_text, !strstr(spec->help, "{default}"));
        if (spec->default_text)
            assert_int_equal(
                option_set_text(spec, spec->name, spec->default_text, &values[i], &fault), 0);
    }
}

static void test_help_names_choices_and_default(void **state)
{
    static const char *const colours[] = {"red", "blue", NULL};
    const struct option_spec spec = {.help = "one of {choices}; default: {default} {other}",
        .choices = colours,
        .default_text = "red"};
    char help[64], cut[16];
    assert_string_equal(
        option_help_text(&spec, help, sizeof help), "one of red, blue; default: red {other}");
    assert_string_equal(option_help_text(&spec, cut, sizeof cut), "one of red, blu");
}

static void test_the_protocol_page_names_each_key(void **state)
{
    char *page, key[64];
    size_t size;
    assert_int_equal(file_read(getenv("PROTOCOL_PAGE"), 1 << 20, &fault, &page, &size), 0);
    for (size_t i = 0; i < task_option_count; i++) {
        snprintf(key, sizeof key, "`%s`", task_options[i].field);
        if (!strstr(page, key))
            fail_msg("%s is not in docs/protocol.md", key);
    }
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_spellings, clear),
        cmocka_unit_test_teardown(test_stops_before_operands, clear),
        cmocka_unit_test_teardown(test_units, clear),
        cmocka_unit_test_teardown(test_sizes_keep_their_units, clear),
        cmocka_unit_test_teardown(test_mem_is_host_memory_as_in_slurm, clear),
        cmocka_unit_test_teardown(test_flags, clear),
        cmocka_unit_test_teardown(test_bad_numbers, clear),
        cmocka_unit_test_teardown(test_bad_texts, clear),
        cmocka_unit_test_teardown(test_long_texts, clear),
        cmocka_unit_test_teardown(test_unknown_suggests_near_name, clear),
        cmocka_unit_test_teardown(test_overlay_keeps_unset, clear),
        cmocka_unit_test(test_table_is_whole),
        cmocka_unit_test_teardown(test_defaults_are_values_that_help_names, clear),
        cmocka_unit_test(test_help_names_choices_and_default),
        cmocka_unit_test(test_the_protocol_page_names_each_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
