/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: level, time or priority, control characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static char written[8192];

/* What log_write put on stderr is in `written` between these two. */
static int saved_stderr;
static FILE *capture;

static void capture_begin(void)
{
    fflush(stderr);
    saved_stderr = dup(STDERR_FILENO);
    capture = tmpfile();
    assert_non_null(capture);
    dup2(fileno(capture), STDERR_FILENO);
}

static void capture_end(void)
{
    fflush(stderr);
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    rewind(capture);
    written[fread(written, 1, sizeof written - 1, capture)] = '\0';
    fclose(capture);
}

static void test_line_with_time_and_level(void **state)
{
    unsetenv("JOURNAL_STREAM");
    capture_begin();
    log_warning("GPU %d is lost", 2);
    capture_end();
    int ms, end = 0;
    assert_int_equal(
        sscanf(written, "%*4d-%*2d-%*2d %*2d:%*2d:%*2d.%3d warning: GPU 2 is lost%n", &ms, &end),
        1);
    assert_string_equal(written + end, "\n");
}

static void test_priority_for_the_journal(void **state)
{
    setenv("JOURNAL_STREAM", "8:1", 1);
    capture_begin();
    log_error("disk full");
    log_info("started");
    capture_end();
    assert_string_equal(written, "<3>disk full\n<6>started\n");
}

static void test_level(void **state)
{
    setenv("JOURNAL_STREAM", "8:1", 1);
    capture_begin();
    log_debug("not by default");
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("now");
    log_set_level(LOG_LEVEL_ERROR);
    log_warning("no more");
    log_set_level(LOG_LEVEL_INFO);
    capture_end();
    assert_string_equal(written, "<7>now\n");
}

static void test_a_message_is_one_line(void **state)
{
    setenv("JOURNAL_STREAM", "8:1", 1);
    capture_begin();
    log_info("task %s", "a\n<3>forged\r\x1b[2J");
    capture_end();
    assert_string_equal(written, "<6>task a <3>forged  [2J\n");
}

static void test_long_message_is_cut(void **state)
{
    setenv("JOURNAL_STREAM", "8:1", 1);
    capture_begin();
    log_info("%5000d", 1);
    capture_end();
    assert_true(strlen(written) < 1100);
    assert_int_equal(written[strlen(written) - 1], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_with_time_and_level),
        cmocka_unit_test(test_priority_for_the_journal),
        cmocka_unit_test(test_level),
        cmocka_unit_test(test_a_message_is_one_line),
        cmocka_unit_test(test_long_message_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
