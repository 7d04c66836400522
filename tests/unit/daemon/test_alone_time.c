/* SPDX-License-Identifier: Apache-2.0 */
/* What a task's time on its GPUs comes to alone: sums that can be checked by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/alone_time.h"
#include "policy/policies.h"
#include "pretend_driver.h"

/* The example of alone_time.c: 60 s alone, 20 s of start, 480 steps in 80 s. */
static struct alone_time example(void)
{
    return (struct alone_time){.held_s = 160,
        .shared_s = 100,
        .own_s = 60,
        .steps = 480,
        .steps_s = 80,
        .steps_work_s = 40,
        .rest_s = 20,
        .rest_work_s = 18};
}

static void its_steps_are_measured(void **state)
{
    struct alone_time time = example();
    struct speed_alone alone = {.per_s = reading_of(10), .windows = 2};
    struct alone_estimate e = alone_time_estimate(&time, &alone);
    assert_float_equal(e.alone_s, 126, 1e-9);
    assert_float_equal(e.measured_s, 80, 1e-9);
    assert_float_equal(e.unknown_s, 0, 1e-9);
    assert_float_equal(e.low_s, 60 + 0.98 * 48 + 0.78 * 18, 1e-9);
    assert_float_equal(e.high_s, 60 + 1.02 * 48 + 20, 1e-9); /* it cannot be faster than alone */
}

/* Of windows that differ by 4 % in the mean: two standard errors are 2 * 1.25 * 4 % / root of n. */
static void windows_that_differ_widen_it(void **state)
{
    static const struct {
        int windows;
        double error;
    } cases[] = {{0, 0.15}, {1, 0.15}, {4, 0.07}, {1000, 0.02 + 0.1 / 2.8284271247}};
    struct alone_time time = {.held_s = 100, .shared_s = 100, .steps = 500, .steps_s = 100};
    for (int i = 0; i < 4; i++) {
        struct speed_alone alone = {
            .per_s = reading_of(10), .windows = cases[i].windows, .spread = 0.04};
        struct alone_estimate e = alone_time_estimate(&time, &alone);
        assert_float_equal(e.low_s, 50 * (1 - cases[i].error), 1e-6);
        assert_float_equal(e.high_s, 50 * (1 + cases[i].error), 1e-6);
    }
}

/* A plain process is predicted to take 0.8 of its time alone: that is a bound, not the estimate. */
static void the_price_of_mps_is_in_the_interval(void **state)
{
    struct alone_time time = example();
    struct speed_alone alone = {.per_s = reading_of(10), .windows = 2};
    time.price_s = 0.2 * 160;
    struct alone_estimate e = alone_time_estimate(&time, &alone);
    assert_float_equal(e.alone_s, 126, 1e-9);
    assert_float_equal(e.low_s, 0.8 * (60 + 0.98 * 48 + 0.78 * 18), 1e-9);
    assert_float_equal(e.high_s, 60 + 1.02 * 48 + 20, 1e-9);
}

/* It was never beside another: sharing saved and cost nothing, whatever MPS takes. */
static void alone_all_the_time_it_saves_nothing(void **state)
{
    struct alone_time time = {.held_s = 160, .own_s = 160, .price_s = 32};
    struct alone_estimate e = alone_time_estimate(&time, NULL);
    assert_float_equal(e.alone_s, 160, 1e-9);
    assert_float_equal(e.low_s, 160, 1e-9);
    assert_float_equal(e.high_s, 160, 1e-9);
}

/* `n` tasks of 1 GiB on the GPU: a second has passed, so the core has waited for this sample. */
static void sample_gpu(int n)
{
    struct task_memory tasks[2] = {{.task = 1, .mem_used_bytes = reading_of(GIB)},
        {.task = 2, .mem_used_bytes = reading_of(GIB)}};
    struct event event = driver_event(pretend.driver, EVENT_SAMPLE, 0);
    event.time_us += SECOND_US;
    event.sample = (struct core_sample){.mem_used_bytes = reading_of((double)n * GIB),
        .smact = reading_of(0.3),
        .utilisation = reading_of(0.3),
        .external_processes = reading_of(0),
        .tasks = tasks,
        .n_tasks = n};
    assert_int_equal(driver_feed(pretend.driver, &event, NULL), 0);
}

/* Notes of the real core: the client of MPS `n` of them, for 100 s. Returns its estimate. */
static struct alone_estimate note_clients(int n)
{
    pretend_driver_begin(1);
    struct core_settings settings = *core_get_settings(pretend.core);
    settings.settle_us = 0;
    core_configure(pretend.core, &settings);
    const struct task_request request = {.gpus = 1,
        .policy = &policy_first_fit,
        .sharing = SHARING_MPS,
        .need = {NEED_DECLARED, GIB},
        .expect = {.smact = reading_of(0.6)}};
    for (int id = 1; id <= n; id++) {
        assert_int_equal(feed_request((uint64_t)id, request), 0);
        assert_int_equal(feed(EVENT_STARTED, (uint64_t)id), 0);
        sample_gpu(id);
    }
    assert_int_equal(core_task(pretend.core, (uint64_t)n)->state, TASK_RUNNING);
    struct job *job = jobs_find(pretend.jobs, (uint64_t)n);
    int64_t since_us = task_runs_since_us(core_task(pretend.core, (uint64_t)n));
    alone_time_note_all(pretend.core, pretend.jobs, since_us + 100 * SECOND_US);
    struct alone_estimate e = alone_time_estimate(job->alone_time, NULL);
    pretend_driver_end();
    return e;
}

