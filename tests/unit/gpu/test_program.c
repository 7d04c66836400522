/* SPDX-License-Identifier: Apache-2.0 */
/* A program that does not end when it is killed: here because kill does nothing to it. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/program.h"

static pid_t stuck[PROGRAMS_STUCK_MAX];
static size_t n_stuck;

/* Instead of the C library's. The group's signal comes first. */
int kill(pid_t pid, int signal)
{
    if (pid > 0)
        stuck[n_stuck++] = pid;
    return 0;
}

static int run(const char *seconds, int64_t limit_us, int *ret_status, struct fault *fault)
{
    char output[64], *argv[] = {(char *)"sleep", (char *)seconds, NULL}, *envp[] = {NULL};
    const struct program program = {
        .path = "/bin/sleep", .argv = argv, .envp = envp, .limit_us = limit_us};
    return program_run(&program, output, sizeof output, ret_status, fault);
}

static void stuck_programs_are_left_and_reaped_later(void **state)
{
    struct fault fault;
    int status;
    for (int i = 0; i < PROGRAMS_STUCK_MAX; i++) {
        int64_t begun_us = clock_monotonic_us();
        assert_int_equal(run("60", 1000, &status, &fault), -ETIMEDOUT);
        assert_int_equal(status, 128 + SIGKILL);
        assert_true(clock_monotonic_us() - begun_us < 10 * SECOND_US);
    }
    assert_int_equal(run("0", SECOND_US, &status, &fault), -EBUSY);
    assert_non_null(strstr(fault.text, "the driver hangs"));
    assert_int_equal(n_stuck, PROGRAMS_STUCK_MAX);
    for (size_t i = 0; i < n_stuck; i++) {
        assert_int_equal(syscall(SYS_kill, stuck[i], SIGKILL), 0);
        assert_int_equal(process_wait_gone(stuck[i], 60 * SECOND_US), 0);
    }
    assert_int_equal(run("0", 60 * SECOND_US, &status, &fault), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left */
    assert_int_equal(errno, ECHILD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stuck_programs_are_left_and_reaped_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
