/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of processes from the text of /proc, with hostile names. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/process.h"

#define NUMBERS " 1 13 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 42 3\n"
#define REST    " S 11" NUMBERS

static void test_stat(void **state)
{
    static const struct {
        const char *stat, *name;
    } good[] = {
        {"7 (python3)" REST, "python3"},
        {"7 (a) b (c)" REST, "a) b (c"},
        {"7 (a\nb\033)" REST, "a?b?"},
        {"7 (\xff\xc3\xa9)" REST, "?\xc3\xa9"},
        {"7 ()" REST, ""},
    };
    struct process_stat found;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(process_parse_stat(good[i].stat, &found), 0);
        assert_string_equal(found.name, good[i].name);
        assert_int_equal(found.state, 'S');
        assert_int_equal(found.parent, 11);
        assert_int_equal(found.session, 13);
        assert_int_equal(found.cpu_ticks, 5 + 6 + 7 + 8);
        assert_int_equal(found.start_ticks, 98765);
        assert_int_equal(found.resident_pages, 42);
        assert_false(process_has_ended(&found));
    }
    assert_int_equal(process_parse_stat("7 (x) Z 1" NUMBERS, &found), 0);
    assert_true(process_has_ended(&found));
    assert_false(found.is_exiting);
    assert_int_equal(
        process_parse_stat("7 (x) R 1 1 1 0 -1 4194308 1 2 3 4 5 6 7 8 20 0 1 0 9 1 2", &found), 0);
    assert_true(found.is_exiting && !process_has_ended(&found));
    static const char *const bad[] = {"", "7", "7 (x", "7 x)", ")(", "7 (x)", "7 (x) ", "7 (x) S",
        "7 (x) S 1 1", ("7 (x) S x" NUMBERS),
        "7 (x) S 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(process_parse_stat(bad[i], &found), -EPROTO);
}

static void test_an_environment_that_is_hidden(void **state)
{
#define TO_VSIZE "7 (a) b) R 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 "
#define TO_ENV   "42 99 1 2 3 4 5 0 0 0 0 0 0 0 17 1 0 0 0 0 0 "
    static const struct {
        const char *stat;
        bool hides;
    } cases[] = {
        {TO_VSIZE "16961536 " TO_ENV "7 8 9 0 0 0 0 0\n", true}, /* in execve */
        {TO_VSIZE "16961536 " TO_ENV "7 8 9 10 11 12 13 0\n", true},
        {TO_VSIZE "16961536 " TO_ENV "7 8 9 10 11 12 12 0\n", false}, /* without any variable */
        {TO_VSIZE "0 " TO_ENV "0 0 0 0 0 0 0 0\n", false},            /* a thread of the kernel */
        {TO_VSIZE, false},
        {"", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(process_parse_hides_environ(cases[i].stat), cases[i].hides);
}

static void test_uid(void **state)
{
    uid_t uid;
    assert_int_equal(process_parse_uid("Name:\tx\nUid:\t1000\t0\t0\t0\n", &uid), 0);
    assert_int_equal(uid, 1000);
    assert_int_equal(process_parse_uid("Name:\tUid: 7\n", &uid), -EPROTO);
    assert_int_equal(process_parse_uid("Name:\tx\nUid:\n", &uid), -EPROTO);
    assert_int_equal(process_parse_uid("", &uid), -EPROTO);
}

static void test_this_process(void **state)
{
    struct process_facts facts;
    assert_int_equal(process_read(getpid(), &facts), 0);
    assert_int_equal(facts.uid, getuid());
    assert_memory_equal(facts.name, "test_base_proce", 15); /* as the kernel cuts it */
    assert_in_range(facts.age_us, 0, 600 * SECOND_US);
}

static void test_a_process_that_is_gone(void **state)
{
    struct process_facts facts;
    struct process_stat stat;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(process_read(pid, &facts), -ESRCH);
    assert_int_equal(process_read_stat(pid, &stat), -ESRCH);
}

static void test_a_process_that_was_not_waited_for(void **state)
{
    struct process_stat stat;
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(process_read_stat(pid, &stat), 0);
    assert_true(process_has_ended(&stat));
    assert_int_equal(stat.parent, getpid());
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A pid that was used again: it is this child's, as if it had been another process's before. */
static void test_a_signal_for_one_process_only(void **state)
{
    struct process_stat stat;
    int status;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    assert_int_equal(process_read_stat(child, &stat), 0);
    const struct process_id now = {child, stat.start_ticks}, before = {child, now.born - 1},
                            unseen = {child, 0};
    assert_int_equal(process_signal(before, SIGKILL), -ESRCH);
    assert_int_equal(process_signal(unseen, SIGKILL), -ESRCH);
    assert_int_equal(process_signal(now, 0), 0);
    assert_int_equal(process_signal(now, SIGTERM), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(process_signal(now, SIGTERM), -ESRCH);
}

/* Beside another process on its processor. */
static void test_one_that_waits_for_a_processor(void **state)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (access("/proc/self/schedstat", R_OK) < 0 || sched_setaffinity(0, sizeof one, &one) < 0)
        skip();
    pid_t pids[2];
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                ;
        }
    }
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    int64_t begun_us = clock_monotonic_us(), queued_us = 0;
    while (queued_us < 1000 && clock_monotonic_us() < begun_us + 60 * SECOND_US) {
        nanosleep(&pause, NULL);
        queued_us = process_queued_us(pids[0]);
    }
    assert_in_range(queued_us, 1000, clock_monotonic_us() - begun_us + SECOND_US);
    for (int i = 0; i < 2; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    assert_int_equal(process_queued_us(pids[0]), 0);
}

/* proc(5): field 28 is the address of the stack. */
static void test_another_program(void **state)
{
    assert_int_equal(
        process_parse_program("7 (a) b) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 "
                              "21 22 23 24 25 26 27 140737 29"),
        140737);
    assert_int_equal(process_parse_program("7 (x) S 4 5"), 0);
    assert_int_equal(process_parse_program(""), 0);
    assert_true(process_read_program(getpid()) > 0);
    assert_int_equal(process_read_program(getpid()), process_read_program(getpid()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat),
        cmocka_unit_test(test_an_environment_that_is_hidden),
        cmocka_unit_test(test_another_program),
        cmocka_unit_test(test_uid),
        cmocka_unit_test(test_this_process),
        cmocka_unit_test(test_a_process_that_is_gone),
        cmocka_unit_test(test_a_process_that_was_not_waited_for),
        cmocka_unit_test(test_a_signal_for_one_process_only),
        cmocka_unit_test(test_one_that_waits_for_a_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
