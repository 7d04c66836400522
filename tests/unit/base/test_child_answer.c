/* SPDX-License-Identifier: Apache-2.0 */
/* A child's answer: whole, too long, late; and children that do not end. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/child_answer.h"
#include "base/clock.h"

static int say(void *context, int fd)
{
    const char *text = context;
    return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 3 : 4;
}

static void an_answer_is_read_to_its_end(void **state)
{
    struct child_answer child;
    char text[8] = "";
    assert_int_equal(child_answer_start(&child, say, (char *)"GPU 0"), 0);
    assert_int_equal(child_answer_read(&child, -1, text, sizeof text), 5);
    assert_int_equal(child_answer_end(&child, CHILD_AWAITED), 3);
    assert_string_equal(text, "GPU 0");
}

/* More than a pipe holds: the child ends only if all is read. */
static int say_much(void *context, int fd)
{
    char text[4096];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 64; i++)
        if (write(fd, text, sizeof text) != sizeof text)
            return 1;
    return 0;
}

static void what_does_not_fit_is_dropped(void **state)
{
    struct child_answer child;
    char text[8] = "";
    assert_int_equal(child_answer_start(&child, say_much, NULL), 0);
    assert_int_equal(child_answer_read(&child, 60000, text, 4), 64 * 4096);
    assert_int_equal(child_answer_end(&child, CHILD_AWAITED), 0);
    assert_string_equal(text, "xxxx");
}

/* Answers a part, and then as if its file system hung. */
static int hang(void *context, int fd)
{
    if (write(fd, "GPU", 3) != 3)
        return 1;
    for (;;)
        pause();
}

static void one_that_hangs_is_not_awaited(void **state)
{
    struct child_answer child;
    char text[8];
    int64_t before_us = clock_monotonic_us();
    assert_int_equal(child_answer_start(&child, hang, NULL), 0);
    assert_int_equal(child_answer_read(&child, 50, text, sizeof text), -ETIMEDOUT);
    assert_true(clock_monotonic_us() - before_us >= 50 * MS_US);
    assert_int_equal(child_answer_end(&child, CHILD_KILLED), -1);
    assert_int_equal(waitpid(-1, NULL, 0), -1); /* no other child is mistaken for it */

    assert_int_equal(child_answer_start(&child, hang, NULL), 0);
    assert_int_equal(child_answer_end(&child, CHILD_GIVEN_UP), -1);
    assert_int_equal(child_answer_start(&child, hang, NULL), 0);
    pid_t pid = child.pid;
    assert_int_equal(child_answer_end(&child, CHILD_LEFT), -1);
    assert_int_equal(kill(pid, SIGKILL), 0); /* it was still there */
}

static int end_by_a_signal(void *context, int fd)
{
    abort();
}

static void an_end_by_a_signal_is_no_status(void **state)
{
    struct child_answer child;
    char text[8];
    assert_int_equal(child_answer_start(&child, end_by_a_signal, NULL), 0);
    assert_int_equal(child_answer_read(&child, 60000, text, sizeof text), 0);
    assert_int_equal(child_answer_end(&child, CHILD_AWAITED), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_read_to_its_end),
        cmocka_unit_test(what_does_not_fit_is_dropped),
        cmocka_unit_test(one_that_hangs_is_not_awaited),
        cmocka_unit_test(an_end_by_a_signal_is_no_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