static void a_client_alone_counts_as_itself(void **state)
{
    struct alone_estimate e = note_clients(1);
    assert_float_equal(e.held_s, 100, 1e-6);
    assert_float_equal(e.shared_s, 0, 1e-6);
    assert_float_equal(e.alone_s, 100, 1e-6);
    assert_float_equal(e.low_s, 100, 1e-6);
}

/* What the others delay it is predicted, relative to a client that is alone. */
static void a_client_beside_another_has_an_interval(void **state)
{
    struct alone_estimate e = note_clients(2);
    assert_float_equal(e.shared_s, 100, 1e-6);
    assert_true(e.alone_s < 95 && e.alone_s > 50);
    assert_true(e.low_s < 0.78 * e.alone_s); /* 22 %, and the price of MPS */
    assert_true(e.high_s > e.alone_s && e.high_s <= 100);
}

static void without_a_speed_alone_it_is_predicted(void **state)
{
    struct alone_time time = example();
    struct alone_estimate e = alone_time_estimate(&time, NULL);
    assert_float_equal(e.alone_s, 60 + 40 + 18, 1e-9);
    assert_float_equal(e.measured_s, 0, 1e-9);
    assert_float_equal(e.low_s, 60 + 0.78 * 58, 1e-9);
}

/* A task counts its steps itself: more than it can have made are not measured, and no sum is more
 * than the time that it was there. */
static void more_than_there_was_time_for_is_predicted(void **state)
{
    static const struct {
        double steps, steps_s, per_s, spread;
        bool is_measured;
    } cases[] = {
        {812, 80, 10, 0, true}, /* 81 s of work in 80 s: within the error */
        {1e6, 80, 10, 0, false}, {1e300, 80, 1e-300, 0, false}, {480, 0, 10, 0, false},
        {480, -1e9, 10, 0, false},
        {480, 1e12, 10, 0, true}, /* 48 s of work, in more than the 100 s that there were */
        {1e9, 1e12, 10, 0, false}, {1e6, 80, 10, 1e12, true}, /* windows of any speed: any work */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct alone_time time = example();
        time.steps = cases[i].steps;
        time.rest_s += time.steps_s - cases[i].steps_s;
        time.steps_s = cases[i].steps_s;
        struct speed_alone alone = {
            .per_s = reading_of(cases[i].per_s), .windows = 8, .spread = cases[i].spread};
        struct alone_estimate e = alone_time_estimate(&time, &alone);
        assert_int_equal(e.measured_s > 0, cases[i].is_measured);
        assert_true(e.measured_s <= 100);
        assert_true(e.low_s >= 0 && e.low_s <= e.alone_s);
        assert_true(e.alone_s <= e.high_s && e.high_s <= 160);
        if (!cases[i].is_measured)
            assert_float_equal(e.alone_s, 60 + 40 + 18, 1e-9); /* as it was predicted */
    }
}

static void what_is_unknown_is_left_out(void **state)
{
    struct alone_time time = example();
    time.steps_work_s = 0;
    time.steps_unknown_s = 80;
    time.rest_s = time.rest_work_s = 0;
    time.unknown_s = 20;
    struct alone_estimate e = alone_time_estimate(&time, NULL);
    assert_float_equal(e.alone_s, 60, 1e-9);
    assert_float_equal(e.unknown_s, 100, 1e-9);
    struct speed_alone alone = {.per_s = reading_of(10)};
    e = alone_time_estimate(&time, &alone); /* its steps are known after all */
    assert_float_equal(e.alone_s, 108, 1e-9);
    assert_float_equal(e.unknown_s, 20, 1e-9);
}

static void the_file_keeps_it(void **state)
{
    struct job *one = job_create(1, 0, NULL), *two = job_create(2, 0, NULL);
    struct alone_time time = example();
    json_t *none = alone_time_save(one), *null = alone_time_json(one);
    assert_true(json_is_null(none) && json_is_null(null));
    one->alone_time = malloc(sizeof time);
    *one->alone_time = time;
    json_t *saved = alone_time_save(one), *short_ = json_pack("[f]", 1.0);
    json_t *older = json_deep_copy(saved);
    json_array_remove(older, json_array_size(older) - 1);
    alone_time_load(two, none);
    alone_time_load(two, short_);
    alone_time_load(two, NULL);
    assert_null(two->alone_time);
    alone_time_load(two, saved);
    json_t *before = alone_time_json(one), *after = alone_time_json(two);
    assert_true(json_equal(before, after));
    struct job *three = job_create(3, 0, NULL);
    alone_time_load(three, older); /* without the price of MPS, which earlier versions lack */
    assert_float_equal(three->alone_time->rest_work_s, time.rest_work_s, 1e-9);
    job_free(three);
    json_decref(older);
    json_decref(before);
    json_decref(after);
    json_decref(saved);
    json_decref(short_);
    json_decref(none);
    json_decref(null);
    job_free(one);
    job_free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_steps_are_measured),
        cmocka_unit_test(windows_that_differ_widen_it),
        cmocka_unit_test(the_price_of_mps_is_in_the_interval),
        cmocka_unit_test(alone_all_the_time_it_saves_nothing),
        cmocka_unit_test(a_client_alone_counts_as_itself),
        cmocka_unit_test(a_client_beside_another_has_an_interval),
        cmocka_unit_test(without_a_speed_alone_it_is_predicted),
        cmocka_unit_test(more_than_there_was_time_for_is_predicted),
        cmocka_unit_test(what_is_unknown_is_left_out),
        cmocka_unit_test(the_file_keeps_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
