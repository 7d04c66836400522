/* SPDX-License-Identifier: Apache-2.0 */
/* Recording without GPUs: who records is afterwards as before. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

#include <cmocka.h>

#include "base/clock.h"
#include "recorder/recorder.h"

static int count_files(void)
{
    int n = 0;
    DIR *files = opendir("/proc/self/fd");
    assert_non_null(files);
    while (readdir(files))
        n++;
    closedir(files);
    return n;
}

static int run_words(const char *const *words, struct recording *recording)
{
    struct fault fault = {0};
    const struct recorder_settings settings = {.argv = (char *const *)(uintptr_t)words,
        .gpus = "",
        .period_us = SECOND_US,
        .nvml_library = "/nowhere/nvml"};
    int r = recorder_run(&settings, &fault, recording);
    assert_int_equal(r < 0, fault.text[0] != '\0');
    return r;
}

static void assert_as_before(int files)
{
    sigset_t mask;
    int is_subreaper = 1;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGINT) || sigismember(&mask, SIGTERM));
    prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper);
    assert_false(is_subreaper);
    assert_int_equal(count_files(), files);
}

static void test_leaves_nothing_behind(void **state)
{
    struct recording recording;
    int files = count_files();
    assert_int_equal(run_words((const char *const[]){"sh", "-c", "exit 3", NULL}, &recording), 0);
    assert_int_equal(recording.exit_code, 3);
    recording_fini(&recording);
    assert_as_before(files);
    assert_int_equal(run_words((const char *const[]){"/nowhere/x", NULL}, &recording), -ENOENT);
    assert_as_before(files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
