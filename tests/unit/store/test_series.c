/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of records: steps, means, what is forgotten, and what is left after a crash. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "store/series.h"

#define T0 (1000000 * SECOND_US)

static const struct series_ring rings[] = {
    {SECOND_US, 10 * SECOND_US}, {5 * SECOND_US, 100 * SECOND_US}};
static const enum series_figure figures[] = {SERIES_MEAN, SERIES_MAX};
static const struct series_form form = {rings, 2, figures, 2};

struct place {
    char path[64];
    struct series *series;
    int n;
    int64_t at_us[256];
    struct reading first[256], second[256];
};

static void open_series(struct place *place)
{
    struct fault fault = {""};
    if (series_open(place->path, &form, &fault, &place->series) < 0)
        fail_msg("%s", fault.text);
}

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    snprintf(place->path, sizeof place->path, "/tmp/colloc-test-series.%d", (int)getpid());
    unlink(place->path);
    open_series(place);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    series_close(place->series);
    unlink(place->path);
    free(place);
    return 0;
}

static void keep(void *context, int64_t at_us, const struct reading *values)
{
    struct place *place = context;
    place->at_us[place->n] = at_us;
    place->first[place->n] = values[0];
    place->second[place->n++] = values[1];
}

static int64_t read_since(struct place *place, double since_s, double now_s)
{
    int64_t step_us = 0;
    place->n = 0;
    assert_int_equal(series_read(place->series, T0 + (int64_t)(since_s * SECOND_US),
                         T0 + (int64_t)(now_s * SECOND_US), keep, place, &step_us),
        0);
    return step_us;
}

static void add(struct place *place, double second, double value)
{
    struct reading both[] = {reading_of(value), reading_of(value)};
    if (isnan(value))
        both[0] = both[1] = READING_NONE;
    assert_int_equal(series_add(place->series, T0 + (int64_t)(second * SECOND_US), both), 0);
}

static void a_step_has_its_mean_and_its_most(void **state)
{
    struct place *place = *state;
    add(place, 0.1, 1);
    add(place, 0.4, 5);
    add(place, 0.8, NAN);
    add(place, 1.2, NAN);
    add(place, 2.2, 7);
    assert_int_equal(read_since(place, 0, 3), SECOND_US);
    assert_int_equal(place->n, 2);
    assert_int_equal(place->at_us[0], T0);
    assert_float_equal(place->first[0].value, 3, 0);
    assert_float_equal(place->second[0].value, 5, 0);
    assert_false(place->first[1].valid);
}

static void old_records_make_room_and_the_coarse_ones_stay(void **state)
{
    struct place *place = *state;
    for (int i = 0; i <= 60; i++)
        add(place, i, i);
    assert_int_equal(read_since(place, 51, 60), SECOND_US);
    assert_int_equal(place->n, 9);
    assert_float_equal(place->first[0].value, 51, 0);
    assert_int_equal(read_since(place, 0, 60), 5 * SECOND_US);
    assert_int_equal(place->n, 12);
    assert_float_equal(place->first[0].value, 2, 0);
    assert_float_equal(place->second[11].value, 59, 0);
    assert_int_equal(read_since(place, -1000, 60), 5 * SECOND_US);
    assert_int_equal(place->n, 12);
}

static void a_gap_has_no_records_of_old(void **state)
{
    struct place *place = *state;
    for (int i = 0; i < 10; i++)
        add(place, i, i);
    add(place, 25, 25);
    add(place, 26, 26);
    read_since(place, 17, 26);
    assert_int_equal(place->n, 1);
    assert_float_equal(place->first[0].value, 25, 0);
}

static void it_goes_on_where_it_was(void **state)
{
    struct place *place = *state;
    add(place, 1, 1);
    add(place, 2, 2);
    series_close(place->series);
    open_series(place);
    add(place, 3, 3);
    add(place, 4, 4);
    read_since(place, 0, 4);
    assert_int_equal(place->n, 3);
}

/* Returns how many records of the finest ring another reader of the file finds. */
static int count_written(const struct place *place)
{
    struct place other = {.n = 0};
    memcpy(other.path, place->path, sizeof other.path);
    open_series(&other);
    read_since(&other, 0, 9);
    series_close(other.series);
    return other.n;
}

static void short_steps_are_written_together(void **state)
{
    struct place *place = *state;
    for (int i = 0; i <= 4; i++)
        add(place, i, i);
    assert_int_equal(count_written(place), 0);
    read_since(place, 0, 9);
    assert_int_equal(place->n, 4);
    assert_float_equal(place->first[3].value, 3, 0);
    add(place, 5, 5);
    assert_int_equal(count_written(place), 5);
    add(place, 6, 6);
    assert_int_equal(count_written(place), 5);
    add(place, 8, 8);
    add(place, 9, 9);
    assert_int_equal(count_written(place), 7); /* 7 is missing: 5 and 6 are written before it */
    add(place, 10, 10);
    assert_int_equal(count_written(place), 9); /* 9 is at the end of the ring */
}

static void what_is_half_written_is_left_out(void **state)
{
    struct place *place = *state;
    for (int i = 0; i <= 5; i++)
        add(place, i, i);
    struct stat status;
    assert_int_equal(stat(place->path, &status), 0);
    FILE *file = fopen(place->path, "r+");
    const off_t record = 8 + 4 + 4 + 2 * 4, rings_begin = status.st_size - 30 * record;
    int64_t slot = T0 / SECOND_US % 10 + 2;
    fseeko(file, rings_begin + slot * record + 18, SEEK_SET);
    fputs("??", file);
    fclose(file);
    read_since(place, 0, 5);
    assert_int_equal(place->n, 4);
    assert_float_equal(place->first[2].value, 3, 0);
}

static void a_file_of_another_form_is_begun_anew(void **state)
{
    struct place *place = *state;
    add(place, 1, 1);
    add(place, 2, 2);
    series_close(place->series);
    FILE *file = fopen(place->path, "w");
    fputs("something else", file);
    fclose(file);
    open_series(place);
    read_since(place, 0, 4);
    assert_int_equal(place->n, 0);
    add(place, 3, 3);
    add(place, 4, 4);
    read_since(place, 0, 4);
    assert_int_equal(place->n, 1);
}

static void its_size_is_bounded(void **state)
{
    struct place *place = *state;
    struct stat before, after;
    stat(place->path, &before);
    for (int i = 0; i < 1000; i++)
        add(place, i, i);
    stat(place->path, &after);
    assert_int_equal(before.st_size, after.st_size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_step_has_its_mean_and_its_most, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            old_records_make_room_and_the_coarse_ones_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_gap_has_no_records_of_old, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_goes_on_where_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(short_steps_are_written_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_half_written_is_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_of_another_form_is_begun_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(its_size_is_bounded, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
