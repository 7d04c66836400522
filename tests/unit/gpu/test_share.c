/* Whose work and whose energy: that it all adds up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/share.h"

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9)
        fail_msg("%g, not %g", value, expected);
}

static void test_one_alone_has_it_all(void **state)
{
    struct gpu_holder holders[] = {{.processes = 0}, {.processes = 2}};

    assert_false(share_weigh(holders, 2));
    assert_near(holders[0].weight, 0);
    assert_near(holders[1].weight, 1);
}

static void test_nobody_has_a_process(void **state)
{
    struct gpu_holder holders[] = {{.processes = 0}, {.processes = 0}};

    assert_false(share_weigh(holders, 2));
    assert_near(holders[0].weight + holders[1].weight, 0);
}

static void test_by_the_time_they_had_kernels(void **state)
{
    struct gpu_holder holders[] = {
        {.processes = 1, .sm_utilisation = reading_of(0.6)},
        {.processes = 3, .sm_utilisation = reading_of(0.2)},
        {.processes = 1, .sm_utilisation = reading_of(0)},
    };

    assert_false(share_weigh(holders, 3));
    assert_near(holders[0].weight, 0.75);
    assert_near(holders[1].weight, 0.25);
    assert_near(holders[2].weight, 0);
}

static void test_evenly_when_the_driver_does_not_tell(void **state)
{
    struct gpu_holder holders[] = {{.processes = 1, .sm_utilisation = reading_of(0.6)}, {.processes = 3}};

    assert_true(share_weigh(holders, 2));
    assert_near(holders[0].weight, 0.25);
    assert_near(holders[1].weight, 0.75);
}

static void test_evenly_when_it_tells_of_no_kernels(void **state)
{
    struct gpu_holder holders[] = {{.processes = 1, .sm_utilisation = reading_of(0)},
                                   {.processes = 1, .sm_utilisation = reading_of(0)}};

    assert_true(share_weigh(holders, 2));
    assert_near(holders[0].weight, 0.5);
}

static void test_evenly_under_mps(void **state)
{
    struct gpu_holder holders[] = {{.processes = 1, .is_mps = true, .sm_utilisation = reading_of(0.9)},
                                   {.processes = 1, .is_mps = true, .sm_utilisation = reading_of(0.1)}};

    assert_true(share_weigh(holders, 2));
    assert_near(holders[0].weight, 0.5);
    assert_near(holders[1].weight, 0.5);
}

static void test_energy_adds_up(void **state)
{
    double a = share_energy_j(0.75, 2, 300, 100), b = share_energy_j(0.25, 2, 300, 100);

    assert_near(a, 50 + 150);
    assert_near(b, 50 + 50);
    assert_near(share_energy_j(0, 2, 300, 100), 50);
    assert_near(share_energy_j(1, 1, 80, 100), 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_alone_has_it_all),
        cmocka_unit_test(test_nobody_has_a_process),
        cmocka_unit_test(test_by_the_time_they_had_kernels),
        cmocka_unit_test(test_evenly_when_the_driver_does_not_tell),
        cmocka_unit_test(test_evenly_when_it_tells_of_no_kernels),
        cmocka_unit_test(test_evenly_under_mps),
        cmocka_unit_test(test_energy_adds_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
