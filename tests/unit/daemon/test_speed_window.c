/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of a training's steps: a training is played second by second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/preload/speed_window.h"

struct training {
    struct speed_alone alone;
    struct job_steps steps;
    int64_t now_us, since_us;
    int windows; /* that ended */
    bool is_probe;
    struct speed_report report; /* of the last one */
};

static void begin(struct training *training)
{
    *training = (struct training){.now_us = SECOND_US};
    training->steps.alone = &training->alone;
}

static void play(struct training *training, int seconds, double per_s, bool is_alone)
{
    for (int i = 0; i < seconds; i++) {
        training->now_us += SECOND_US;
        training->steps.total += per_s;
        training->steps.timed_s += per_s > 0;
        training->windows += speed_window_note(&training->steps, is_alone, training->is_probe,
            training->since_us, training->now_us, &training->report);
    }
}

/* The tasks on its GPUs change. */
static void change_mix(struct training *training)
{
    training->since_us = training->now_us + 1;
}

static void beside_another_it_is_slower(void **state)
{
    struct training training;
    begin(&training);
    play(&training, 21, 8, true); /* the first second begins the first window */
    assert_int_equal(training.windows, 4);
    assert_float_equal(training.alone.per_s.value, 8, 1e-9);
    change_mix(&training);
    play(&training, 6, 5, false);
    assert_int_equal(training.windows, 5);
    assert_float_equal(training.report.slowdown.value, 8.0 / 5, 1e-9);
    assert_float_equal(training.alone.per_s.value, 8, 1e-9); /* not measured beside others */
}

static void the_spread_of_its_windows_is_known(void **state)
{
    struct training training;
    begin(&training);
    play(&training, 6, 8, true);
    assert_float_equal(training.alone.spread, 0, 1e-6);
    play(&training, 5, 10, true);
    assert_float_equal(training.alone.per_s.value, 9, 1e-6);
    assert_float_equal(training.alone.spread, 10.0 / 9 - 1, 1e-6);
    play(&training, 5, 9, true); /* on the mean */
    assert_float_equal(training.alone.spread, (10.0 / 9 - 1) / 2, 1e-6);
}

static void each_window_is_of_one_mix(void **state)
{
    struct training training;
    begin(&training);
    play(&training, 6, 8, true);
    for (int i = 0; i < 10; i++) {
        change_mix(&training);
        play(&training, 4, 5, false);
    }
    assert_int_equal(training.windows, 1);
}

static void without_a_speed_alone_it_is_unknown(void **state)
{
    struct training training;
    begin(&training);
    play(&training, 6, 5, false);
    assert_int_equal(training.windows, 1);
    assert_false(training.report.slowdown.valid);
}

/* That of an earlier run holds until a window alone; one that is slower than now is of other
 * steps. */
static void an_earlier_run_has_its_speed_alone(void **state)
{
    struct training training;
    begin(&training);
    training.alone.per_s = reading_of(10);
    play(&training, 6, 5, false);
    assert_float_equal(training.report.slowdown.value, 2, 1e-9);
    play(&training, 6, 12, false);
    assert_false(training.report.slowdown.valid);
    assert_false(training.alone.per_s.valid);
    begin(&training);
    training.alone.per_s = reading_of(10);
    play(&training, 6, 8, true);
    assert_float_equal(training.alone.per_s.value, 8, 1e-9); /* the earlier one counts no more */
}

static void a_window_has_four_steps(void **state)
{
    struct training training;
    begin(&training);
    training.alone.per_s = reading_of(1);
    play(&training, 7, 0.5, false);
    assert_int_equal(training.windows, 0);
    play(&training, 2, 0.5, false);
    assert_int_equal(training.windows, 1);
    assert_float_equal(training.report.slowdown.value, 2, 1e-9);
}

/* An evaluation, perhaps: nothing is said of its speed then. */
static void without_steps_it_is_unknown(void **state)
{
    struct training training;
    begin(&training);
    training.alone.per_s = reading_of(1);
    play(&training, 602, 0, false);
    assert_int_equal(training.windows, 1);
    assert_false(training.report.slowdown.valid);
}

static void other_steps_begin_anew(void **state)
{
    struct training training;
    begin(&training);
    play(&training, 6, 8, true);
    training.alone.units++;
    play(&training, 6, 5, false);
    assert_false(training.report.slowdown.valid);
    assert_false(training.alone.per_s.valid);
}

/* The mean follows a drift: the last of many windows has an eighth of the weight. */
static void speeds_alone_drift(void **state)
{
    struct training training;
    begin(&training);
    play(&training, 501, 8, true);
    play(&training, 5, 16, true);
    assert_float_equal(training.alone.per_s.value, 9, 1e-6);
}

/* A probe is over as soon as 25 steps were made. */
static void a_probe_is_shorter(void **state)
{
    struct training training;
    begin(&training);
    play(&training, 6, 5, false);
    assert_false(training.report.slowdown.valid);
    assert_float_equal(training.report.step_us.value, 0.2 * SECOND_US, 1e-6);
    change_mix(&training);
    training.is_probe = true;
    play(&training, 3, 10, true);
    assert_int_equal(training.windows, 1);
    play(&training, 1, 10, true);
    assert_int_equal(training.windows, 2);
    assert_float_equal(training.report.slowdown.value, 1, 1e-9);
    change_mix(&training);
    training.is_probe = false;
    play(&training, 6, 5, false);
    assert_float_equal(training.report.slowdown.value, 2, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beside_another_it_is_slower),
        cmocka_unit_test(the_spread_of_its_windows_is_known),
        cmocka_unit_test(each_window_is_of_one_mix),
        cmocka_unit_test(without_a_speed_alone_it_is_unknown),
        cmocka_unit_test(an_earlier_run_has_its_speed_alone),
        cmocka_unit_test(a_window_has_four_steps),
        cmocka_unit_test(without_steps_it_is_unknown),
        cmocka_unit_test(other_steps_begin_anew),
        cmocka_unit_test(speeds_alone_drift),
        cmocka_unit_test(a_probe_is_shorter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
