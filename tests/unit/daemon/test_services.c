/* SPDX-License-Identifier: Apache-2.0 */
/* Which services are probed, and what is reported of them, with pretend requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/services/http_probe.h"
#include "daemon/services/services.h"
#include "pretend_driver.h"

enum { GPUS = 3, PORT = 8000, TOOK_US = 20000, LIMIT_MS = 20000 };

static struct services *services;

/* ---- pretend requests ---- */

static struct {
    enum { ANSWERS, FAILS, HANGS } behaviour;
    http_probe_done *done; /* NULL: no request is under way */
    void *context;
    int started, stopped;
    uv_timer_t timer;
} requests;

static void on_end_of_request(uv_timer_t *timer)
{
    http_probe_done *done = requests.done;
    requests.done = NULL;
    done(requests.context, requests.behaviour == ANSWERS, TOOK_US);
}

struct http_probe *http_probe_start(
    uv_loop_t *loop, int port, const char *path, http_probe_done *done, void *context)
{
    assert_null(requests.done); /* one at a time, of the one service with a port */
    assert_int_equal(port, PORT);
    assert_string_equal(path, "/health");
    requests.done = done;
    requests.context = context;
    requests.started++;
    if (requests.behaviour != HANGS)
        uv_timer_start(&requests.timer, on_end_of_request, 0, 0);
    return (struct http_probe *)(void *)&requests;
}

void http_probe_stop(struct http_probe *probe)
{
    if (!probe)
        return;
    assert_non_null(requests.done);
    requests.done = NULL;
    requests.stopped++;
}

/* ---- a service with a port, one without, and a training ---- */

static int set_up(void **state)
{
    pretend_driver_begin(GPUS);
    memset(&requests, 0, sizeof requests);
    uv_timer_init(&pretend.loop, &requests.timer);
    for (uint64_t task = 1; task <= GPUS; task++) {
        struct task_request request = {.gpus = 1, .service.is_service = task < GPUS};
        assert_int_equal(feed_request(task, request), 0);
        assert_int_equal(feed(EVENT_STARTED, task), 0);
    }
    struct job *job = jobs_find(pretend.jobs, 1);
    job->port = PORT;
    job->probe_path = "/health";
    const struct services_options options = {.loop = &pretend.loop,
        .core = pretend.core,
        .jobs = pretend.jobs,
        .driver = pretend.driver};
    services = services_create(&options);
    return 0;
}

static int tear_down(void **state)
{
    services_close(services);
    uv_close((uv_handle_t *)&requests.timer, NULL);
    pretend_driver_end();
    services_destroy(services);
    assert_null(requests.done);
    return 0;
}

static void on_limit(uv_timer_t *timer)
{
    fail_msg("did not happen in time");
}

/* Runs the loop until it is so. */
static void run_until(bool (*is_so)(void))
{
    uv_timer_t limit;
    uv_timer_init(&pretend.loop, &limit);
    uv_timer_start(&limit, on_limit, LIMIT_MS, 0);
    while (!is_so())
        uv_run(&pretend.loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&limit, NULL);
    uv_run(&pretend.loop, UV_RUN_NOWAIT);
}

static const struct task_service *service(void)
{
    return &core_task(pretend.core, 1)->run->service;
}

/* So many that they were reported meanwhile. */
static bool has_made_many(void)
{
    return requests.started >= 15;
}

static bool is_known(void)
{
    return service()->p99_us.valid;
}

static bool is_late(void)
{
    return service()->p99_us.value > TOOK_US;
}

static bool has_request(void)
{
    return requests.done != NULL;
}

static bool has_stopped(void)
{
    return requests.stopped > 0;
}

/* ---- tests ---- */

static void test_latency_is_reported(void **state)
{
    run_until(is_known);
    assert_int_equal(service()->p99_us.value, TOOK_US);
    assert_int_equal(core_task(pretend.core, 2)->run->service.reported_us, 0);
    assert_true(requests.started >= 5);
    requests.behaviour = HANGS;
    run_until(has_request); /* tear_down finds it ended with the part */
}

/* Once it has answered, a failure counts as the longest time: it is no good latency. */
static void test_failures_count_after_the_first_answer(void **state)
{
    requests.behaviour = FAILS;
    run_until(has_made_many);
    assert_int_not_equal(service()->reported_us, 0);
    assert_false(service()->p99_us.valid);
    requests.behaviour = ANSWERS;
    run_until(is_known);
    requests.behaviour = FAILS;
    run_until(is_late);
    assert_int_equal(service()->p99_us.value, SERVICES_TIMEOUT_US);
}

static void test_the_request_ends_with_the_attempt(void **state)
{
    requests.behaviour = HANGS;
    run_until(has_request);
    assert_int_equal(feed(EVENT_EXITED, 1), 0);
    run_until(has_stopped);
    assert_int_equal(requests.started, 1);
}

#define SERVICES_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVICES_TEST(test_latency_is_reported),
        SERVICES_TEST(test_failures_count_after_the_first_answer),
        SERVICES_TEST(test_the_request_ends_with_the_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
