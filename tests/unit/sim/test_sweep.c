/* SPDX-License-Identifier: Apache-2.0 */
/* Simulations on several threads: results, failures, cancelling. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "policy/policies.h"
#include "sim/sweep.h"

enum { TASKS = 40, RUNS = 24 };

#define PATIENCE_US (60 * SECOND_US)

struct world {
    char trace[32];
    struct gpu_kinds kinds;
    struct cluster cluster;
    struct catalogue catalogue;
    struct simulation simulations[RUNS];
};

static void write_trace(char *path, int tasks)
{
    const char *const names[] = {"resnet50-b32", "bert_base-b32", "vgg16-b128"};
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fprintf(file, "submit_s,task\n");
    for (int i = 0; i < tasks; i++)
        fprintf(file, "%d,%s\n", i * 300, names[i % 3]);
    fclose(file);
}

static void make_world(struct world *world, int tasks)
{
    struct catalogue_settings settings = {.estimator = "none", .smact = 0.5};
    memset(world, 0, sizeof *world);
    strcpy(world->trace, "/tmp/colloc-test-XXXXXX");
    write_trace(world->trace, tasks);
    assert_int_equal(gpu_kinds_init(&world->kinds, NULL), 0);
    assert_int_equal(cluster_parse(&world->kinds, "2xA100-40GB", NULL, &world->cluster), 0);
    assert_int_equal(catalogue_read(NULL, &settings, NULL, &world->catalogue), 0);
    for (int i = 0; i < RUNS; i++) {
        struct core_settings core = core_settings_default();
        core.policy = i % 2 ? &policy_magm : &policy_rr;
        world->simulations[i] = (struct simulation){.trace = world->trace,
            .catalogue = &world->catalogue,
            .cluster = &world->cluster,
            .laws = &world->kinds.constants,
            .settings = core,
            .sharing = SHARING_MPS,
            .seed = (uint64_t)i};
    }
}

static void end_world(struct world *world)
{
    unlink(world->trace);
    catalogue_fini(&world->catalogue);
    cluster_fini(&world->cluster);
}

static void test_each_run_is_as_it_is_alone(void **state)
{
    struct world world;
    make_world(&world, TASKS);
    for (int threads = 1; threads <= 4; threads += 3) {
        struct sweep *sweep = sweep_start(world.simulations, RUNS, threads);
        assert_non_null(sweep);
        for (int i = RUNS - 1; i >= 0; i--) {
            struct simulation_result alone;
            const struct sweep_outcome *outcome = sweep_wait(sweep, i, PATIENCE_US);
            assert_int_equal(simulate_trace(&world.simulations[i], NULL, &alone), 0);
            assert_non_null(outcome);
            assert_int_equal(outcome->r, 0);
            assert_null(outcome->fault);
            assert_memory_equal(&outcome->result, &alone, sizeof alone);
        }
        assert_int_equal(sweep_ended(sweep), RUNS);
        sweep_destroy(sweep);
    }
    end_world(&world);
}

static void test_a_run_that_fails_says_why(void **state)
{
    struct world world;
    make_world(&world, TASKS);
    world.simulations[3].trace = "/nowhere/trace";
    struct sweep *sweep = sweep_start(world.simulations, 5, 2);
    assert_string_equal(
        sweep_wait(sweep, 3, PATIENCE_US)->fault, "/nowhere/trace: No such file or directory");
    assert_true(sweep_wait(sweep, 3, 0)->r < 0);
    assert_int_equal(sweep_wait(sweep, 4, PATIENCE_US)->r, 0);
    sweep_destroy(sweep);
    end_world(&world);
}

/* Without being stopped these runs would take minutes. */
static void test_destroying_stops_what_runs(void **state)
{
    struct world world;
    make_world(&world, 200000);
    int64_t began_us = clock_monotonic_us();
    struct sweep *sweep = sweep_start(world.simulations, RUNS, 2);
    assert_null(sweep_wait(sweep, RUNS - 1, 20000));
    sweep_destroy(sweep);
    assert_true(clock_monotonic_us() - began_us < 20 * SECOND_US);
    end_world(&world);
}

static void test_a_cancelled_run_is_no_result(void **state)
{
    struct world world;
    struct simulation_result result;
    atomic_bool cancelled = true;
    make_world(&world, TASKS);
    world.simulations[0].cancelled = &cancelled;
    assert_int_equal(simulate_trace(&world.simulations[0], NULL, &result), -ECANCELED);
    end_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_run_is_as_it_is_alone),
        cmocka_unit_test(test_a_run_that_fails_says_why),
        cmocka_unit_test(test_destroying_stops_what_runs),
        cmocka_unit_test(test_a_cancelled_run_is_no_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
