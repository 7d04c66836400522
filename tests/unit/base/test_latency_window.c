/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies of requests: quantiles, few requests, a full ring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/latency_window.h"

static void quantiles_are_nearest_ranks(void **state)
{
    struct latency_window window = {.count = 0};
    for (int i = 100; i >= 1; i--)
        latency_window_add(&window, 1000, i);
    assert_true(latency_window_quantile(&window, 0.50, 0, 1).value == 50);
    assert_true(latency_window_quantile(&window, 0.99, 0, 1).value == 99);
    assert_true(latency_window_quantile(&window, 1, 0, 1).value == 100);
    assert_true(latency_window_quantile(&window, 0, 0, 1).value == 1);
}

static void few_requests_say_nothing(void **state)
{
    struct latency_window window = {.count = 0};
    assert_false(latency_window_quantile(&window, 0.99, 0, 0).valid);
    for (int i = 0; i < 4; i++)
        latency_window_add(&window, i, 7);
    assert_false(latency_window_quantile(&window, 0.99, 0, 5).valid);
    assert_true(latency_window_quantile(&window, 0.99, 0, 4).valid);
    assert_false(latency_window_quantile(&window, 0.99, 3, 2).valid); /* one since then */
}

static void old_requests_are_replaced(void **state)
{
    struct latency_window window = {.count = 0};
    for (int i = 0; i < LATENCY_WINDOW_MAX + 10; i++)
        latency_window_add(&window, i, i < 10 ? 1000000 : i);
    assert_true(latency_window_quantile(&window, 1, 0, 1).value == (double)LATENCY_WINDOW_MAX + 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_nearest_ranks),
        cmocka_unit_test(few_requests_say_nothing),
        cmocka_unit_test(old_requests_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
