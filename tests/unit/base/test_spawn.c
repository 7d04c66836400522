/* SPDX-License-Identifier: Apache-2.0 */
/* Starting programs: success, and the error of exec. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/spawn.h"

static void set_code(void *context)
{
    setenv("CODE", context, 1);
}

static int run_words(const char *const *words, pid_t *ret_pid, int *ret_pidfd)
{
    static char code[] = "7";
    return spawn_program((char *const *)(uintptr_t)words, set_code, code, ret_pid, ret_pidfd);
}

static void test_a_program_that_is_there(void **state)
{
    pid_t pid;
    int pidfd, status;
    assert_int_equal(
        run_words((const char *const[]){"sh", "-c", "exit $CODE", NULL}, &pid, &pidfd), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_int_equal(close(pidfd), 0);
}

static void test_one_that_is_not_leaves_no_child(void **state)
{
    pid_t pid;
    int pidfd = -1;
    assert_int_equal(run_words((const char *const[]){"/nowhere/x", NULL}, &pid, &pidfd), -ENOENT);
    assert_int_equal(run_words((const char *const[]){"/", NULL}, &pid, &pidfd), -EACCES);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(pidfd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_that_is_there),
        cmocka_unit_test(test_one_that_is_not_leaves_no_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
