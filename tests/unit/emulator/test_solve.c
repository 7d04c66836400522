/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speeds and rates of the emulated GPUs. How fast tasks are beside each other is tested in
 * tests/unit/sharing; here, that the emulator asks that model the right question.
 */
#include "machine.h"

#include <math.h>

static const struct seat gpu0 = {0, 0}, gpu1 = {1, 0};

static struct demand demand_of(double smact)
{
    struct demand demand = {NAN, smact, NAN, NAN, NAN};

    demand_complete(&demand, 190);
    return demand;
}

/* A process of SM activity `smact` on the seats; `server`: of the MPS server of that pid, or 0. */
static struct process *join(
    struct world *world, const struct seat *seats, int count, double smact, pid_t server)
{
    struct process *p = world_join(world, ROLE_TRAINING, seats, count);

    assert_non_null(p);
    p->demand = demand_of(smact);
    p->mps_server = server;
    world_solve(world);
    return p;
}

static void assert_speeds_of_the_model(
    double sms, double bandwidth, struct process **processes, int count)
{
    struct sharer sharers[8];

    for (int i = 0; i < count; i++)
        sharers[i] = (struct sharer){.demand = processes[i]->demand,
            .mps = processes[i]->mps_server != 0,
            .cap = processes[i]->share};
    interference_solve(&interference_measured, sms, bandwidth, sharers, count);
    for (int i = 0; i < count; i++)
        assert_float_equal(processes[i]->speed, sharers[i].speed, 1e-9);
}

static void speeds_are_those_of_the_model(void **state)
{
    struct machine m = machine_make("A100-40GB", 1);
    struct process *p[4];

    world_enter(m.world);
    p[0] = join(m.world, &gpu0, 1, 0.9, 0);
    assert_float_equal(p[0]->speed, 1, 1e-9);
    p[1] = join(m.world, &gpu0, 1, 0.4, 0);
    assert_speeds_of_the_model(1, 1, p, 2);
    p[2] = join(m.world, &gpu0, 1, 0.3, 77);
    p[3] = join(m.world, &gpu0, 1, 0.6, 77);
    p[3]->share = 0.3;
    world_solve(m.world);
    assert_speeds_of_the_model(1, 1, p, 4);
    assert_true(p[3]->speed < 0.5);
    world_leave(m.world);
    machine_end(&m);
}

/* 3g.20gb: 42 of 108 SMs, half of the bandwidth. */
static void an_instance_has_sms_and_bandwidth_of_its_own(void **state)
{
    struct machine m = machine_make("A100-40GB:3g.20gb+2g.10gb", 1);
    struct seat large = {0, 1}, small = {0, 2};
    struct process *p[2];

    world_enter(m.world);
    p[0] = join(m.world, &large, 1, 0.3, 0);
    p[0]->demand.dram = 0.9; /* more than the instance has, unlike its SMs */
    p[1] = join(m.world, &small, 1, 0.1, 0);
    world_solve(m.world);
    assert_speeds_of_the_model(42. / 108, 0.5, &p[0], 1);
    assert_speeds_of_the_model(28. / 108, 0.25, &p[1], 1);
    assert_true(p[0]->speed < 0.6);
    const struct activity *part = &world_unit(m.world, large)->rate;
    assert_float_equal(part->dram, 0.9 * p[0]->speed / 0.5, 1e-9);
    const struct activity *whole = &world_unit(m.world, gpu0)->rate;
    assert_float_equal(whole->dram, 0.9 * p[0]->speed + p[1]->demand.dram * p[1]->speed, 1e-9);
    assert_float_equal(whole->smact, 0.3 * p[0]->speed + 0.1 * p[1]->speed, 1e-9);
    world_leave(m.world);
    machine_end(&m);
}

/* Kernels with cold caches hold their SMs for longer, and draw power for longer. */
static void activity_is_that_of_the_model(void **state)
{
    struct machine m = machine_make("A100-40GB", 1);

    world_enter(m.world);
    struct process *p = join(m.world, &gpu0, 1, 0.5, 0);
    join(m.world, &gpu0, 1, 0.5, 0);
    double longer = 2 * p->speed * (1 + interference_measured.cold_cost);
    const struct activity *rate = &world_unit(m.world, gpu0)->rate;
    assert_float_equal(rate->smact, 0.5 * longer, 1e-9);
    assert_float_equal(rate->power_w, 85 + p->demand.power_w * longer, 1e-6);
    world_leave(m.world);
    machine_end(&m);
}

static void a_process_without_kernels_costs_nothing(void **state)
{
    struct machine m = machine_make("A100-40GB", 1);

    world_enter(m.world);
    struct process *p = join(m.world, &gpu0, 1, 0.9, 0);
    assert_non_null(world_join(m.world, ROLE_TRAINING, &gpu0, 1));
    world_solve(m.world);
    assert_float_equal(p->speed, 1, 1e-9);
    world_leave(m.world);
    machine_end(&m);
}

static void two_gpus_are_as_fast_as_the_slower(void **state)
{
    struct machine m = machine_make("2xA100-40GB", 1);
    const struct seat both[] = {gpu0, gpu1};
    struct process *p[2];

    world_enter(m.world);
    p[0] = join(m.world, both, 2, 0.8, 0);
    p[1] = join(m.world, &gpu1, 1, 0.8, 0);
    assert_speeds_of_the_model(1, 1, p, 2);
    assert_float_equal(world_unit(m.world, gpu0)->rate.smact, 0.8 * p[0]->speed, 1e-9);
    uint32_t seen = p[0]->wake;
    p[1]->demand = (struct demand){0};
    world_solve(m.world);
    assert_float_equal(p[0]->speed, 1, 1e-9);
    assert_int_not_equal(p[0]->wake, seen);
    world_leave(m.world);
    machine_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_are_those_of_the_model),
        cmocka_unit_test(an_instance_has_sms_and_bandwidth_of_its_own),
        cmocka_unit_test(activity_is_that_of_the_model),
        cmocka_unit_test(a_process_without_kernels_costs_nothing),
        cmocka_unit_test(two_gpus_are_as_fast_as_the_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
