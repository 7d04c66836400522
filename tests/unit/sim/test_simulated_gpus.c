/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that begin and end on simulated GPUs: speeds, activity, energy. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "sim/bound.h"
#include "sim/simulated_gpus.h"

struct machine {
    struct gpu_kinds kinds;
    struct cluster cluster;
    struct simulated_gpus gpus;
    const struct running_task *changed[8]; /* whose speed changed, in order */
    int n_changed;
};

static void on_speed_changed(void *context, struct running_task *task)
{
    struct machine *machine = context;
    machine->changed[machine->n_changed++] = task;
}

static int set_up(void **state)
{
    struct machine *machine = calloc(1, sizeof *machine);
    struct fault fault = {""};
    assert_int_equal(gpu_kinds_init(&machine->kinds, &fault), 0);
    assert_int_equal(cluster_parse(&machine->kinds, "2xA100-40GB", &fault, &machine->cluster), 0);
    assert_int_equal(
        simulated_gpus_init(&machine->gpus, &machine->cluster, &machine->kinds.constants), 0);
    machine->gpus.on_speed_changed = on_speed_changed;
    machine->gpus.context = machine;
    *state = machine;
    return 0;
}

static int tear_down(void **state)
{
    struct machine *machine = *state;
    simulated_gpus_fini(&machine->gpus);
    cluster_fini(&machine->cluster);
    free(machine);
    return 0;
}

static struct running_task task_of(uint64_t id, const int *places, int n_places)
{
    struct running_task task = {.id = id, .places = places, .n_places = n_places, .left_s = 100};
    task.demand = (struct demand){NAN, 0.8, NAN, NAN, NAN};
    demand_complete(&task.demand, 300);
    return task;
}

/* The example at the head of simulated_gpus.c. */
static void a_slower_place_slows_the_task_everywhere(void **state)
{
    struct machine *machine = *state;
    struct simulated_gpus *gpus = &machine->gpus;
    const int both[] = {0, 1}, second[] = {1};
    struct running_task a = task_of(1, both, 2), b = task_of(2, second, 1);
    assert_int_equal(simulated_gpus_add_task(gpus, &a, 0), 0);
    double alone = a.speed, activity = gpus->gpus[0].smact, power_w = gpus->gpus[0].power_w;
    assert_true(alone > 0.99 && alone <= 1);
    assert_true(activity > 0.79);
    assert_int_equal(simulated_gpus_add_task(gpus, &b, 10 * SECOND_US), 0);
    assert_true(a.speed < 0.7 * alone);
    assert_true(gpus->gpus[0].smact < 0.7 * activity); /* where nothing else happened */
    assert_true(gpus->gpus[0].power_w < power_w);
    assert_true(fabs(a.left_s - (100 - 10 * alone)) < 1e-9);
    assert_int_equal(machine->n_changed, 3); /* a alone; then both */
    simulated_gpus_remove_task(gpus, &b, 20 * SECOND_US);
    assert_true(fabs(a.speed - alone) < 1e-12);
    assert_true(fabs(gpus->gpus[0].smact - activity) < 1e-9);
    assert_ptr_equal(machine->changed[3], &a);
    assert_int_equal(machine->n_changed, 4);
    simulated_gpus_remove_task(gpus, &a, 30 * SECOND_US);
    assert_true(gpus->gpus[1].smact == 0);
}

/* Of two places one is twice as fast: a task on both is as fast as on the slower one, and leaves
 * the faster one idle for half of the time. */
static void a_task_runs_at_the_speed_of_its_slowest_kind(void **state)
{
    struct machine *machine = *state;
    struct simulated_gpus *gpus = &machine->gpus;
    const int both[] = {0, 1}, first[] = {0};
    struct place_shape *places = machine->cluster.places;
    places[0].speed = 800;
    places[1].speed = 400;
    struct running_task pair = task_of(1, both, 2), fast = task_of(2, first, 1);
    pair.reference_speed = fast.reference_speed = 800;
    assert_int_equal(simulated_gpus_add_task(gpus, &pair, 0), 0);
    assert_true(pair.kind_speed == 0.5);
    assert_true(fabs(gpus->gpus[0].smact - gpus->gpus[1].smact / 2) < 1e-9);
    simulated_gpus_stop_task(gpus, &pair, 10 * SECOND_US);
    assert_true(fabs(pair.left_s - (100 - 5 * pair.speed)) < 1e-9);
    assert_int_equal(simulated_gpus_add_task(gpus, &fast, 10 * SECOND_US), 0);
    assert_true(fast.kind_speed == 1);
    simulated_gpus_remove_task(gpus, &fast, 20 * SECOND_US);
}

