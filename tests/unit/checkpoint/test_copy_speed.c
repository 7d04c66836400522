/* SPDX-License-Identifier: Apache-2.0 */
/* Learned seconds per GiB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "checkpoint/copy_speed.h"

static void test_default_is_an_h200(void **state)
{
    struct copy_speed speed = copy_speed_default();
    int64_t us = copy_speed_expect_us(&speed, NULL, COPY_TO_HOST, 48 * GIB);
    assert_in_range(us, 30 * SECOND_US, 35 * SECOND_US);
    us = copy_speed_expect_us(&speed, NULL, COPY_TO_GPU, 48 * GIB);
    assert_in_range(us, 9 * SECOND_US, 11 * SECOND_US);
}

/* With the context, which goes by the driver. */
static void test_default_of_the_carrier(void **state)
{
    struct copy_speed speed = copy_speed_default();
    assert_in_range(
        copy_speed_expect_us(&speed, NULL, CARRY_TO_HOST, 66 * GIB / 10), 850 * MS_US, 950 * MS_US);
    assert_in_range(
        copy_speed_expect_us(&speed, NULL, CARRY_TO_GPU, 66 * GIB / 10), 480 * MS_US, 560 * MS_US);
}

static void test_learns_what_it_sees(void **state)
{
    struct copy_speed speed = copy_speed_default();
    for (int i = 0; i < 20; i++)
        copy_speed_learn(&speed, NULL, COPY_TO_HOST, 10 * GIB, 40 * SECOND_US);
    assert_float_equal(speed.machine.s_per_gib[COPY_TO_HOST], 4.0, 0.01);
    assert_int_equal(speed.machine.learned[COPY_TO_HOST], 20);
    assert_float_equal(speed.machine.s_per_gib[COPY_TO_GPU], 0.20, 1e-9);
}

/* A copy that was held up, or a process that lies about it, is no reason to give up slots of all
 * users. */
static void test_one_copy_moves_little(void **state)
{
    struct copy_speed speed = copy_speed_default();
    double before = speed.machine.s_per_gib[CARRY_TO_HOST];
    copy_speed_learn(&speed, NULL, CARRY_TO_HOST, 10 * GIB, 300 * SECOND_US);
    assert_true(speed.machine.s_per_gib[CARRY_TO_HOST] < 2 * before);
    copy_speed_learn(&speed, NULL, CARRY_TO_HOST, 10 * GIB, 1);
    assert_true(speed.machine.s_per_gib[CARRY_TO_HOST] > before / 2);
}

static void test_small_and_impossible_copies_teach_nothing(void **state)
{
    struct copy_speed speed = copy_speed_default();
    copy_speed_learn(&speed, NULL, COPY_TO_HOST, GIB, 40 * SECOND_US);
    copy_speed_learn(&speed, NULL, COPY_TO_HOST, 10 * GIB, 0);
    copy_speed_learn(&speed, NULL, COPY_TO_HOST, 10 * GIB, -5);
    assert_int_equal(speed.machine.learned[COPY_TO_HOST], 0);
    copy_speed_learn(&speed, NULL, COPY_TO_HOST, 10 * GIB, INT64_MAX);
    assert_true(speed.machine.s_per_gib[COPY_TO_HOST] < 50);
}

static void test_the_limit_is_far_beyond_what_is_expected(void **state)
{
    struct copy_speed speed = copy_speed_default();
    for (int64_t bytes = 0; bytes < 200 * GIB; bytes += 25 * GIB)
        assert_true(copy_speed_limit_us(&speed, NULL, COPY_TO_HOST, bytes) >=
                    9 * copy_speed_expect_us(&speed, NULL, COPY_TO_HOST, bytes));
}

static void test_is_read_as_written(void **state)
{
    struct copy_speed speed = copy_speed_default();
    char text[COPY_SPEED_TEXT_SIZE];
    copy_speed_learn(&speed, NULL, COPY_TO_GPU, 10 * GIB, 5 * SECOND_US);
    copy_speed_learn(&speed, NULL, CARRY_TO_HOST, 10 * GIB, 1 * SECOND_US);
    size_t n = copy_speed_write(&speed, text, sizeof text);
    assert_true(n > 0);
    struct copy_speed again = copy_speed_read((struct span){text, n});
    assert_float_equal(
        again.machine.s_per_gib[COPY_TO_GPU], speed.machine.s_per_gib[COPY_TO_GPU], 1e-4);
    assert_int_equal(again.machine.learned[COPY_TO_GPU], 1);
    assert_float_equal(again.machine.s_per_gib[CARRY_TO_HOST], 0.047 + 0.3 * (0.1 - 0.047), 1e-4);
    assert_int_equal(again.machine.learned[CARRY_TO_HOST], 1);
    assert_int_equal(again.machine.learned[COPY_TO_HOST], 0);
    assert_int_equal(copy_speed_write(&speed, text, 5), 0);
}

static void test_a_damaged_file_is_the_default(void **state)
{
    struct copy_speed speed = copy_speed_read(
        span_of("to-host nan 3\nto-gpu -1 2\nto-host 0.5\nelse 1 1\n\nto-gpu 1e9 1\n"
                "GPU-1 to-host 0 1\nGPU-1 to-host 0.5 0\nGPU-1 else 0.5 1\nGPU-1 to-host\n"
                "GPU-1 a b to-host 0.5 1"));
    assert_float_equal(speed.machine.s_per_gib[COPY_TO_HOST], 0.67, 1e-9);
    assert_float_equal(speed.machine.s_per_gib[COPY_TO_GPU], 0.20, 1e-9);
    assert_int_equal(speed.n_gpus, 0);
}

/* ---- GPUs on different links ---- */

