/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emulator/sharing.h"

static struct member member_of(double smact, bool mps)
{
    struct member m = {
        .demand = {.gract = -1, .smact = smact, .smocc = -1, .dram = -1, .power_w = -1},
        .mps = mps,
        .share = 1};

    sharing_complete(&m.demand, 350);
    return m;
}

/* How many solo speeds `count` equal tasks reach together. */
static double throughput(double smact, bool mps, int count)
{
    struct member members[8];
    double sum = 0;

    for (int i = 0; i < count; i++)
        members[i] = member_of(smact, mps);
    sharing_solve(1, members, count);
    for (int i = 0; i < count; i++)
        sum += members[i].speed;
    return sum;
}

static void alone_is_full_speed(void **state)
{
    assert_float_equal(throughput(0.9, false, 1), 1, 1e-9);
    assert_float_equal(throughput(0.9, true, 1), 1, 1e-9);
}

/* EuroMLSys 2024, figures 1 to 3: the ranges below are theirs. */
static void agrees_with_what_was_measured(void **state)
{
    double small = 0.3, medium = 0.5, large = 0.8;

    assert_in_range((int)(100 * 7 / throughput(small, true, 7)), 200, 250);
    assert_true(throughput(small, false, 7) < throughput(small, true, 7) - 0.5);
    assert_in_range((int)(100 * 3 / throughput(medium, true, 3)), 150, 210);
    assert_true(throughput(medium, true, 2) > 1.9);
    assert_in_range((int)(100 * throughput(large, true, 2)), 120, 130);
    assert_in_range((int)(100 * throughput(large, false, 2)), 95, 108);
}

static void more_neighbours_never_help_one(void **state)
{
    for (int mps = 0; mps < 2; mps++)
        for (int n = 1; n < 8; n++)
            for (double smact = 0.05; smact <= 1; smact += 0.05)
                assert_true(throughput(smact, mps, n + 1) / (n + 1) <=
                            throughput(smact, mps, n) / n + 1e-12);
}

static void a_slice_limits_and_a_small_task_fits_it(void **state)
{
    struct member large = member_of(0.8, false), small = member_of(0.1, false);
    double slice = 14. / 108;

    sharing_solve(slice, &large, 1);
    assert_float_equal(large.speed, slice / 0.8, 1e-9);
    sharing_solve(slice, &small, 1);
    assert_float_equal(small.speed, 1, 1e-9);
}

static void a_thread_percentage_caps_one_client(void **state)
{
    struct member members[] = {member_of(0.6, true), member_of(0.2, true)};

    members[0].share = 0.3;
    sharing_solve(1, members, 2);
    assert_true(members[0].speed <= 0.5);
    assert_true(members[1].speed > 0.95);
}

static void mps_clients_take_one_turn_together(void **state)
{
    struct member mixed[] = {member_of(0.3, true), member_of(0.3, true), member_of(0.3, false)};
    struct member turns[] = {member_of(0.3, false), member_of(0.3, false), member_of(0.3, false)};

    sharing_solve(1, mixed, 3);
    sharing_solve(1, turns, 3);
    assert_true(mixed[2].speed > turns[2].speed);
    assert_true(mixed[2].speed < 1);
}

static void an_idle_process_costs_nothing(void **state)
{
    struct member members[] = {member_of(0.9, false), {.share = 1}};

    sharing_solve(1, members, 2);
    assert_float_equal(members[0].speed, 1, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_is_full_speed),
        cmocka_unit_test(agrees_with_what_was_measured),
        cmocka_unit_test(more_neighbours_never_help_one),
        cmocka_unit_test(a_slice_limits_and_a_small_task_fits_it),
        cmocka_unit_test(a_thread_percentage_caps_one_client),
        cmocka_unit_test(mps_clients_take_one_turn_together),
        cmocka_unit_test(an_idle_process_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
