/* SPDX-License-Identifier: Apache-2.0 */
/* The activity of one of several equal tasks, from that of all together. */
#include "core/equal_activity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "core/gpu_sharers.h"

enum { MOST = GPU_SHARERS_MAX + 1 };

struct place {
    struct gpu_view gpu;
    struct resident residents[MOST];
};

/* n tasks that have been sampled enough at this level, the last of which came at second 1. */
static void set_place(struct place *place, int n, enum sharing sharing, double level)
{
    *place = (struct place){.gpu = {.residents = place->residents,
                                .n_residents = n,
                                .external_processes = reading_of(0),
                                .mix_since_us = 1}};
    for (int i = 0; i < n; i++)
        place->residents[i] = (struct resident){
            .sharing = sharing, .samples_risen = RISEN_SAMPLES_ENOUGH};
    for (int i = 0; i <= RISEN_SAMPLES_ENOUGH; i++)
        assert_int_equal(window_add(&place->gpu.smact, (1 + i) * SECOND_US, 90 * SECOND_US,
                             reading_of(i ? level : level / 2)),
            0); /* the first one is of the time before, too */
}

static struct reading ask(struct place *place)
{
    struct reading each = equal_activity(&place->gpu, NULL);
    window_fini(&place->gpu.smact);
    return each;
}

static void assert_each(int n, enum sharing sharing, double level, double expected)
{
    struct place place;
    set_place(&place, n, sharing, level);
    struct reading each = ask(&place);
    assert_true(each.valid);
    assert_float_equal(each.value, expected, 0.01);
}

static double model_level(int n, enum sharing sharing, double each)
{
    struct sharer sharers[GPU_SHARERS_MAX];
    const struct expectation expect = {.smact = reading_of(each)};
    for (int i = 0; i < n; i++)
        gpu_sharer_set(&sharers[i], &expect, sharing, 0);
    interference_solve(&interference_measured, 1, 1, sharers, n);
    return interference_activity(&interference_measured, 1, 1, sharers, n).smact;
}

static void the_model_is_turned_round(void **state)
{
    (void)state;
    assert_each(1, SHARING_STREAMS, 0.35, 0.35);
    assert_each(7, SHARING_MPS, 0.85, 0.15);
    assert_each(3, SHARING_MPS, model_level(3, SHARING_MPS, 0.4), 0.4);
    assert_each(2, SHARING_STREAMS, model_level(2, SHARING_STREAMS, 0.3), 0.3);
    assert_each(4, SHARING_MPS, 0, 0);
}

static void what_the_samples_do_not_show_is_unknown(void **state)
{
    struct place place;
    (void)state;
    set_place(&place, 0, SHARING_MPS, 0.5);
    assert_false(ask(&place).valid);
    set_place(&place, 7, SHARING_MPS, 0.995); /* a full GPU */
    assert_false(ask(&place).valid);
    set_place(&place, 2, SHARING_MPS, 0.5);
    place.residents[1].samples_risen--;
    assert_false(ask(&place).valid);
    set_place(&place, 2, SHARING_MPS, 0.5);
    place.residents[0].is_stopped = true;
    assert_false(ask(&place).valid);
    set_place(&place, 2, SHARING_MPS, 0.5);
    place.gpu.mix_since_us = 2 * SECOND_US; /* a task has come since */
    assert_false(ask(&place).valid);
    set_place(&place, 2, SHARING_MPS, 0.5);
    window_fini(&place.gpu.smact);
    place.gpu.smact = (struct window){0};
    for (int i = 1; i <= RISEN_SAMPLES_ENOUGH; i++)
        assert_int_equal(
            window_add(&place.gpu.smact, i * SECOND_US, 90 * SECOND_US, reading_of(0.5)), 0);
    assert_false(ask(&place).valid);
    set_place(&place, 2, SHARING_MPS, 0.5);
    place.gpu.external_processes = reading_of(1);
    assert_false(ask(&place).valid);
    set_place(&place, 2, SHARING_MPS, 0.5);
    place.gpu.external_processes = READING_NONE;
    assert_false(ask(&place).valid);
    set_place(&place, MOST, SHARING_MPS, 0.5);
    assert_false(ask(&place).valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_is_turned_round),
        cmocka_unit_test(what_the_samples_do_not_show_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
