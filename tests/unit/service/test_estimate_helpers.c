/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that answer, that hang, that die, and more of them than a user may have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "model/export.h"
#include "service/estimate_helpers.h"

enum { LIMIT_MS = 20000, SHORT_LIMIT_MS = 1000 };

struct outcome {
    bool is_done;
    int r;
    int64_t batch, batch_later;
    char fault[sizeof((struct fault *)NULL)->text];
};

/* What a helper does, for one test. */
struct order {
    struct outcome outcome;
    int *started;       /* shared with the helpers */
    bool hangs, aborts; /* instead of an answer */
    bool goes_on;       /* a process of the user writes to the answer after the helper has ended */
    size_t takes_bytes; /* of memory (take_memory) */
};

static uv_loop_t loop;
static uv_timer_t other; /* a daemon's loop has other things to wait for */
static struct estimate_helpers *helpers;
static bool leaves_helpers; /* they go on after the test, and end with it */

static void on_time(uv_timer_t *timer)
{
}

static int begin_test(void **state)
{
    uv_loop_init(&loop);
    uv_timer_init(&loop, &other);
    uv_timer_start(&other, on_time, 10, 10);
    helpers = estimate_helpers_create(&loop, LIMIT_MS);
    return helpers ? 0 : -1;
}

/* Until the loop has reaped all helpers. */
static void reap_helpers(void)
{
    siginfo_t info;
    int64_t end_us = clock_monotonic_us() + 60 * SECOND_US;
    while (
        waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && clock_monotonic_us() < end_us)
        uv_run(&loop, UV_RUN_ONCE);
    for (int i = 0; i < 3; i++) /* what is closed has left the loop */
        uv_run(&loop, UV_RUN_ONCE);
}

