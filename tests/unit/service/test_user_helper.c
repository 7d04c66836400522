/* SPDX-License-Identifier: Apache-2.0 */
/* The loop must not wait for a child that was killed and cannot die yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "service/user_helper.h"

/* The freezer of cgroup v1: what is frozen there does not even die of SIGKILL, as a process in an
 * uninterruptible wait does not. */
#define FREEZER "/sys/fs/cgroup/freezer"

struct done {
    bool is_done;
    int answer;
};

static char freezer[96];

static int write_text(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", freezer, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : file_write_fd(fd, text, strlen(text));
    if (fd >= 0)
        close(fd);
    return r;
}

static void on_done(struct user_helper *helper, int answer, const struct fault *fault)
{
    *(struct done *)helper->context = (struct done){.is_done = true, .answer = answer};
}

static void on_time(uv_timer_t *timer)
{
}

/* Children of this process that have not been reaped. */
static bool has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void run_until(uv_loop_t *loop, const bool *condition, int64_t limit_us)
{
    for (int64_t end_us = clock_monotonic_us() + limit_us;
         !*condition && clock_monotonic_us() < end_us;)
        uv_run(loop, UV_RUN_NOWAIT);
}

static void reap_children(uv_loop_t *loop)
{
    bool reaped = false;
    for (int64_t end_us = clock_monotonic_us() + 10 * SECOND_US;
         !reaped && clock_monotonic_us() < end_us; reaped = !has_children())
        uv_run(loop, UV_RUN_NOWAIT);
    assert_true(reaped);
}

static void a_child_that_cannot_die_is_reaped_later(void **state)
{
    const struct user_helper_order order = {
        .uid = getuid(), .gid = getgid(), .limit_ms = 100, .what = "freeze"};
    struct done done = {0};
    struct user_helper helper = {.context = &done, .on_done = on_done};
    struct fault fault;
    uv_loop_t loop;
    snprintf(freezer, sizeof freezer, FREEZER "/colloc-test-%d", (int)getpid());
    if (mkdir(freezer, 0755) < 0)
        skip();
    uv_timer_t other; /* a daemon's loop has other things to wait for */
    uv_loop_init(&loop);
    uv_timer_init(&loop, &other);
    uv_timer_start(&other, on_time, 3600 * 1000, 0);
    if (user_helper_begin(&helper, &loop, &order, &fault) == USER_HELPER_CHILD) {
        write_text("tasks", "0");
        write_text("freezer.state", "FROZEN");
        for (;;)
            pause();
    }
    alarm(20); /* a loop that waits for the child would wait for ever */
    run_until(&loop, &done.is_done, 10 * SECOND_US);
    assert_true(done.is_done);
    assert_int_equal(done.answer, -ETIMEDOUT);
    assert_false(user_helper_is_under_way(&helper));
    assert_true(has_children());
    assert_int_equal(write_text("freezer.state", "THAWED"), 0);
    reap_children(&loop);
    uv_close((uv_handle_t *)&other, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(rmdir(freezer), 0);
}

static void a_report_arrives(void **state)
{
    const struct user_helper_order order = {
        .uid = getuid(), .gid = getgid(), .limit_ms = 10000, .what = "report"};
    struct done done = {0};
    struct user_helper helper = {.context = &done, .on_done = on_done};
    struct fault fault;
    uv_loop_t loop;
    uv_timer_t other; /* as above: without it uv_run does not poll for the child's end */
    uv_loop_init(&loop);
    uv_timer_init(&loop, &other);
    uv_timer_start(&other, on_time, 3600 * 1000, 0);
    if (user_helper_begin(&helper, &loop, &order, &fault) == USER_HELPER_CHILD) {
        const struct user_helper_report report = {.answer = 7};
        user_helper_end(&helper, &report);
    }
    run_until(&loop, &done.is_done, 10 * SECOND_US);
    assert_int_equal(done.answer, 7);
    user_helper_leave(&helper); /* harmless */
    reap_children(&loop);
    uv_close((uv_handle_t *)&other, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* An estimate is to be made on a busy machine, too; and a user may make a process wait for ever. */
static void time_without_a_processor_is_not_counted(void **state)
{
    const struct user_helper_order strict = {.limit_ms = 2000},
                                   patient = {.limit_ms = 2000, .queued_ms = 2000};
    assert_int_equal(user_helper_left_ms(&patient, 0, 0), 2000);
    assert_int_equal(user_helper_left_ms(&patient, 2000 * MS_US, 0), 0);
    assert_int_equal(user_helper_left_ms(&patient, 2000 * MS_US - 1, 0), 1);
    assert_int_equal(user_helper_left_ms(&patient, 2000 * MS_US, 1500 * MS_US), 1500);
    assert_int_equal(user_helper_left_ms(&patient, 3500 * MS_US, 1500 * MS_US), 0);
    assert_int_equal(user_helper_left_ms(&patient, 3500 * MS_US, 3400 * MS_US), 500);
    assert_int_equal(user_helper_left_ms(&patient, 4000 * MS_US, 3900 * MS_US), 0);
    assert_int_equal(user_helper_left_ms(&patient, 2500 * MS_US, -5), 0);
    assert_int_equal(user_helper_left_ms(&strict, 2000 * MS_US, 1500 * MS_US), 0);
}

/* The loop itself had no processor until the limit was over. */
static void a_report_that_is_there_is_read_at_the_limit(void **state)
{
    const struct user_helper_order order = {
        .uid = getuid(), .gid = getgid(), .limit_ms = 1, .what = "report"};
    struct done done = {0};
    struct user_helper helper = {.context = &done, .on_done = on_done};
    struct fault fault;
    siginfo_t info;
    uv_loop_t loop;
    uv_timer_t other;
    uv_loop_init(&loop);
    uv_timer_init(&loop, &other);
    uv_timer_start(&other, on_time, 3600 * 1000, 0);
    if (user_helper_begin(&helper, &loop, &order, &fault) == USER_HELPER_CHILD) {
        const struct user_helper_report report = {.answer = 7};
        user_helper_end(&helper, &report);
    }
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    usleep(2000);
    run_until(&loop, &done.is_done, 10 * SECOND_US);
    assert_int_equal(done.answer, 7);
    reap_children(&loop);
    uv_close((uv_handle_t *)&other, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_that_cannot_die_is_reaped_later),
        cmocka_unit_test(a_report_arrives),
        cmocka_unit_test(a_report_that_is_there_is_read_at_the_limit),
        cmocka_unit_test(time_without_a_processor_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
