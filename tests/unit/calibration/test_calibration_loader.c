/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the host decodes: replies of a pretended worker, which is a shell script, and the lines
 * of the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "calibration/calibration_file.h"

static char script[] = "/tmp/colloc-test-XXXXXX";

/* Measures with a worker that says these lines: that it is up, and what it replies to commands. */
static int measure(const char *up, const char *one, const char *all, struct fault *fault,
    struct calibration_loader *ret_loader)
{
    sigset_t mask;
    FILE *file = fopen(script, "we");
    fprintf(file,
        "printf '%%s\\n' '%s'\nread command\ncase $command in *'\"processes\": 1'*|*'\"processes\":1'*)\n"
        "printf '%%s\\n' '%s';; esac\nread command\nprintf '%%s\\n' '%s'\nread command\n",
        up, one, all);
    assert_int_equal(fclose(file), 0);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    struct worker_settings settings = {.python = "sh",
        .script = script,
        .gpu_uuid = "GPU-0",
        .signals = signalfd(-1, &mask, SFD_CLOEXEC)};
    *fault = (struct fault){""};
    int r = calibration_loader_measure(&settings, 0.1, fault, ret_loader);
    close(settings.signals);
    return r;
}

#define UP       "{\"up\": true}"
#define RATE(n)  "{\"steps_per_s\": " n "}"
#define ERROR(s) "{\"error\": \"" s "\"}"

static void test_both_rates(void **state)
{
    struct fault fault;
    struct calibration_loader loader;
    assert_int_equal(measure(UP, RATE("101.5"), RATE("1234"), &fault, &loader), 0);
    assert_true(loader.rate == 101.5 && loader.most == 1234 && !*loader.why_not.text);
    assert_int_equal(measure(UP, RATE("90"), RATE("88"), &fault, &loader), 0); /* one processor */
    assert_true(loader.rate == 90 && loader.most == 90);
}

static void expect_none(const char *one, const char *all, const char *why)
{
    struct fault fault;
    struct calibration_loader loader;
    assert_int_equal(measure(UP, one, all, &fault, &loader), 0);
    assert_true(loader.rate == 0 && loader.most == 0);
    if (!strstr(loader.why_not.text, why))
        fail_msg("\"%s\" does not say \"%s\"", loader.why_not.text, why);
}

static void test_what_cannot_be_measured_is_not_known(void **state)
{
    expect_none(ERROR("No module named PIL"), RATE("1"), "No module named PIL");
    expect_none(RATE("90"), ERROR("no space\\nconstant ramp_s 0"), "no space constant ramp_s 0");
    expect_none(RATE("0"), RATE("90"), "0 pictures a second make no sense");
    expect_none(RATE("-3"), RATE("90"), "-3 pictures a second make no sense");
    expect_none(RATE("90"), RATE("1e9"), "1e+09 pictures a second make no sense");
    expect_none("{\"dropped\": true}", RATE("90"), "0 pictures a second make no sense");
    expect_none(RATE("\"fast\""), RATE("90"), "0 pictures a second make no sense");
}

static void test_a_worker_that_ends(void **state)
{
    struct fault fault;
    struct calibration_loader loader;
    assert_int_equal(measure("no JSON' >&2; exit 1; echo '", "", "", &fault, &loader), -EPIPE);
    assert_non_null(strstr(fault.text, "no JSON"));
    unlink(script);
    struct worker_settings none = {.python = "/no/such/python", .script = script, .gpu_uuid = ""};
    assert_true(calibration_loader_measure(&none, 0.1, &fault, &loader) < 0);
}

static const char *printed(struct calibration_loader loader)
{
    static char text[4096];
    struct calibration_result result = {.gpu_name = "A",
        .driver_version = "1",
        .date = "today",
        .trainings = "a, b, c",
        .why_no_mps = "",
        .loader = loader};
    FILE *out = fmemopen(text, sizeof text, "w");
    calibration_print(out, &result);
    fclose(out);
    return text;
}

static void test_lines_of_the_file(void **state)
{
    const char *text = printed((struct calibration_loader){.rate = 101.46, .most = 1234});
    assert_non_null(strstr(text, "\nconstant decode_rate  101.5\nconstant decode_most  1234.0\n"));
    struct calibration_loader none = {.why_not = {"no PIL"}};
    text = printed(none);
    assert_non_null(strstr(text, "# How fast pictures are decoded was not measured: no PIL\n"));
    assert_null(strstr(text, "constant decode"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_rates),
        cmocka_unit_test(test_what_cannot_be_measured_is_not_known),
        cmocka_unit_test(test_a_worker_that_ends),
        cmocka_unit_test(test_lines_of_the_file),
    };
    int fd = mkstemp(script);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(script);
    return failed;
}
