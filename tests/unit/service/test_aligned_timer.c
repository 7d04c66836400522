/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned timers that are started at different times are due at the same time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/aligned_timer.h"

enum { PERIOD_MS = 20, CALLS = 3 };

struct calls {
    uint64_t at_ms[CALLS];
    int count;
};

static void on_time(uv_timer_t *timer)
{
    struct calls *calls = timer->data;
    calls->at_ms[calls->count++] = uv_now(timer->loop);
    if (calls->count < CALLS)
        aligned_timer_start(timer, on_time, PERIOD_MS);
}

static void test_timers_share_their_wakeups(void **state)
{
    uv_loop_t loop;
    uv_timer_t first, second;
    struct calls of_first = {.count = 0}, of_second = {.count = 0};
    assert_int_equal(uv_loop_init(&loop), 0);
    uv_timer_init(&loop, &first);
    uv_timer_init(&loop, &second);
    first.data = &of_first;
    second.data = &of_second;
    aligned_timer_start(&first, on_time, PERIOD_MS);
    for (uint64_t begun_ms = uv_now(&loop); uv_now(&loop) < begun_ms + PERIOD_MS / 2;)
        uv_update_time(&loop);
    /* The first may have become due while the time passed: then it is started once more. */
    aligned_timer_start(&second, on_time, PERIOD_MS);
    if (uv_timer_get_due_in(&first) == 0)
        aligned_timer_start(&first, on_time, PERIOD_MS);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_memory_equal(of_first.at_ms, of_second.at_ms, sizeof of_first.at_ms);
    assert_in_range(aligned_wait_ms(&loop, PERIOD_MS), 1, PERIOD_MS);
    assert_int_equal(aligned_earlier_ms(&loop, 0), 0);
    uint64_t second_ms = aligned_wait_ms(&loop, 1000);
    assert_int_equal(aligned_earlier_ms(&loop, 1000), second_ms);
    assert_int_equal(aligned_earlier_ms(&loop, 10000), 9000 + second_ms);
    uv_close((uv_handle_t *)&first, NULL);
    uv_close((uv_handle_t *)&second, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_timers_share_their_wakeups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
