/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/clock.h"
#include "base/units.h"
#include "taskfile/description.h"
#include "unit.h"

static struct option_value values[TASK_OPTIONS];
static struct fault fault;

static int take(const char *const *words)
{
    struct option_set set = {task_options, TASK_OPTIONS, values};
    int count = 0;
    while (words[count])
        count++;
    fault = (struct fault){0};
    return options_take(&set, 1, words, count, &fault);
}

#define TAKE(...) take((const char *const[]){__VA_ARGS__, NULL})

static int clear(void **state)
{
    option_values_fini(values, TASK_OPTIONS);
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
    assert_string_equal(fault.text, "--batch=0: must be from 1 to 10000000");
    assert_int_equal(TAKE("--batch=-5"), -ERANGE);
    assert_int_equal(TAKE("--batch=1000000000000000000"), -ERANGE);
    assert_int_equal(TAKE("--batch=99999999999999999999999"), -ERANGE);
    assert_int_equal(TAKE("--batch=12x"), -EINVAL);
    assert_int_equal(TAKE("--batch=1.5"), -EINVAL);
    assert_int_equal(TAKE("--batch="), -EINVAL);
    assert_int_equal(TAKE("--gpus=0"), -ERANGE);
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
    assert_int_equal(TAKE("--array=1-4"), -EINVAL);
    assert_string_equal(fault.text, "--array: is not supported yet");
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

static void test_unknown_suggests_near_name(void **state)
{
    assert_suggestion("--gpsu=1", "did you mean --gpus?");
    assert_suggestion("--gpu=1", "did you mean --gpus?");
    assert_suggestion("--sumary=x", "did you mean --summary?");
    assert_suggestion("--exclsuive", "did you mean --exclusive?");
    assert_suggestion("--partition=gpu", NULL);
    assert_suggestion("-Z", NULL);
}

static void test_overlay_keeps_unset(void **state)
{
    struct option_value base[TASK_OPTIONS] = {0};
    assert_int_equal(TAKE("--gpus=2", "--name=script"), 2);
    assert_int_equal(option_values_overlay(base, values, TASK_OPTIONS), 0);
    clear(NULL);
    assert_int_equal(TAKE("--name=line"), 1);
    assert_int_equal(option_values_overlay(base, values, TASK_OPTIONS), 0);
    assert_int_equal(base[TASK_GPUS].number, 2);
    assert_string_equal(base[TASK_NAME].text, "line");
    option_values_fini(base, TASK_OPTIONS);
}

static void test_table_is_whole(void **state)
{
    for (size_t i = 0; i < TASK_OPTIONS; i++) {
        const struct option_spec *spec = &task_options[i];
        assert_true(spec->name && spec->help && spec->field);
        assert_true((spec->kind == OPTION_FLAG) == (spec->argument == NULL));
        assert_ptr_equal(option_find(task_options, TASK_OPTIONS, spec->name), spec);
    }
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
        cmocka_unit_test_teardown(test_unknown_suggests_near_name, clear),
        cmocka_unit_test_teardown(test_overlay_keeps_unset, clear),
        cmocka_unit_test(test_table_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
