/* SPDX-License-Identifier: Apache-2.0 */
/* A process that keeps its visitor waiting is skipped; the others are visited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "exec/limited_visit.h"

enum { NO = 10, HANGS = 20, DIES = 30 };

/* Where the process id is a number of the case, and 1 to 9 are processes with the answer true. */
static bool visit_case(pid_t pid, void *context)
{
    while (pid == HANGS)
        pause();
    if (pid == DIES)
        _exit(1);
    return pid != NO;
}

static bool count_skipped(void *context, size_t n_unknown)
{
    *(size_t *)context = n_unknown;
    return true;
}

static bool stop_at_two(void *context, size_t n_unknown)
{
    return n_unknown < 2;
}

static int run_visits(const pid_t *pids, size_t n, bool (*goes_on)(void *, size_t),
    size_t *n_skipped, enum visit_answer *answers)
{
    const struct limited_visit visit = {.pids = pids,
        .n = n,
        .limit_ms = 500,
        .visit = visit_case,
        .goes_on = goes_on,
        .context = n_skipped};
    return limited_visit_run(&visit, answers);
}

/* No child stays behind. */
static void test_all_are_visited(void **state)
{
    static const enum visit_answer answer_of[] = {
        ['N'] = VISIT_NO, ['Y'] = VISIT_YES, ['U'] = VISIT_UNKNOWN};
    static const struct {
        pid_t pids[5];
        const char *answers;
        int n_yes;
        size_t n_skipped;
    } cases[] = {
        {{1, 2, 3, 4, 5}, "YYYYY", 5, 0},
        {{1, NO, 3, NO, 5}, "YNYNY", 3, 0},
        {{HANGS, 2, HANGS, NO, 5}, "UYUNY", 2, 2},
        {{1, DIES, 3, 4, DIES}, "YUYYU", 3, 2},
        {{1, 2, 3, HANGS, HANGS}, "YYYUU", 3, 2},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        enum visit_answer answers[5];
        size_t n_skipped = 0;
        assert_int_equal(
            run_visits(cases[i].pids, 5, count_skipped, &n_skipped, answers), cases[i].n_yes);
        assert_int_equal(n_skipped, cases[i].n_skipped);
        for (int at = 0; at < 5; at++)
            assert_int_equal(answers[at], answer_of[(int)cases[i].answers[at]]);
        assert_int_equal(
            run_visits(cases[i].pids, 5, count_skipped, &n_skipped, NULL), cases[i].n_yes);
    }
    assert_int_equal(run_visits(NULL, 0, count_skipped, NULL, NULL), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* What was not visited is unknown. */
static void test_the_caller_can_stop(void **state)
{
    static const pid_t pids[] = {1, HANGS, 3, HANGS, 5};
    static const enum visit_answer expected[] = {
        VISIT_YES, VISIT_UNKNOWN, VISIT_YES, VISIT_UNKNOWN, VISIT_UNKNOWN};
    enum visit_answer answers[5];
    assert_int_equal(run_visits(pids, 5, stop_at_two, NULL, answers), 2);
    assert_memory_equal(answers, expected, sizeof answers);
}

static bool visit_descriptor(pid_t fd, void *context)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* A visitor that hangs must not keep a lock or a socket of its caller. */
static void test_a_visitor_has_the_standard_descriptors_only(void **state)
{
    static const enum visit_answer expected[] = {VISIT_YES, VISIT_NO, VISIT_NO};
    enum visit_answer answers[3];
    int below = open("/dev/null", O_RDONLY), above = fcntl(below, F_DUPFD, 200);
    assert_true(below > STDERR_FILENO && above >= 200);
    const pid_t descriptors[] = {STDERR_FILENO, below, above};
    const struct limited_visit visit = {
        .pids = descriptors, .n = 3, .limit_ms = 500, .visit = visit_descriptor};
    assert_int_equal(limited_visit_run(&visit, answers), 1);
    assert_memory_equal(answers, expected, sizeof answers);
    close(below);
    close(above);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_visited),
        cmocka_unit_test(test_the_caller_can_stop),
        cmocka_unit_test(test_a_visitor_has_the_standard_descriptors_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