static void energy_and_activity_are_summed_between_changes(void **state)
{
    struct machine *machine = *state;
    struct simulated_gpus *gpus = &machine->gpus;
    const int first[] = {0};
    double idle_w = machine->cluster.gpus[0]->idle_w;
    struct running_task task = task_of(1, first, 1);
    assert_int_equal(simulated_gpus_add_task(gpus, &task, 10 * SECOND_US), 0);
    double power_w = gpus->gpus[0].power_w, activity = gpus->gpus[0].smact;
    assert_true(power_w > machine->cluster.gpus[0]->awake_w);
    simulated_gpus_remove_task(gpus, &task, 30 * SECOND_US);
    for (int gpu = 0; gpu < 2; gpu++)
        simulated_gpus_account(gpus, gpu, 40 * SECOND_US);
    assert_true(fabs(gpus->gpus[0].energy_j - (20 * idle_w + 20 * power_w)) < 1e-6);
    assert_true(fabs(gpus->gpus[0].smact_s - 20 * activity) < 1e-9);
    assert_true(fabs(gpus->gpus[1].energy_j - 40 * idle_w) < 1e-6);
    assert_true(gpus->gpus[1].smact_s == 0);
}

static void a_task_that_never_computed_gives_its_memory_back(void **state)
{
    struct machine *machine = *state;
    struct simulated_gpus *gpus = &machine->gpus;
    const int first[] = {0};
    struct running_task task = task_of(7, first, 1);
    assert_int_equal(gpu_memory_take(gpus->places[0].memory, 7, 1 << 30), 0);
    simulated_gpus_remove_task(gpus, &task, SECOND_US);
    assert_int_equal(gpus->places[0].memory->used_bytes, 0);
    assert_int_equal(gpus->gpus[0].n_residents, 0);
    assert_int_equal(machine->n_changed, 0);
}

/* A compute instance has the memory of its GPU instance with the others. */
static void compute_instances_have_one_memory(void **state)
{
    struct machine *machine = *state;
    struct simulated_gpus *gpus = &machine->gpus;
    int64_t capacity = gpus->places[1].memory->capacity_bytes;
    assert_int_equal(gpu_memory_take(gpus->places[1].memory, 7, capacity / 2), 0);
    assert_int_equal(gpu_memory_take(gpus->places[0].memory, 8, capacity), 0);
    assert_int_equal(gpu_memory_take(gpus->places[2].memory, 9, capacity), GPU_MEMORY_FULL);
    assert_int_equal(gpu_memory_take(gpus->places[2].memory, 9, capacity / 4), 0);
    assert_int_equal(gpu_memory_of(gpus->places[1].memory, 9), capacity / 4);
    double all = bound_start(&machine->cluster).capacity[2];
    assert_true(all == (double)(capacity + machine->cluster.identities[0].mem_total_bytes));
}

static int set_up_instances(void **state)
{
    struct machine *machine = calloc(1, sizeof *machine);
    *state = machine;
    return gpu_kinds_init(&machine->kinds, NULL) < 0 ||
           cluster_parse(&machine->kinds, "A100-40GB:3g.20gb+1c.3g.20gb+1c.3g.20gb", NULL,
               &machine->cluster) < 0 ||
           simulated_gpus_init(&machine->gpus, &machine->cluster, &machine->kinds.constants) < 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_slower_place_slows_the_task_everywhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_task_runs_at_the_speed_of_its_slowest_kind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            compute_instances_have_one_memory, set_up_instances, tear_down),
        cmocka_unit_test_setup_teardown(
            energy_and_activity_are_summed_between_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_task_that_never_computed_gives_its_memory_back, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
