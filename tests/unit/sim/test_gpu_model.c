/* The laws of sharing: numbers worked out by hand from the formulae in gpu_model.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/units.h"
#include "sim/gpu_model.h"

static const struct gpu_laws laws = {
    .context_bytes = 500 * MIB, .ramp_s = 20, .switch_cost = 0.03, .bandwidth_cost = 0.05};

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
    gpu_share(&laws, 1, 1, &one, 1);
    assert_near(one.speed, 1);
    gpu_share(&laws, 0.45, 0.5, &one, 1);
    assert_near(one.speed, 0.5);
    gpu_share(&laws, 1, 0.125, &one, 1);
    assert_near(one.speed, 0.25);
}

static void test_mps(void **state)
{
    struct sharer fits[] = {sharer(1, 0.4, 0.2, true), sharer(1, 0.5, 0.4, true)};
    gpu_share(&laws, 1, 1, fits, 2);
    assert_near(fits[0].speed, 1 / 1.02);
    assert_near(fits[1].speed, 1 / 1.01);
    struct sharer crowd[] = {sharer(1, 0.8, 0.4, true), sharer(1, 0.8, 0.4, true)};
    gpu_share(&laws, 1, 1, crowd, 2);
    assert_near(crowd[0].speed, 1 / (1.6 * 1.02));
}

static void test_turns(void **state)
{
    struct sharer two[] = {sharer(0.4, 0.2, 0, false), sharer(0.5, 0.2, 0, false)};
    gpu_share(&laws, 1, 1, two, 2);
    assert_near(two[0].speed, 1 / 1.03);
    two[1].demand.gract = 1;
    gpu_share(&laws, 1, 1, two, 2);
    assert_near(two[0].speed, 1 / (1.4 * 1.03));
    struct sharer mixed[] = {sharer(0.9, 0.5, 0, true), sharer(0.9, 0.5, 0, true), sharer(0.5, 0.5, 0, false)};
    gpu_share(&laws, 1, 1, mixed, 3);
    assert_near(mixed[0].speed, 1 / (1.5 * 1.03)); /* clients of MPS are one process among the others */
    assert_near(mixed[2].speed, 1 / (1.5 * 1.03));
}

static void test_completion(void **state)
{
    struct demand demand = {NAN, 0.5, NAN, NAN, NAN};
    gpu_demand_complete(&demand, 190);
    assert_near(demand.gract, 0.65);
    assert_near(demand.smocc, 0.225);
    assert_near(demand.dram, 0.25);
    assert_near(demand.power_w, 190 * (0.25 * 0.65 + 0.75 * 0.5));
}

static void test_parts(void **state)
{
    int64_t sum = 0;
    for (int i = 0; i < MEMORY_PARTS; i++)
        sum += gpu_memory_part(&laws, 8500 * MIB, i);
    assert_int_equal(sum, 8500 * MIB);
    assert_int_equal(gpu_memory_part(&laws, 8500 * MIB, 0), 500 * MIB);
    assert_int_equal(gpu_memory_part(&laws, 8500 * MIB, 6), 2000 * MIB);
    assert_int_equal(gpu_memory_part(&laws, 100 * MIB, 0), 100 * MIB);
    assert_near(gpu_memory_due_s(&laws, 1000, MEMORY_PARTS - 1), 20);
    assert_near(gpu_memory_due_s(&laws, 10, MEMORY_PARTS - 1), 5);
    assert_near(gpu_memory_due_s(&laws, 10, 0), 0);
}

static void test_holes(void **state)
{
    struct gpu_memory memory = {.capacity_bytes = 100 * MIB};
    assert_int_equal(gpu_memory_take(&memory, 1, 30 * MIB), 0);
    assert_int_equal(gpu_memory_take(&memory, 2, 19 * MIB + 1), 0); /* 20 MiB */
    assert_int_equal(gpu_memory_take(&memory, 3, 30 * MIB), 0);
    assert_int_equal(memory.used_bytes, 80 * MIB);
    gpu_memory_release(&memory, 2);
    assert_int_equal(gpu_memory_take(&memory, 4, 30 * MIB), GPU_MEMORY_FULL); /* 40 are free, in two holes */
    assert_int_equal(gpu_memory_take(&memory, 4, 20 * MIB), 0);
    assert_int_equal(memory.segments[1].owner, 4); /* first fit */
    assert_int_equal(gpu_memory_take(&memory, 4, 20 * MIB), 0);
    assert_int_equal(gpu_memory_of(&memory, 4), 40 * MIB);
    assert_int_equal(gpu_memory_take(&memory, 5, 1), GPU_MEMORY_FULL);
    gpu_memory_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),      cmocka_unit_test(test_mps),   cmocka_unit_test(test_turns),
        cmocka_unit_test(test_completion), cmocka_unit_test(test_parts), cmocka_unit_test(test_holes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
