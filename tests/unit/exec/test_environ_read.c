/* SPDX-License-Identifier: Apache-2.0 */
/* Environments of processes, also where a read does not end or shows nothing: the linker puts
 * open64 of this file in front, which then opens a pipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "exec/environ_read.h"

static enum { FROM_PROC, HANGS, SHOWS_NOTHING, IN_EXECVE } kind;
static int n_opened;  /* of environments, while the process is IN_EXECVE */
static int starts_at; /* the number of opens after which it is not any more */

/* Returns the end to read of a pipe with this text; NULL: no end comes. */
static int open_pipe(const char *text)
{
    int ends[2];
    if (pipe(ends) < 0)
        return -1;
    if (text && write(ends[1], text, strlen(text)) == (ssize_t)strlen(text))
        close(ends[1]);
    return ends[0];
}

/* What /proc shows before the new program's variables are set. */
static int open_in_execve(const char *path)
{
    static const char stat[] = "7 (x) R 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 16961536 "
                               "42 99 1 2 3 4 5 0 0 0 0 0 0 0 17 1 0 0 0 0 0 7 8 9 0 0 0 0 0\n";
    return open_pipe(strstr(path, "/stat") ? stat : "");
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    bool is_environ = strstr(path, "/environ");
    if (kind == IN_EXECVE) {
        n_opened += is_environ;
        if (n_opened <= starts_at && (is_environ || strstr(path, "/stat")))
            return open_in_execve(path);
    } else if (kind != FROM_PROC && is_environ) {
        return open_pipe(kind == SHOWS_NOTHING ? "" : NULL);
    }
    return __real_open64(path, flags);
}

static void test_reads_an_environment(void **state)
{
    char *text;
    size_t size;
    assert_int_equal(environ_read(getpid(), &text, &size), 0);
    assert_true(size > 0 && text[size] == '\0');
    assert_string_equal(process_find_variable(text, size, "PATH"), getenv("PATH"));
    free(text);
}

/* A busy machine may not answer in time. */
static void check_failure(pid_t pid, int result)
{
    char *text = getenv("PATH");
    size_t size;
    int r = environ_read(pid, &text, &size);
    for (int tries = 0; r == -ETIMEDOUT && result != r && tries < 50; tries++)
        r = environ_read(pid, &text, &size);
    assert_int_equal(r, result);
    assert_null(text);
}

static void check_is_empty(pid_t pid)
{
    char *text;
    size_t size;
    do {
        assert_int_equal(environ_read(pid, &text, &size), 0);
        assert_true(text[size] == '\0');
        free(text);
    } while (size > 0 && waitpid(pid, NULL, WNOHANG) == 0); /* exec is still to come */
    assert_int_equal(size, 0);
}

/* As of `env -i sleep 1000`. */
static void test_an_empty_environment_is_one(void **state)
{
    pid_t child = fork();
    if (child == 0) {
        char *const argv[] = {(char *)(uintptr_t) "sleep", (char *)(uintptr_t) "1000", NULL};
        execve("/bin/sleep", argv, (char *[]){NULL});
        _exit(1);
    }
    check_is_empty(child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void test_a_process_that_has_ended_has_none(void **state)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT); /* a zombie now */
    check_failure(child, -ESRCH);
    kind = SHOWS_NOTHING; /* as older kernels */
    check_failure(child, -ESRCH);
    waitpid(child, NULL, 0);
    check_failure(child, -ESRCH);
    kind = FROM_PROC;
    check_failure(INT32_MAX, -ESRCH);
}

/* The child that reads counts for itself. */
static void test_waits_for_the_end_of_execve(void **state)
{
    char *text;
    size_t size;
    kind = IN_EXECVE;
    starts_at = 3;
    assert_int_equal(environ_read(getpid(), &text, &size), 0);
    assert_string_equal(process_find_variable(text, size, "PATH"), getenv("PATH"));
    free(text);
    starts_at = INT32_MAX;
    check_failure(getpid(), -ETIMEDOUT);
    kind = FROM_PROC;
}

/* No child stays behind. */
static void test_does_not_wait_for_ever(void **state)
{
    kind = HANGS;
    check_failure(getpid(), -ETIMEDOUT);
    kind = FROM_PROC;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_an_environment),
        cmocka_unit_test(test_an_empty_environment_is_one),
        cmocka_unit_test(test_a_process_that_has_ended_has_none),
        cmocka_unit_test(test_waits_for_the_end_of_execve),
        cmocka_unit_test(test_does_not_wait_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
