/* SPDX-License-Identifier: Apache-2.0 */
/* What the scripts of Slurm's jobs say of their GPUs. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/units.h"
#include "policy/policies.h"
#include "slurm/job_script.h"

static const struct job_script_settings settings = {
    "graph", ESTIMATE_RESERVED_QUANTILE, SHARING_STREAMS};

static struct job_script read_script(const char *text, const char *summary)
{
    struct job_script script = {0};
    struct fault fault = {0};
    assert_int_equal(job_script_parse(text, &settings, &fault, &script), 0);
    struct job_estimate estimate;
    size_t size = summary ? strlen(summary) : 0;
    assert_int_equal(job_script_estimate(&script, &settings, summary, size, &fault, &estimate), 0);
    assert_int_equal(job_script_use_estimate(&script, &estimate, &fault), 0);
    return script;
}

static void reads_colloc_lines(void **state)
{
    struct job_script script = read_script("#!/bin/bash\n"
                                           "#SBATCH --partition=gpu --gres=gpu:2 --licenses=x\n"
                                           "#COLLOC --memory=12GiB --smact=0.25\n"
                                           "#COLLOC --policy=best-fit --sharing=mps --expect=2h\n"
                                           "python train.py\n",
        NULL);
    const struct task_request *request = &script.request;
    assert_int_equal(request->need.kind, NEED_DECLARED);
    assert_true(request->need.bytes == 12 * GIB);
    assert_true(request->expect.smact.valid && request->expect.smact.value == 0.25);
    assert_ptr_equal(request->policy, &policy_best_fit);
    assert_int_equal(request->sharing, SHARING_MPS);
    assert_true(request->expect.time_us.valid && request->expect.time_us.value == 7200e6);
    assert_false(request->exclusive);
    assert_null(job_script_summary(&script));
    job_script_fini(&script);
}

static void a_script_without_lines_says_nothing(void **state)
{
    static const char *const texts[] = {
        NULL, "", "#!/bin/sh\ntrue\n", "#!/bin/sh\n#SBATCH -x\n", "true", "\xff\xfe\x01#!"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct job_script script = read_script(texts[i], NULL);
        assert_int_equal(script.request.need.kind, NEED_UNKNOWN);
        assert_false(script.request.expect.smact.valid);
        assert_null(script.request.policy);
        job_script_fini(&script);
    }
}

static void a_summary_is_estimated(void **state)
{
    static const char summary[] =
        "----------------------------------------------------------------\n"
        "        Layer (type)               Output Shape         Param #\n"
        "================================================================\n"
        "            Linear-1                 [-1, 4096]       4,198,400\n"
        "              ReLU-2                 [-1, 4096]               0\n"
        "            Linear-3                 [-1, 1000]       4,097,000\n"
        "================================================================\n"
        "Total params: 8,295,400\n";
    struct job_script script = read_script(
        "#!/bin/sh\n#COLLOC --summary=net.txt --batch=32 --optimizer=adam\ntrue\n", summary);
    assert_string_equal(job_script_summary(&script), "net.txt");
    assert_int_equal(script.request.need.kind, NEED_ESTIMATED);
    assert_in_range(script.request.need.bytes, 100 * MIB, 8 * GIB);
    job_script_fini(&script);
}

static void mistakes_are_refused_with_a_reason(void **state)
{
    static const char *const lines[][2] = {{"--memory=lots", "memory"}, {"--smact=7", "smact"},
        {"--policy=best", "policy"}, {"--sharing=both", "sharing"}, {"--nonsense", "nonsense"},
        {"--memory='1GiB", "quote"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[128];
        struct job_script script = {0};
        struct fault fault = {0};
        snprintf(text, sizeof text, "#!/bin/sh\n#COLLOC %s\ntrue\n", lines[i][0]);
        assert_true(job_script_parse(text, &settings, &fault, &script) < 0);
        assert_non_null(strstr(fault.text, lines[i][1]));
        job_script_fini(&script);
    }
    struct job_script script = {0};
    struct fault fault = {0};
    assert_int_equal(
        job_script_parse("#!/bin/sh\n#COLLOC --summary=x\n", &settings, &fault, &script), 0);
    struct job_estimate estimate;
    assert_true(
        job_script_estimate(&script, &settings, "not a summary", 13, &fault, &estimate) < 0);
    assert_int_equal(strncmp(fault.text, "x: ", 3), 0);
    job_script_fini(&script);
}

/* It comes from a process of the job's user. */
static void an_estimate_is_checked(void **state)
{
    static const struct job_estimate wrong[] = {{.need = {NEED_PENDING, 1}},
        {.need = {NEED_ESTIMATED, -1}}, {.need = {NEED_ESTIMATED, INT64_MAX}},
        {.need = {(enum need_kind)77, 1}}, {.smact = {1.5, true}}, {.smact = {NAN, true}}};
    struct job_script script = read_script("#!/bin/sh\n#COLLOC --smact=0.3\n", NULL);
    struct fault fault = {0};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(job_script_use_estimate(&script, &wrong[i], &fault), -EINVAL);
    const struct job_estimate right = {{NEED_ESTIMATED, 5}, reading_of(0.9)};
    assert_int_equal(job_script_use_estimate(&script, &right, &fault), 0);
    assert_true(script.request.need.bytes == 5 && script.request.expect.smact.value == 0.3);
    job_script_fini(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_colloc_lines),
        cmocka_unit_test(a_script_without_lines_says_nothing),
        cmocka_unit_test(a_summary_is_estimated), cmocka_unit_test(an_estimate_is_checked),
        cmocka_unit_test(mistakes_are_refused_with_a_reason)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
