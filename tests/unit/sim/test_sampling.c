/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples of a simulated GPU the core gets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "policy/policies.h"
#include "sim/sampling.h"

enum { WAKE_SAMPLE, WAKE_PLAN, WAKE_BUSY };

static const int first_place[] = {0};

/* One GPU, on which an external load may begin: the core knows no task. */
struct machine {
    struct gpu_kinds kinds;
    struct cluster cluster;
    struct simulated_gpus gpus;
    struct running_task load;
    struct core_settings settings;
    struct sampling sampling;
    struct sim_world world;
    struct sim_observer observer;
    struct sim *sim;
    char seconds[256]; /* when samples were taken: "0 100 " */
};

static void on_speed_changed(void *context, struct running_task *task)
{
}

static void on_start(void *context, struct sim *sim, const struct task *task)
{
    fail();
}

static void on_event(void *context, struct sim *sim, const struct event *event)
{
    struct machine *machine = context;
    size_t n = strlen(machine->seconds);
    if (event->kind == EVENT_SAMPLE)
        snprintf(machine->seconds + n, sizeof machine->seconds - n, "%g ",
            (double)event->time_us / (double)SECOND_US);
}

static void on_wait(void *context, struct sim *sim, uint64_t task)
{
}

static void on_wake(void *context, struct sim *sim, const struct sim_wakeup *wakeup)
{
    struct machine *machine = context;
    int r = 0;
    if (wakeup->kind == WAKE_SAMPLE) {
        r = sampling_on_wakeup(&machine->sampling, (int)wakeup->subject);
    } else {
        r = sampling_catch_up(&machine->sampling, 0);
        if (wakeup->kind == WAKE_BUSY)
            simulated_gpus_add_task(&machine->gpus, &machine->load, wakeup->time_us);
        assert_int_equal(sampling_plan(&machine->sampling, 0), 0);
    }
    assert_int_equal(r, 0);
}

static int set_up(void **state)
{
    struct machine *machine = calloc(1, sizeof *machine);
    struct fault fault = {""};
    assert_int_equal(gpu_kinds_init(&machine->kinds, &fault), 0);
    assert_int_equal(cluster_parse(&machine->kinds, "A100-40GB", &fault, &machine->cluster), 0);
    assert_int_equal(
        simulated_gpus_init(&machine->gpus, &machine->cluster, &machine->kinds.constants), 0);
    machine->gpus.on_speed_changed = on_speed_changed;
    machine->load = (struct running_task){.id = 1, .places = first_place, .n_places = 1};
    machine->load.demand = (struct demand){NAN, 0.5, NAN, NAN, NAN};
    demand_complete(&machine->load.demand, 300);
    machine->settings = core_settings_default();
    machine->settings.policy = &policy_magm;
    machine->settings.window_us = 90 * SECOND_US;
    machine->settings.conditions.sample_valid_us = INT64_MAX / 2;
    machine->world = (struct sim_world){machine, on_start, on_start, on_wake, NULL};
    machine->observer = (struct sim_observer){machine, on_event, on_wait};
    machine->sim = sim_create(&machine->settings, &machine->world, &machine->observer);
    struct event gpus = {.kind = EVENT_GPUS, .gpus = {.list = machine->cluster.identities, .n = 1}};
    assert_int_equal(sim_schedule_event(machine->sim, &gpus), 0);
    machine->sampling = (struct sampling){.sim = machine->sim,
        .gpus = &machine->gpus,
        .settings = &machine->settings,
        .wakeup_kind = WAKE_SAMPLE};
    assert_int_equal(sampling_init(&machine->sampling), 0);
    *state = machine;
    return 0;
}

static int tear_down(void **state)
{
    struct machine *machine = *state;
    sampling_fini(&machine->sampling);
    sim_destroy(machine->sim);
    simulated_gpus_fini(&machine->gpus);
    cluster_fini(&machine->cluster);
    free(machine);
    return 0;
}

static void wake_at(struct machine *machine, int kind, int64_t time_us)
{
    struct sim_wakeup wakeup = {.kind = kind, .time_us = time_us};
    assert_int_equal(sim_schedule_wakeup(machine->sim, &wakeup), 0);
}

static void an_idle_gpu_is_sampled_once(void **state)
{
    struct machine *machine = *state;
    assert_int_equal(sim_run(machine->sim, 1000 * SECOND_US), 0);
    assert_string_equal(machine->seconds, "0 ");
}

static void samples_are_taken_at_whole_seconds_and_once(void **state)
{
    struct machine *machine = *state;
    wake_at(machine, WAKE_PLAN, 7 * SECOND_US + 1);
    wake_at(machine, WAKE_PLAN, 7 * SECOND_US + 2);
    wake_at(machine, WAKE_PLAN, 9 * SECOND_US);
    assert_int_equal(sim_run(machine->sim, 1000 * SECOND_US), 0);
    assert_string_equal(machine->seconds, "0 8 9 ");
}

/* The mean over the window is 0 first, and 0.4 (near 0.5) after 72 s of 90. */
static void a_busy_gpu_is_sampled_until_the_mean_has_risen(void **state)
{
    struct machine *machine = *state;
    wake_at(machine, WAKE_BUSY, 200 * SECOND_US);
    assert_int_equal(sim_run(machine->sim, 1000 * SECOND_US), 0);
    double activity = machine->gpus.places[0].smact;
    double mean = core_view(sim_core(machine->sim))->gpus[0].smact_level.value;
    assert_true(activity > 0.49);
    assert_true(fabs(activity - mean) < 0.1);
    assert_non_null(strstr(machine->seconds, "0 200 203 206 "));
    assert_null(strstr(machine->seconds, " 300 "));
}

static void left_out_samples_are_applied_before_a_change(void **state)
{
    struct machine *machine = *state;
    wake_at(machine, WAKE_PLAN, 500 * SECOND_US + SECOND_US / 2);
    assert_int_equal(sim_run(machine->sim, 500 * SECOND_US + SECOND_US / 2), 0);
    /* From the start of the window, 410.5 s, each third second; none of them is an input. */
    assert_int_equal(machine->sampling.places[0].last_us, 498 * SECOND_US);
    assert_string_equal(machine->seconds, "0 ");
    assert_int_equal(sim_run(machine->sim, 501 * SECOND_US), 0);
    assert_string_equal(machine->seconds, "0 501 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_idle_gpu_is_sampled_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            samples_are_taken_at_whole_seconds_and_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_busy_gpu_is_sampled_until_the_mean_has_risen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            left_out_samples_are_applied_before_a_change, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
