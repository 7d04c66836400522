/* SPDX-License-Identifier: Apache-2.0 */
/* The interference model: numbers worked out by hand from the formulae in interference.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sharing/interference_cache.h"

static const struct interference_constants constants = {.switch_cost = 0.08,
    .cold_cost = 0.02,
    .launch_cost = 0.4,
    .weight_power = 1,
    .cache_cost = 0.1,
    .traffic_cost = 0.5};

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9)
        fail_msg("%.12f is not %.12f", value, expected);
}

static struct sharer sharer(double gract, double smact, double dram, bool mps)
{
    return (struct sharer){.demand = {.gract = gract, .smact = smact, .dram = dram}, .mps = mps};
}

static void assert_close(double value, double expected)
{
    if (fabs(value / expected - 1) > 1e-4)
        fail_msg("%.9f is not about %.9f", value, expected);
}

static void test_alone(void **state)
{
    struct sharer one = sharer(1, 0.9, 0.5, false);
    interference_solve(&constants, 1, 1, &one, 1);
    assert_near(one.speed, 1);
    interference_solve(&constants, 0.45, 0.5, &one, 1);
    assert_near(one.speed, 0.5);
    interference_solve(&constants, 1, 0.125, &one, 1);
    assert_near(one.speed, 0.25);
    one = sharer(0.5, 0.4, 0, false);
    interference_solve(&constants, 0.4, 1, &one, 1);
    assert_near(one.speed, 1 / 1.5); /* kernels take twice as long, the gaps between them do not */
    one = sharer(0, 0, 0, false);
    interference_solve(&constants, 1, 1, &one, 1);
    assert_near(one.speed, 1);
}

static void test_lone_client(void **state)
{
    struct sharer one = sharer(0.75, 0.5, 0.2, true);
    interference_solve(&constants, 1, 1, &one, 1);
    assert_near(one.speed, 1 / 1.1); /* 0.4 of a quarter */
    one = sharer(1, 0.9, 0.2, true);
    interference_solve(&constants, 0.45, 1, &one, 1);
    assert_near(one.speed, 0.5);
}

static void test_turns(void **state)
{
    struct sharer two[] = {sharer(0.5, 0.2, 0, false), sharer(0.5, 0.4, 0, false)};
    interference_solve(&constants, 1, 1, two, 2);
    double present = 0.55 / 1.05;
    assert_close(two[0].speed, 1 / (0.5 + 0.55 * (1 + present)));
    assert_close(two[1].speed, two[0].speed);
    struct sharer full[7];
    for (int i = 0; i < 7; i++)
        full[i] = sharer(1, 0.2 + 0.1 * i, 0, false);
    interference_solve(&constants, 1, 1, full, 7);
    for (int i = 0; i < 7; i++)
        assert_close(full[i].speed, 1 / 7.7); /* time slices are alike, whatever runs in them */
}

static void test_side_by_side(void **state)
{
    struct sharer two[] = {sharer(1, 0.5, 0.2, true), sharer(1, 0.5, 0.2, true)};
    interference_solve(&constants, 1, 1, two, 2);
    double work = 0.5 * 1.05, present = work / (0.5 + work);
    assert_close(two[0].speed, 1 / (0.5 + work * (1 + present)));
    interference_solve(&constants, 0.5, 1, two, 2); /* half of the SMs: each fills them */
    assert_close(two[0].speed, 1 / 2.1);
    struct sharer hungry[] = {sharer(1, 0.2, 1, true), sharer(1, 0.2, 1, true)};
    interference_solve(&constants, 1, 1, hungry, 2); /* bandwidth is scarcer */
    assert_close(hungry[0].speed, 1 / 2.1);
}

static void test_weight(void **state)
{
    struct sharer two[] = {sharer(1, 0.9, 0.2, true), sharer(0.6, 0.3, 0.1, true)};
    interference_solve(&constants, 1, 1, two, 2);
    double heavy = 0.9 * 1.025, light = 0.3 * 1.075, ratio = 9 / (0.3 / 0.7);
    assert_close(
        two[0].speed, 1 / (0.1 + heavy * (1 + light / 1.16 / ratio))); /* floor: 1 + 0.4 * 0.4 */
    assert_close(two[1].speed, 1 / (0.7 + light * (1 + ratio * heavy / (0.1 + heavy))));
    two[0].mps = two[1].mps = false;
    interference_solve(&constants, 1, 1, two, 2);
    assert_true(two[1].speed > 0.5); /* by time slices it is not delayed like this */
}

static void test_clients_among_processes(void **state)
{
    struct sharer three[] = {sharer(1, 0.1, 0, true), sharer(1, 0.9, 0, false),
        sharer(1, 0.1, 0, true)},
                  pair[2];
    interference_solve(&constants, 1, 1, three, 3);
    pair[0] = three[0];
    pair[1] = three[2];
    interference_solve(&constants, 1, 1, pair, 2);
    assert_close(three[1].speed, 1 / 2.2); /* all clients are one process beside it */
    assert_close(three[0].speed, pair[0].speed / 2.2);
}

