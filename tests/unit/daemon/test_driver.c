/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver with the real core, a pretend log and pretend hooks. Each test reads the story of what
 * was written and carried out, in order: "write SUBMIT PLACE; start 1; write STARTED; ".
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../core/pretend_gpus.h"
#include "daemon/driver.h"
#include "policy/policies.h"

static struct {
    char story[1024];
    int write_fault; /* of the next transactions; 0: they succeed */
    bool has_reserve;
    int retries, refused;
    unsigned start_ms; /* that a start takes */
    bool does_nothing_at_a_start;
    uint64_t held_at_an_end; /* task that the hook `ended` holds; 0: none */
} seen;

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *format, ...)
{
    size_t used = strlen(seen.story);
    va_list args;
    va_start(args, format);
    vsnprintf(seen.story + used, sizeof seen.story - used, format, args);
    va_end(args);
}

static void expect_story(const char *expected)
{
    assert_string_equal(seen.story, expected);
    seen.story[0] = '\0';
}

/* ---- the log ---- */

int store_begin(struct store *store, struct fault *fault)
{
    if (seen.write_fault)
        return fault_set(fault, -seen.write_fault, "the disk says no");
    tell("write");
    return 0;
}

int store_append(struct store *store, const struct event *event, int64_t wall_us,
    const json_t *detail, struct fault *fault)
{
    tell(" %s", event_name(event->kind));
    return 0;
}

int store_put_ended(
    struct store *store, const struct store_ended *ended, const json_t *record, struct fault *fault)
{
    tell(" record");
    return 0;
}

int store_commit(struct store *store, struct fault *fault)
{
    tell("; ");
    return 0;
}

void store_rollback(struct store *store)
{
}

bool store_release_reserve(struct store *store)
{
    bool had = seen.has_reserve;
    if (had)
        seen.write_fault = 0;
    seen.has_reserve = false;
    return had;
}

/* ---- the hooks ---- */

struct fixture {
    uv_loop_t loop;
    struct core *core;
    struct driver *driver;
};

static void on_start(void *context, uint64_t task)
{
    struct fixture *fixture = context;
    tell("start %d; ", (int)task);
    uv_sleep(seen.start_ms);
    if (seen.does_nothing_at_a_start)
        return;
    struct event started = driver_event(fixture->driver, EVENT_STARTED, task);
    assert_int_equal(driver_feed(fixture->driver, &started, NULL), 0);
    assert_null(strstr(seen.story, "STARTED")); /* written after this hook has returned */
}

static void on_kill(void *context, uint64_t task)
{
    tell("kill %d; ", (int)task);
}

static void on_stepped(void *context, const struct event *event, int answer)
{
    seen.refused += answer != 0;
}

static void on_decided(void *context, const struct event *event, const json_t *detail)
{
}

static json_t *on_record_end(void *context, const struct task *task)
{
    return json_pack("{s:I}", "id", (json_int_t)task->id);
}

static void on_recorded(void *context, const struct event *event, const json_t *detail)
{
    assert_false(driver_log_is_broken(((struct fixture *)context)->driver));
}

static void on_ended(void *context, uint64_t task, const json_t *record)
{
    struct fixture *fixture = context;
    assert_non_null(core_task(fixture->core, task)); /* not forgotten yet */
    assert_int_equal(json_integer_value(json_object_get(record, "id")), task);
    tell("ended %d; ", (int)task);
    if (seen.held_at_an_end) {
        struct event hold = driver_event(fixture->driver, EVENT_HOLD, seen.held_at_an_end);
        assert_int_equal(driver_feed(fixture->driver, &hold, NULL), 0);
    }
}

static void on_retry(void *context)
{
    seen.retries++;
}

/* Charges are events, too, which would stand in each list of what happened. */
static struct core *make_core(int n_gpus)
{
    struct core *core = world_core(&policy_exclusive, n_gpus);
    struct core_settings settings = *core_get_settings(core);
    settings.usage_half_life_us = 0;
    core_configure(core, &settings);
    return core;
}