static double s_per_gib(const struct copy_speed *speed, const char *uuid, enum copy_way way)
{
    return (double)(copy_speed_expect_us(speed, uuid, way, GIB) -
                    copy_speed_expect_us(speed, uuid, way, 0)) /
           1e6;
}

/* Three times as slow. A GPU that was not seen is expected to be between the two. */
static void test_each_gpu_has_its_own(void **state)
{
    struct copy_speed speed = copy_speed_default();
    for (int i = 0; i < 30; i++) {
        copy_speed_learn(&speed, "GPU-near", CARRY_TO_HOST, 100 * GIB, 5 * SECOND_US);
        copy_speed_learn(&speed, "GPU-far", CARRY_TO_HOST, 100 * GIB, 15 * SECOND_US);
    }
    assert_float_equal(s_per_gib(&speed, "GPU-near", CARRY_TO_HOST), 0.05, 0.002);
    assert_float_equal(s_per_gib(&speed, "GPU-far", CARRY_TO_HOST), 0.15, 0.002);
    double unseen = s_per_gib(&speed, "GPU-new", CARRY_TO_HOST);
    assert_true(unseen > 0.06 && unseen < 0.14);
    assert_true(copy_speed_is_known(&speed, "GPU-far", CARRY_TO_HOST));
    assert_false(copy_speed_is_known(&speed, "GPU-far", CARRY_TO_GPU));
    assert_false(copy_speed_is_known(&speed, "GPU-new", CARRY_TO_HOST));
    assert_true(copy_speed_limit_us(&speed, "GPU-far", CARRY_TO_HOST, 100 * GIB) >
                copy_speed_limit_us(&speed, "GPU-near", CARRY_TO_HOST, 100 * GIB));
}

/* Over NVLink, ten times as fast as to the host; one that is held up moves little here, too. */
static void test_a_neighbour_is_learned(void **state)
{
    struct copy_speed speed = copy_speed_default();
    assert_float_equal(s_per_gib(&speed, "GPU-1", CARRY_TO_NEIGHBOUR), 0.005, 1e-6);
    copy_speed_learn(&speed, "GPU-1", CARRY_TO_NEIGHBOUR, 10 * GIB, 300 * SECOND_US);
    assert_true(s_per_gib(&speed, "GPU-1", CARRY_TO_NEIGHBOUR) < 0.01);
    for (int i = 0; i < 30; i++)
        copy_speed_learn(&speed, "GPU-1", CARRY_TO_NEIGHBOUR, 100 * GIB, 200 * MS_US);
    assert_float_equal(s_per_gib(&speed, "GPU-1", CARRY_TO_NEIGHBOUR), 0.002, 0.0002);
    assert_float_equal(s_per_gib(&speed, "GPU-1", CARRY_TO_HOST), 0.047, 1e-6);
}

static void test_gpus_are_read_as_written(void **state)
{
    struct copy_speed speed = copy_speed_default();
    char text[COPY_SPEED_TEXT_SIZE];
    copy_speed_learn(&speed, "GPU-1", COPY_TO_GPU, 10 * GIB, 5 * SECOND_US);
    copy_speed_learn(&speed, "GPU-2", CARRY_TO_NEIGHBOUR, 10 * GIB, SECOND_US);
    size_t n = copy_speed_write(&speed, text, sizeof text);
    struct copy_speed again = copy_speed_read((struct span){text, n});
    assert_int_equal(again.n_gpus, 2);
    for (int way = 0; way < COPY_WAYS; way++)
        for (int i = 0; i < 2; i++)
            assert_float_equal(s_per_gib(&again, speed.gpus[i].uuid, way),
                s_per_gib(&speed, speed.gpus[i].uuid, way), 1e-3);
    assert_true(copy_speed_is_known(&again, "GPU-2", CARRY_TO_NEIGHBOUR));
    assert_false(copy_speed_is_known(&again, "GPU-1", CARRY_TO_NEIGHBOUR));
}

/* MIG instances come and go, with new UUIDs: the file stays small. */
static void test_many_gpus(void **state)
{
    struct copy_speed speed = copy_speed_default();
    char text[COPY_SPEED_TEXT_SIZE], uuid[GPU_UUID_SIZE];
    for (int i = 0; i < 1000; i++) {
        snprintf(uuid, sizeof uuid, "MIG-00000000-0000-0000-0000-%012d", i);
        for (int way = 0; way < COPY_WAYS; way++)
            copy_speed_learn(&speed, uuid, (enum copy_way)way, 10 * GIB, 400 * SECOND_US);
    }
    assert_int_equal(speed.n_gpus, COPY_SPEED_GPUS);
    assert_true(copy_speed_is_known(&speed, uuid, COPY_TO_HOST));
    assert_false(
        copy_speed_is_known(&speed, "MIG-00000000-0000-0000-0000-000000000000", COPY_TO_HOST));
    size_t n = copy_speed_write(&speed, text, sizeof text);
    assert_true(n > 0);
    assert_int_equal(copy_speed_read((struct span){text, n}).n_gpus, COPY_SPEED_GPUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_is_an_h200),
        cmocka_unit_test(test_default_of_the_carrier),
        cmocka_unit_test(test_learns_what_it_sees),
        cmocka_unit_test(test_one_copy_moves_little),
        cmocka_unit_test(test_small_and_impossible_copies_teach_nothing),
        cmocka_unit_test(test_the_limit_is_far_beyond_what_is_expected),
        cmocka_unit_test(test_is_read_as_written),
        cmocka_unit_test(test_a_damaged_file_is_the_default),
        cmocka_unit_test(test_each_gpu_has_its_own),
        cmocka_unit_test(test_a_neighbour_is_learned),
        cmocka_unit_test(test_gpus_are_read_as_written),
        cmocka_unit_test(test_many_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
