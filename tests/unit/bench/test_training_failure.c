/* SPDX-License-Identifier: Apache-2.0 */
/* Which failures of a training are results, and what is said of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/training_failure.h"

enum { EXITED_1 = 1 << 8 }; /* as waitpid gives it */

static struct training_result explain(int status, const char *log)
{
    char path[] = "/tmp/colloc-failure-XXXXXX";
    struct training_result result = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, log, strlen(log)), strlen(log));
    close(fd);
    training_failure_explain(status, "/dev/null", path, &result);
    unlink(path);
    return result;
}

static void test_out_of_gpu_memory_is_a_result(void **state)
{
    struct training_result result = explain(EXITED_1,
        "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n"
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n");
    assert_true(result.out_of_gpu_memory);
    assert_int_equal(result.exit_code, 1);
    assert_non_null(strstr(result.failure, "out of GPU memory: torch.cuda.OutOfMemoryError"));
}

static void test_a_module_that_is_missing_is_none(void **state)
{
    struct training_result result = explain(EXITED_1,
        "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n"
        "ModuleNotFoundError: No module named 'torch'\n\n");
    assert_false(result.out_of_gpu_memory);
    assert_string_equal(
        result.failure, "exit status 1: ModuleNotFoundError: No module named 'torch'");
}

static void test_without_a_word(void **state)
{
    assert_string_equal(explain(EXITED_1, "").failure, "exit status 1");
    assert_string_equal(explain(SIGSEGV, "").failure, "ended by signal 11");
    assert_int_equal(explain(SIGSEGV, "").exit_code, 128 + SIGSEGV);
    assert_string_equal(explain(0, "CUDA out of memory\n").failure, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_of_gpu_memory_is_a_result),
        cmocka_unit_test(test_a_module_that_is_missing_is_none),
        cmocka_unit_test(test_without_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
