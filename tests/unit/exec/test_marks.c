/* SPDX-License-Identifier: Apache-2.0 */
/* Marks in the environments of processes, of which some do not answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/marks.h"
#include "exec/tree.h"

/* Pretend processes: those that divide by 3 have the mark, and the negative ones never answer. */
static bool read_pretended(pid_t pid, const char *variable)
{
    while (pid < 0)
        pause();
    return pid % 3 == 0 && *variable == 'M';
}

static void test_all_answer(void **state)
{
    enum { N = 1000 };
    static pid_t pids[N];
    static enum mark marks[N];
    for (int i = 0; i < N; i++)
        pids[i] = i;
    assert_int_equal(marks_read(pids, N, "M=1", read_pretended, marks), 0);
    for (int i = 0; i < N; i++)
        assert_int_equal(marks[i], i % 3 == 0 ? MARK_PRESENT : MARK_ABSENT);
    assert_int_equal(marks_read(pids, 0, "M=1", read_pretended, marks), 0);
}

/* The others are asked nevertheless, and no child stays behind. */
static void test_some_do_not_answer(void **state)
{
    const pid_t pids[] = {-1, 3, 4, -1, -1, 6, -1};
    const enum mark expected[] = {MARK_UNKNOWN, MARK_PRESENT, MARK_ABSENT, MARK_UNKNOWN,
        MARK_UNKNOWN, MARK_PRESENT, MARK_UNKNOWN};
    enum mark marks[7];
    int64_t began_us = clock_monotonic_us();
    assert_int_equal(marks_read(pids, 7, "M=1", read_pretended, marks), 0);
    assert_true(clock_monotonic_us() - began_us >= 4 * MARKS_LIMIT_MS * MS_US);
    assert_memory_equal(marks, expected, sizeof marks);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* So that a user cannot make the reader wait for as long as the user likes. */
static void test_too_many_do_not_answer(void **state)
{
    enum { N = MARKS_STUCK_MAX + 2 };
    pid_t pids[N];
    enum mark marks[N];
    for (int i = 0; i < N; i++)
        pids[i] = i < N - 1 ? -1 : 3;
    assert_int_equal(marks_read(pids, N, "M=1", read_pretended, marks), 0);
    for (int i = 0; i < N; i++)
        assert_int_equal(marks[i], MARK_UNKNOWN);
}

static void test_a_real_process(void **state)
{
    const pid_t pid = getpid();
    enum mark mark = MARK_UNKNOWN;
    const char *path = getenv("PATH");
    char variable[4096] = "PATH=";
    assert_non_null(path);
    strncat(variable, path, sizeof variable - sizeof "PATH=");
    assert_int_equal(marks_read(&pid, 1, variable, tree_has_variable, &mark), 0);
    assert_int_equal(mark, MARK_PRESENT);
    assert_int_equal(marks_read(&pid, 1, "PATH=", tree_has_variable, &mark), 0);
    assert_int_equal(mark, MARK_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_answer),
        cmocka_unit_test(test_some_do_not_answer),
        cmocka_unit_test(test_too_many_do_not_answer),
        cmocka_unit_test(test_a_real_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