/* ---- */

static int begin_with(void **state, int n_gpus)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    static char store;
    memset(&seen, 0, sizeof seen);
    uv_loop_init(&fixture->loop);
    fixture->core = make_core(n_gpus);
    const struct driver_options options = {
        .loop = &fixture->loop,
        .core = fixture->core,
        .store = (struct store *)(void *)&store,
        .state_dir = "/nowhere",
        .hooks = {.context = fixture,
            .start = on_start,
            .kill = on_kill,
            .stepped = on_stepped,
            .decided = on_decided,
            .record_end = on_record_end,
            .recorded = on_recorded,
            .ended = on_ended,
            .retry = on_retry},
    };
    fixture->driver = driver_create(&options);
    for (int i = 0; i < n_gpus; i++) {
        struct event sample = driver_event(fixture->driver, EVENT_SAMPLE, 0);
        sample.sample = (struct core_sample){.gpu = i,
            .mem_used_bytes = reading_of(0),
            .smact = reading_of(0),
            .utilisation = reading_of(0),
            .external_processes = reading_of(0)};
        assert_int_equal(driver_feed(fixture->driver, &sample, NULL), 0);
    }
    expect_story("");
    *state = fixture;
    return 0;
}

static int begin(void **state)
{
    return begin_with(state, 1);
}

static int begin_with_three(void **state)
{
    return begin_with(state, 3);
}

static int end(void **state)
{
    struct fixture *fixture = *state;
    driver_close(fixture->driver);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    driver_destroy(fixture->driver);
    core_destroy(fixture->core);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    free(fixture);
    return 0;
}

static int feed(struct fixture *fixture, enum event_kind kind, uint64_t task)
{
    struct event event = driver_event(fixture->driver, kind, task);
    if (kind == EVENT_SUBMIT)
        event.submit.request.gpus = 1;
    return driver_feed(fixture->driver, &event, NULL);
}

static void run_task(struct fixture *fixture)
{
    assert_int_equal(feed(fixture, EVENT_SUBMIT, 1), 0);
    expect_story("write SUBMIT PLACE; start 1; write STARTED; ");
}

static void test_a_submission_is_durable_before_it_starts(void **state)
{
    run_task(*state);
}

static void test_an_exit_ends_the_task(void **state)
{
    struct fixture *fixture = *state;
    run_task(fixture);
    assert_int_equal(feed(fixture, EVENT_EXITED, 1), 0);
    expect_story("write EXITED END record; ended 1; ");
    assert_null(core_task(fixture->core, 1));
}

/* The first task ends; the hook holds the third, while the second starts. */
static void test_an_event_of_a_hook_is_written(void **state)
{
    struct fixture *fixture = *state;
    run_task(fixture);
    assert_int_equal(feed(fixture, EVENT_SUBMIT, 2), 0);
    assert_int_equal(feed(fixture, EVENT_SUBMIT, 3), 0);
    expect_story("write SUBMIT; write SUBMIT; ");
    seen.held_at_an_end = 3;
    assert_int_equal(feed(fixture, EVENT_EXITED, 1), 0);
    seen.held_at_an_end = 0;
    expect_story("write EXITED END record PLACE; ended 1; write HOLD; start 2; write STARTED; ");
}

/* Three tasks are placed at once. A request that comes between their starts waits for one of them
 * at most, and starts nothing itself. */
static void test_starts_take_turns_with_requests(void **state)
{
    struct fixture *fixture = *state;
    seen.start_ms = 10;
    driver_begin_batch(fixture->driver);
    for (int task = 1; task <= 3; task++)
        assert_int_equal(feed(fixture, EVENT_SUBMIT, task), 0);
    driver_end_batch(fixture->driver);
    expect_story("write SUBMIT PLACE SUBMIT PLACE SUBMIT PLACE; start 1; write STARTED; ");
    assert_int_equal(feed(fixture, EVENT_SUBMIT, 4), 0);
    expect_story("write SUBMIT; ");
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    expect_story("start 2; write STARTED; ");
    driver_queue_start(fixture->driver, 3); /* it is queued */
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    expect_story("start 3; write STARTED; ");
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    expect_story("");
}