static double random_part(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / (1 << 24);
}

/* For any mix: no more is served than there is, no task is faster than alone, the order does not
 * matter. */
static void test_always(void **state)
{
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        struct sharer some[8], turned[8];
        int n = 1 + (int)(random_part(&seed) * 8);
        double part = round % 3 ? 1 : 0.125 + 0.875 * random_part(&seed), smact = 0, dram = 0;
        for (int i = 0; i < n; i++)
            some[i] = sharer(random_part(&seed), random_part(&seed), random_part(&seed),
                random_part(&seed) < 0.5);
        for (int i = 0; i < n; i++)
            turned[i] = some[n - 1 - i];
        interference_solve(&interference_measured, part, part, some, n);
        interference_solve(&interference_measured, part, part, turned, n);
        for (int i = 0; i < n; i++) {
            struct sharer alone = some[i];
            interference_solve(&interference_measured, part, part, &alone, 1);
            assert_true(some[i].speed > 0 && some[i].speed <= alone.speed + 1e-9);
            assert_true(fabs(some[i].speed / turned[n - 1 - i].speed - 1) < 1e-3);
            smact += some[i].demand.smact * some[i].speed;
            dram += some[i].demand.dram * some[i].speed;
        }
        assert_true(smact <= part + 1e-9 && dram <= part + 1e-9);
    }
}

static void test_completion(void **state)
{
    struct demand demand = {NAN, 0.5, NAN, NAN, NAN};
    demand_complete(&demand, 190);
    assert_near(demand.gract, 0.65);
    assert_near(demand.smocc, 0.165);
    assert_near(demand.dram, 0.12);
    assert_near(demand.power_w, 190 * (0.25 * 0.65 + 0.75 * 0.5));
}

static void test_activity(void **state)
{
    struct sharer two[] = {{.demand = {1, 0.6, 0.2, 0.4, 100}, .speed = 0.5},
        {.demand = {0.8, 0.4, 0.3, 0.2, 200}, .speed = 0.5}};
    struct demand now = interference_activity(&constants, 1, 1, two, 2);
    assert_near(now.gract, 0.918);
    assert_near(now.smact, 0.51);
    assert_near(now.dram, 0.306);
    assert_near(now.power_w, 153);
    two[0].mps = two[1].mps = true;
    now = interference_activity(&constants, 1, 1, two, 2);
    assert_near(now.smact, 0.3 * 1.04 + 0.2 * 1.06);
    assert_near(now.smocc, 0.1 * 1.04 + 0.15 * 1.06);
    assert_near(now.dram, 0.2 * 1.2 + 0.1 * 1.3);
    assert_near(now.power_w, 50 * 1.04 + 100 * 1.06);
    assert_near(interference_activity(&constants, 0.25, 1, two, 2).smact, 0.25);
    assert_near(interference_activity(&constants, 1, 1, two, 1).dram, 0.2);
    assert_near(interference_activity(&constants, 1, 1, two, 0).power_w, 0);
}

static void test_names(void **state)
{
    struct interference_constants own = interference_measured;
    *interference_constant(&own, "switch_cost") = 0.5;
    assert_near(own.switch_cost, 0.5);
    *interference_constant(&own, "grip") = 0.25; /* check-words: alias */
    assert_near(own.weight_power, 0.25);
    assert_null(interference_constant(&own, "speed"));
}

/* More mixes than the table has slots, each solved several times. */
static void what_was_solved_before_is_the_same(void **state)
{
    enum { KINDS = 40, MOST = 10, ASKED = 30000 };
    const struct interference_constants others = {.switch_cost = 0.2, .cache_cost = 0.3};
    uint64_t random = 1;
    for (int asked = 0; asked < ASKED; asked++) {
        struct sharer once[MOST] = {0}, again[MOST] = {0};
        int n = 1 + asked % MOST;
        for (int i = 0; i < n; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            double part = (double)(random >> 33) / 0x1p31;
            int kind = (int)(part * KINDS);
            once[i] = (struct sharer){.mps = kind % 3 != 0, .cap = kind % 7 == 0 ? 0.7 : 0};
            once[i].demand = (struct demand){NAN, (kind + 1.0) / KINDS, NAN, NAN, 0};
            demand_complete(&once[i].demand, 0);
            again[i] = once[i];
        }
        const struct interference_constants *now = asked / 1000 % 2 ? &interference_measured
                                                                    : &others;
        interference_solve(now, 1, 1, once, n);
        double speeds[MOST];
        interference_speeds_cached(now, again, n, speeds);
        for (int i = 0; i < n; i++)
            assert_memory_equal(&once[i].speed, &speeds[i], sizeof(double));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_lone_client),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_weight),
        cmocka_unit_test(test_clients_among_processes),
        cmocka_unit_test(test_always),
        cmocka_unit_test(test_completion),
        cmocka_unit_test(test_activity),
        cmocka_unit_test(test_names),
        cmocka_unit_test(what_was_solved_before_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