static int end_test(void **state)
{
    if (!leaves_helpers)
        reap_helpers();
    leaves_helpers = false;
    estimate_helpers_close(helpers);
    uv_close((uv_handle_t *)&other, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    estimate_helpers_destroy(helpers);
    return uv_loop_close(&loop);
}

static void set_limit(int limit_ms)
{
    reap_helpers();
    estimate_helpers_close(helpers);
    uv_run(&loop, UV_RUN_NOWAIT);
    estimate_helpers_destroy(helpers);
    helpers = estimate_helpers_create(&loop, limit_ms);
    assert_non_null(helpers);
}

/* What a helper answers. */
struct answer {
    int64_t batch;
};

/* Answers with what the OOM killer has of the helper. */
static int take_memory(size_t bytes, struct answer *ret_answer, struct fault *fault)
{
    char text[16] = "";
    file_read_start("/proc/self/oom_score_adj", text, sizeof text);
    ret_answer->batch = atoi(text);
    void *taken = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return taken == MAP_FAILED ? fault_set(fault, errno, "no %zu bytes", bytes) : 0;
}

static void fork_writer(struct answer *answer)
{
    if (fork() != 0)
        return;
    volatile int64_t *batch = &answer->batch;
    for (int64_t end_us = clock_monotonic_us() + SECOND_US; clock_monotonic_us() < end_us;)
        *batch += 1;
    _exit(0);
}

static int estimate(
    void *context, const char *text, size_t size, void *ret_answer, struct fault *fault)
{
    struct order *order = context;
    struct answer *answer = ret_answer;
    if (order->started)
        __atomic_fetch_add(order->started, 1, __ATOMIC_SEQ_CST);
    while (order->hangs)
        pause();
    if (order->aborts)
        _exit(9);
    if (order->goes_on)
        fork_writer(answer);
    if (order->takes_bytes)
        return take_memory(order->takes_bytes, answer, fault);
    if (strncmp(text, "wrong", 5) == 0)
        return fault_set(fault, EINVAL, "wrong text of %zu bytes", size);
    answer->batch = (int64_t)size;
    return 0;
}

static void on_done(void *context, int r, const void *ret_answer, const struct fault *fault)
{
    struct order *order = context;
    const struct answer *answer = ret_answer;
    order->outcome = (struct outcome){.is_done = true, .r = r, .batch = answer ? answer->batch : 0};
    if (order->goes_on)
        usleep(50000);
    order->outcome.batch_later = answer ? answer->batch : 0;
    if (r < 0)
        snprintf(order->outcome.fault, sizeof order->outcome.fault, "%s", fault->text);
}

static void begin(struct order *order, const char *path, const char *text)
{
    const struct estimate_work work = {.uid = getuid(),
        .gid = getgid(),
        .path = path,
        .text = text,
        .answer_size = sizeof(struct answer),
        .context = order,
        .estimate = estimate,
        .on_done = on_done};
    assert_int_equal(estimate_helpers_begin(helpers, &work), 0);
}

static void run_until(const bool *condition)
{
    int64_t end_us = clock_monotonic_us() + 60 * SECOND_US;
    while (!*condition && clock_monotonic_us() < end_us)
        uv_run(&loop, UV_RUN_ONCE);
    assert_true(*condition);
}

static struct outcome run_one(struct order order, const char *path, const char *text)
{
    begin(&order, path, text);
    run_until(&order.outcome.is_done);
    return order.outcome;
}

static void a_text_is_estimated(void **state)
{
    struct outcome good = run_one((struct order){0}, NULL, "twelve bytes");
    assert_int_equal(good.r, 0);
    assert_int_equal(good.batch, 12);
    struct outcome bad = run_one((struct order){0}, NULL, "wrong");
    assert_int_equal(bad.r, -EINVAL);
    assert_string_equal(bad.fault, "wrong text of 5 bytes");
}

static void a_file_is_read_by_the_helper(void **state)
{
    char path[] = "/tmp/colloc-estimate-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "file", 4) == 4);
    struct outcome good = run_one((struct order){0}, path, NULL);
    assert_int_equal(ftruncate(fd, (off_t)EXPORT_SIZE_MAX + 1), 0);
    struct outcome large = run_one((struct order){0}, path, NULL);
    close(fd);
    unlink(path);
    struct outcome missing = run_one((struct order){0}, path, NULL);
    struct outcome folder = run_one((struct order){0}, "/tmp", NULL);
    assert_int_equal(good.r, 0);
    assert_int_equal(good.batch, 4);
    assert_int_equal(large.r, -EFBIG);
    assert_int_equal(missing.r, -ENOENT);
    assert_non_null(strstr(missing.fault, path));
    assert_int_equal(folder.r, -EISDIR);
}

static void a_helper_that_hangs_or_dies_is_an_error(void **state)
{
    struct outcome died = run_one((struct order){.aborts = true}, NULL, "text");
    assert_int_equal(died.r, -EIO);
    set_limit(SHORT_LIMIT_MS);
    struct outcome late = run_one((struct order){.hangs = true}, NULL, "text");
    assert_int_equal(late.r, -ETIMEDOUT);
    assert_non_null(strstr(late.fault, "longer than"));
}

static void a_helper_has_a_limit_of_memory(void **state)
{
    struct outcome some = run_one((struct order){.takes_bytes = (size_t)1 << 30}, NULL, "text");
    struct outcome much = run_one((struct order){.takes_bytes = (size_t)3 << 30}, NULL, "text");
    assert_int_equal(some.r, 0);
    assert_int_equal(some.batch, 1000); /* the score */
    assert_int_equal(much.r, -ENOMEM);
}

/* The daemon must not check one size and use another. */
static void an_answer_does_not_change_any_more(void **state)
{
    struct outcome good = run_one((struct order){.goes_on = true}, NULL, "text");
    assert_int_equal(good.r, 0);
    assert_true(good.batch > 0);
    assert_int_equal(good.batch, good.batch_later);
}

static void a_user_has_at_most_two_helpers(void **state)
{
    enum { N = ESTIMATE_HELPERS_PER_USER + 2 };
    struct order orders[N] = {0}, late = {0};
    int *started = mmap(
        NULL, sizeof *started, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(started, MAP_FAILED);
    for (int i = 0; i < N; i++) {
        orders[i] = (struct order){.started = started, .hangs = true};
        begin(&orders[i], NULL, "text");
    }
    int64_t end_us = clock_monotonic_us() + 60 * SECOND_US;
    while (__atomic_load_n(started, __ATOMIC_SEQ_CST) < ESTIMATE_HELPERS_PER_USER &&
           clock_monotonic_us() < end_us)
        uv_run(&loop, UV_RUN_ONCE);
    for (int i = 0; i < 20; i++)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(__atomic_load_n(started, __ATOMIC_SEQ_CST), ESTIMATE_HELPERS_PER_USER);
    estimate_helpers_close(helpers);
    leaves_helpers = true;
    for (int i = 0; i < N; i++)
        assert_int_equal(orders[i].outcome.r, -ECANCELED);
    begin(&late, NULL, "text");
    assert_int_equal(late.outcome.r, -ECANCELED);
    munmap(started, sizeof *started);
}

/* More than a user may have, and each exceeds its time: all are answered, one after the other. */
static void what_waits_is_estimated_when_a_helper_is_gone(void **state)
{
    enum { N = ESTIMATE_HELPERS_PER_USER };
    struct order slow[N] = {0}, quick = {0};
    set_limit(SHORT_LIMIT_MS);
    for (int i = 0; i < N; i++) {
        slow[i].hangs = true;
        begin(&slow[i], NULL, "text");
    }
    begin(&quick, NULL, "text");
    run_until(&quick.outcome.is_done);
    for (int i = 0; i < N; i++)
        run_until(&slow[i].outcome.is_done);
    assert_int_equal(quick.outcome.r == 0 || quick.outcome.r == -ETIMEDOUT, 1);
    assert_int_equal(slow[0].outcome.r, -ETIMEDOUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_text_is_estimated, begin_test, end_test),
        cmocka_unit_test_setup_teardown(a_file_is_read_by_the_helper, begin_test, end_test),
        cmocka_unit_test_setup_teardown(
            a_helper_that_hangs_or_dies_is_an_error, begin_test, end_test),
        cmocka_unit_test_setup_teardown(a_helper_has_a_limit_of_memory, begin_test, end_test),
        cmocka_unit_test_setup_teardown(an_answer_does_not_change_any_more, begin_test, end_test),
        cmocka_unit_test_setup_teardown(
            what_waits_is_estimated_when_a_helper_is_gone, begin_test, end_test),
        cmocka_unit_test_setup_teardown(a_user_has_at_most_two_helpers, begin_test, end_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
