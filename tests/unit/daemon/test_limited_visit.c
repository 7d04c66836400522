/* SPDX-License-Identifier: Apache-2.0 */
/* A process that keeps its visitor waiting is skipped; the others are visited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "daemon/node/limited_visit.h"

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

static bool count_skipped(void *context)
{
    ++*(int *)context;
    return true;
}

static bool stop(void *context)
{
    return false;
}

static int run_visits(const pid_t *pids, size_t n, bool (*goes_on)(void *), int *n_skipped)
{
    const struct limited_visit visit = {.pids = pids,
        .n = n,
        .limit_ms = 300,
        .visit = visit_case,
        .goes_on = goes_on,
        .context = n_skipped};
    return limited_visit_run(&visit);
}

static void test_all_are_visited(void **state)
{
    static const struct {
        pid_t pids[5];
        int n_true, n_skipped;
    } cases[] = {
        {{1, 2, 3, 4, 5}, 5, 0},
        {{1, NO, 3, NO, 5}, 3, 0},
        {{HANGS, 2, HANGS, NO, 5}, 2, 2},
        {{1, DIES, 3, 4, DIES}, 3, 2},
        {{1, 2, 3, HANGS, HANGS}, 3, 2},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int n_skipped = 0;
        assert_int_equal(run_visits(cases[i].pids, 5, count_skipped, &n_skipped), cases[i].n_true);
        assert_int_equal(n_skipped, cases[i].n_skipped);
    }
    assert_int_equal(run_visits(NULL, 0, count_skipped, NULL), 0);
}

static void test_the_caller_can_stop(void **state)
{
    static const pid_t pids[] = {1, HANGS, 3};
    assert_int_equal(run_visits(pids, 3, stop, NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_visited),
        cmocka_unit_test(test_the_caller_can_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
