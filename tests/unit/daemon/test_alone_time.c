/* SPDX-License-Identifier: Apache-2.0 */
/* What a task's time on its GPUs comes to alone: sums that can be checked by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/alone_time.h"

/* The example of alone_time.c: 60 s alone, 20 s of start, 480 steps in 80 s. */
static struct alone_time example(void)
{
    return (struct alone_time){.held_s = 160,
        .shared_s = 100,
        .own_work_s = 60,
        .steps = 480,
        .steps_s = 80,
        .steps_work_s = 40,
        .rest_s = 20,
        .rest_work_s = 18};
}

static void its_steps_are_measured(void **state)
{
    struct alone_time time = example();
    struct speed_alone alone = {.per_s = reading_of(10)};
    struct alone_estimate e = alone_time_estimate(&time, &alone);
    assert_float_equal(e.alone_s, 126, 1e-9);
    assert_float_equal(e.measured_s, 80, 1e-9);
    assert_float_equal(e.unknown_s, 0, 1e-9);
    assert_float_equal(e.low_s, 60 + 0.98 * 48 + 0.78 * 18, 1e-9);
    assert_float_equal(e.high_s, 60 + 1.02 * 48 + 20, 1e-9); /* it cannot be faster than alone */
}

/* It was alone as a client of MPS, which lets it do 0.8 of what a plain process does. */
static void alone_is_a_plain_process(void **state)
{
    struct alone_time time = example();
    struct speed_alone alone = {.per_s = reading_of(8), .mode_speed = 0.8};
    assert_float_equal(alone_time_estimate(&time, &alone).alone_s, 126, 1e-9);
}

static void without_a_speed_alone_it_is_predicted(void **state)
{
    struct alone_time time = example();
    struct alone_estimate e = alone_time_estimate(&time, NULL);
    assert_float_equal(e.alone_s, 60 + 40 + 18, 1e-9);
    assert_float_equal(e.measured_s, 0, 1e-9);
    assert_float_equal(e.low_s, 60 + 0.78 * 58, 1e-9);
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
    alone_time_load(two, none);
    alone_time_load(two, short_);
    alone_time_load(two, NULL);
    assert_null(two->alone_time);
    alone_time_load(two, saved);
    json_t *before = alone_time_json(one), *after = alone_time_json(two);
    assert_true(json_equal(before, after));
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
        cmocka_unit_test(alone_is_a_plain_process),
        cmocka_unit_test(without_a_speed_alone_it_is_predicted),
        cmocka_unit_test(what_is_unknown_is_left_out),
        cmocka_unit_test(the_file_keeps_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
