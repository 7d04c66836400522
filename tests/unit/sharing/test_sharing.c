/* The laws of sharing: numbers worked out by hand from the formulae in sharing.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sharing/sharing.h"

static const struct sharing_laws laws = {.switch_cost = 0.03, .bandwidth_cost = 0.05};

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9)
        fail_msg("%.12f is not %.12f", value, expected);
}

static struct sharer sharer(double gract, double smact, double dram, bool mps)
{
    return (struct sharer){.demand = {.gract = gract, .smact = smact, .dram = dram}, .mps = mps};
}

static void test_alone(void **state)
{
    struct sharer one = sharer(1, 0.9, 0.5, true);
    sharing_solve(&laws, 1, 1, &one, 1);
    assert_near(one.speed, 1);
    sharing_solve(&laws, 0.45, 0.5, &one, 1);
    assert_near(one.speed, 0.5);
    sharing_solve(&laws, 1, 0.125, &one, 1);
    assert_near(one.speed, 0.25);
}

static void test_mps(void **state)
{
    struct sharer fits[] = {sharer(1, 0.4, 0.2, true), sharer(1, 0.5, 0.4, true)};
    sharing_solve(&laws, 1, 1, fits, 2);
    assert_near(fits[0].speed, 1 / 1.02);
    assert_near(fits[1].speed, 1 / 1.01);
    struct sharer crowd[] = {sharer(1, 0.8, 0.4, true), sharer(1, 0.8, 0.4, true)};
    sharing_solve(&laws, 1, 1, crowd, 2);
    assert_near(crowd[0].speed, 1 / (1.6 * 1.02));
}

static void test_turns(void **state)
{
    struct sharer two[] = {sharer(0.4, 0.2, 0, false), sharer(0.5, 0.2, 0, false)};
    sharing_solve(&laws, 1, 1, two, 2);
    assert_near(two[0].speed, 1 / 1.03);
    two[1].demand.gract = 1;
    sharing_solve(&laws, 1, 1, two, 2);
    assert_near(two[0].speed, 1 / (1.4 * 1.03));
    struct sharer mixed[] = {sharer(0.9, 0.5, 0, true), sharer(0.9, 0.5, 0, true), sharer(0.5, 0.5, 0, false)};
    sharing_solve(&laws, 1, 1, mixed, 3);
    assert_near(mixed[0].speed, 1 / (1.5 * 1.03)); /* clients of MPS are one process among the others */
    assert_near(mixed[2].speed, 1 / (1.5 * 1.03));
}

static void test_completion(void **state)
{
    struct demand demand = {NAN, 0.5, NAN, NAN, NAN};
    demand_complete(&demand, 190);
    assert_near(demand.gract, 0.65);
    assert_near(demand.smocc, 0.225);
    assert_near(demand.dram, 0.25);
    assert_near(demand.power_w, 190 * (0.25 * 0.65 + 0.75 * 0.5));
}

static void test_activity(void **state)
{
    struct sharer two[] = {{.demand = {1, 0.6, 0.2, 0.4, 100}, .speed = 0.5},
                           {.demand = {0.8, 0.9, 0.3, 0.2, 200}, .speed = 1}};
    struct demand now = sharing_activity(&laws, 1, 1, two, 2);
    assert_near(now.gract, 1);
    assert_near(now.smact, 1);
    assert_near(now.smocc, 0.4);
    assert_near(now.dram, 0.4);
    assert_near(now.power_w, 250);
    assert_near(sharing_activity(&laws, 1, 1, two, 0).power_w, 0);
}

static void test_names(void **state)
{
    struct sharing_laws own = sharing_laws_measured;
    *sharing_law(&own, "switch_cost") = 0.5;
    assert_near(own.switch_cost, 0.5);
    assert_null(sharing_law(&own, "speed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),      cmocka_unit_test(test_mps),      cmocka_unit_test(test_turns),
        cmocka_unit_test(test_completion), cmocka_unit_test(test_activity), cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
