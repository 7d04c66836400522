/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formula for the latencies of requests against a queue that is simulated request by request
 * (Lindley's recursion), and against what follows without one: no load, and more load than can be
 * answered. The texts of rates, good and bad.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/array.h"
#include "sim/chance.h"
#include "sim/request_queue.h"
#include "sim/request_rate.h"
#include "sim/service_totals.h"

enum { REQUESTS = 1000000 };

#define TOLERANCE 0.05 /* of a p99: the formula's 3 %, and the chance of a million requests */

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* The latencies of requests that arrive at random, in the order of their length. */
static double *simulate_requests(const struct request_queue *queue)
{
    double *took_s = calloc(REQUESTS, sizeof *took_s), wait_s = 0;
    assert_non_null(took_s);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        double chance = (1 + (double)chance_below(7, i, 1u << 30)) / (1u << 30);
        took_s[i] = wait_s + queue->request_s;
        wait_s = fmax(0, wait_s + queue->request_s + log(chance) / queue->rate);
    }
    qsort(took_s, REQUESTS, sizeof *took_s, compare);
    return took_s;
}

static double part_within(const double *took_s, double limit_s)
{
    size_t n = 0;
    while (n < REQUESTS && took_s[n] <= limit_s)
        n++;
    return (double)n / REQUESTS;
}

static void test_latencies_are_those_of_a_simulated_queue(void **state)
{
    static const double loads[] = {0.02, 0.1, 0.3, 0.5, 0.75, 0.9};
    for (size_t i = 0; i < ARRAY_SIZE(loads); i++) {
        struct request_queue queue = {.rate = loads[i] / 0.02, .request_s = 0.02};
        double *took_s = simulate_requests(&queue), limit_s = 3 * queue.request_s;
        double p99_s = took_s[REQUESTS * 99 / 100 - 1];
        assert_float_equal(request_queue_p99_s(&queue) / p99_s, 1, TOLERANCE);
        assert_float_equal(
            request_queue_within(&queue, limit_s), part_within(took_s, limit_s), 0.01);
        free(took_s);
    }
}

static void test_a_rare_request_waits_for_no_other(void **state)
{
    struct request_queue queue = {.rate = 0.1, .request_s = 0.02};
    assert_float_equal(request_queue_p99_s(&queue), 0.02, 1e-12);
    assert_float_equal(request_queue_within(&queue, 0.02), 1, 1e-12);
    assert_float_equal(request_queue_within(&queue, 0.019), 0, 1e-12);
}

static void test_what_cannot_be_answered_is_in_line(void **state)
{
    struct request_queue queue = {.rate = 60, .request_s = 0.02};
    double before_s = request_queue_p99_s(&queue);
    request_queue_advance(&queue, 10);
    assert_float_equal(queue.backlog, 100, 1e-9);
    assert_float_equal(request_queue_p99_s(&queue), before_s + 2, 1e-9);
    assert_float_equal(request_queue_within(&queue, 2), 0, 1e-12);
    queue.rate = 30;
    request_queue_advance(&queue, 4);
    assert_float_equal(queue.backlog, 20, 1e-9);
    request_queue_advance(&queue, 10);
    assert_float_equal(queue.backlog, 0, 1e-9);
}

/* One calculation for all limits; from a limit on, all requests are answered. */
static void test_latencies_of_many_limits(void **state)
{
    static const struct request_queue queues[] = {{.rate = 0.1, .request_s = 0.02},
        {.rate = 30, .request_s = 0.02}, {.rate = 60, .request_s = 0.02, .backlog = 500}};
    for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
        struct request_latencies latencies = request_latencies_of(&queues[i]);
        for (double limit_s = 0.01; limit_s < 20; limit_s *= 2)
            assert_float_equal(request_latencies_within(&latencies, limit_s),
                request_queue_within(&queues[i], limit_s), 0);
        assert_true(request_latencies_within(&latencies, 100) == 1);
    }
}

/* A service whose queue changes each second: each request is in a bin, by how long it took. */
static void test_totals_of_a_growing_backlog(void **state)
{
    enum { PASSED_S = 1000, ANSWERED = 50 };
    struct sim_service service = {.p99_us = 1000000};
    struct sim_task type = {.service = &service};
    struct service_totals totals = {0};
    struct service_total *total = service_totals_add(&totals, 1, &type);
    struct request_queue queue = {.rate = 60, .request_s = 1.0 / ANSWERED};
    double sum = 0, last_s = PASSED_S * (queue.rate - ANSWERED) / ANSWERED;
    assert_non_null(total);
    for (int i = 0; i < PASSED_S; i++) {
        service_total_add(total, &queue, 1);
        request_queue_advance(&queue, 1);
    }
    struct reading p99_s = service_total_p99_s(total);
    for (int i = 0; i < REQUEST_BINS; i++)
        sum += total->requests_in[i];
    assert_float_equal(sum, PASSED_S * queue.rate, 1e-6);
    assert_true(p99_s.valid);
    assert_float_equal(p99_s.value / last_s, 1, TOLERANCE);
    service_totals_fini(&totals);
}

static void test_rates_over_time(void **state)
{
    struct request_rate rate;
    assert_int_equal(request_rate_parse("20", &rate), 0);
    assert_float_equal(request_rate_at(&rate, 0), 20, 0);
    assert_float_equal(request_rate_at(&rate, 1e8), 20, 0);
    assert_int_equal(request_rate_parse("20;3600:80.5;7200:0", &rate), 0);
    assert_float_equal(request_rate_at(&rate, 3599), 20, 0);
    assert_float_equal(request_rate_at(&rate, 3600), 80.5, 0);
    assert_float_equal(request_rate_at(&rate, 7201), 0, 0);
    assert_float_equal(request_rate_max(&rate), 80.5, 0);
}

static void test_texts_that_are_no_rates(void **state)
{
    static const char *const bad[] = {"", "x", "-1", "nan", "20;", ";20", "0:20", "20;80",
        "20;3600:80;3600:5", "20;3600:80;60:5", "20;:80", "20;3600:", "20;3600:80:1", "1e9"};
    struct request_rate rate;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_not_equal(request_rate_parse(bad[i], &rate), 0);
    char many[8192] = "1";
    size_t size = 1;
    for (int i = 1; i < REQUEST_RATE_STEPS; i++)
        size += (size_t)snprintf(many + size, sizeof many - size, ";%d:1", i);
    assert_int_equal(request_rate_parse(many, &rate), 0);
    snprintf(many + size, sizeof many - size, ";%d:1", REQUEST_RATE_STEPS);
    assert_int_not_equal(request_rate_parse(many, &rate), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_latencies_are_those_of_a_simulated_queue),
        cmocka_unit_test(test_a_rare_request_waits_for_no_other),
        cmocka_unit_test(test_what_cannot_be_answered_is_in_line),
        cmocka_unit_test(test_latencies_of_many_limits),
        cmocka_unit_test(test_totals_of_a_growing_backlog),
        cmocka_unit_test(test_rates_over_time),
        cmocka_unit_test(test_texts_that_are_no_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