static void test_a_refused_input_leaves_nothing(void **state)
{
    assert_int_equal(feed(*state, EVENT_CANCEL, 9), CORE_NO_SUCH_TASK);
    assert_int_equal(seen.refused, 1);
    expect_story("");
}

/* What an attempt has come to is read, though it cannot be recorded yet. */
static void test_what_was_put_off_does_not_wait_for_the_log(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(feed(fixture, EVENT_SUBMIT, 1), 0);
    expect_story("write SUBMIT PLACE; start 1; write STARTED; ");
    seen.write_fault = -EIO;
    assert_int_equal(feed(fixture, EVENT_SUBMIT, 2), 0);
    assert_true(driver_log_is_broken(fixture->driver));
    seen.does_nothing_at_a_start = true;
    driver_queue_start(fixture->driver, 1);
    driver_queue_start(fixture->driver, 1);
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    expect_story("start 1; ");
    assert_true(driver_log_is_broken(fixture->driver));
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    expect_story("");
}

static void test_nothing_starts_until_the_log_can_be_written(void **state)
{
    struct fixture *fixture = *state;
    seen.write_fault = -EIO;
    assert_int_equal(feed(fixture, EVENT_SUBMIT, 1), 0);
    expect_story("");
    assert_true(driver_log_is_broken(fixture->driver));
    seen.write_fault = 0;
    while (seen.retries == 0 && uv_run(&fixture->loop, UV_RUN_ONCE))
        ;
    assert_int_equal(seen.retries, 1);
    assert_false(driver_log_is_broken(fixture->driver));
    expect_story("write SUBMIT PLACE; start 1; write STARTED; ");
}

static void test_a_running_task_is_killed_also_without_a_log(void **state)
{
    struct fixture *fixture = *state;
    run_task(fixture);
    seen.write_fault = -EIO;
    assert_int_equal(feed(fixture, EVENT_CANCEL, 1), 0);
    expect_story("kill 1; ");
    assert_true(driver_log_is_broken(fixture->driver));
}

static void test_a_full_disk_costs_the_reserve(void **state)
{
    struct fixture *fixture = *state;
    run_task(fixture);
    seen.has_reserve = true;
    seen.write_fault = -ENOSPC;
    assert_int_equal(feed(fixture, EVENT_EXITED, 1), 0);
    expect_story("write EXITED END record; ended 1; ");
    assert_true(driver_reserve_is_in_use(fixture->driver));
    assert_false(driver_log_is_broken(fixture->driver));
}

static void test_a_closed_driver_sets_no_timer(void **state)
{
    struct fixture *fixture = *state;
    driver_close(fixture->driver);
    driver_try_again(fixture->driver);
    assert_int_equal(feed(fixture, EVENT_SUBMIT, 1), 0);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(seen.retries, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_submission_is_durable_before_it_starts, begin, end),
        cmocka_unit_test_setup_teardown(test_an_exit_ends_the_task, begin, end),
        cmocka_unit_test_setup_teardown(test_an_event_of_a_hook_is_written, begin, end),
        cmocka_unit_test_setup_teardown(
            test_starts_take_turns_with_requests, begin_with_three, end),
        cmocka_unit_test_setup_teardown(test_a_refused_input_leaves_nothing, begin, end),
        cmocka_unit_test_setup_teardown(
            test_what_was_put_off_does_not_wait_for_the_log, begin, end),
        cmocka_unit_test_setup_teardown(
            test_nothing_starts_until_the_log_can_be_written, begin, end),
        cmocka_unit_test_setup_teardown(
            test_a_running_task_is_killed_also_without_a_log, begin, end),
        cmocka_unit_test_setup_teardown(test_a_full_disk_costs_the_reserve, begin, end),
        cmocka_unit_test_setup_teardown(test_a_closed_driver_sets_no_timer, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
