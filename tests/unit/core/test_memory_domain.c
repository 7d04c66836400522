/* SPDX-License-Identifier: Apache-2.0 */
/* Places that share their memory: which do, and that a sample of one updates the memory of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "core/memory_domain.h"
#include "core/questions.h"
#include "core/state/state.h"
#include "policy/policies.h"
#include "pretend_gpus.h"

enum { N = 7 };

static struct gpu_view gpus[N];
static struct resident residents[N][2];
static struct cluster_view view = {.gpus = gpus, .n_gpus = N};

/* Places 0, 2 and 5 share their memory; 1 and 3 do; 4 and 6 have their own. */
static int begin(void **state)
{
    static const int domains[N] = {1, 2, 1, 2, 0, 1, 0};
    memset(gpus, 0, sizeof gpus);
    memset(residents, 0, sizeof residents);
    for (int i = 0; i < N; i++) {
        gpus[i].id.memory_domain = domains[i];
        gpus[i].is_listed = true;
        gpus[i].residents = residents[i];
    }
    return 0;
}

static int next_of(int gpu)
{
    return (int)(memory_domain_next(&gpus[gpu]) - gpus);
}

static void assert_ring(const int *ring, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(next_of(ring[i]), ring[(i + 1) % n]);
}
#define ASSERT_RING(...)                                                                           \
    assert_ring((const int[]){__VA_ARGS__}, ARRAY_SIZE(((const int[]){__VA_ARGS__})))

static void the_places_of_a_domain_form_a_ring(void **state)
{
    memory_domain_link(&view);
    ASSERT_RING(0, 2, 5);
    ASSERT_RING(1, 3);
    ASSERT_RING(4);
    ASSERT_RING(6);
    assert_true(memory_domain_is_shared(&gpus[5]));
    assert_false(memory_domain_is_shared(&gpus[4]));
}

static void a_place_that_is_not_there_is_not_in_the_ring(void **state)
{
    memory_domain_link(&view);
    gpus[2].id.is_gone = true;
    gpus[1].is_listed = false;
    memory_domain_link(&view);
    ASSERT_RING(0, 5);
    ASSERT_RING(2);
    ASSERT_RING(1);
    ASSERT_RING(3);
}

/* Of each place the next one is the nearest behind it that shares its memory, or the first. */
static int nearest_of_domain(const struct cluster_view *many, int gpu)
{
    for (int i = 1; i < many->n_gpus; i++) {
        int at = (gpu + i) % many->n_gpus;
        const struct gpu_view *other = &many->gpus[at], *of = &many->gpus[gpu];
        bool is_shared = of->id.memory_domain == other->id.memory_domain &&
                         of->id.node == other->id.node && of->id.memory_domain;
        if (is_shared && other->is_listed && of->is_listed)
            return at;
    }
    return gpu;
}

static void thousands_of_places_are_linked(void **state)
{
    enum { MANY = 3000, DOMAINS = 700, NODES = 3 };
    struct cluster_view many = {.gpus = calloc(MANY, sizeof *many.gpus), .n_gpus = MANY};
    assert_non_null(many.gpus);
    srandom(1);
    for (int i = 0; i < MANY; i++) {
        many.gpus[i].id.memory_domain = (int)(random() % DOMAINS);
        many.gpus[i].id.node = (int)(random() % NODES);
        many.gpus[i].is_listed = random() % 8 != 0;
    }
    assert_int_equal(memory_domain_link(&many), 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(
            memory_domain_next(&many.gpus[i]) - many.gpus, nearest_of_domain(&many, i));
    free(many.gpus);
}

static void places_of_two_servers_share_nothing(void **state)
{
    gpus[5].id.node = 1;
    memory_domain_link(&view);
    ASSERT_RING(0, 2);
    ASSERT_RING(5);
}

static void a_walk_passes_each_resident_once(void **state)
{
    static const uint64_t expected[] = {20, 50, 51, 0};
    gpus[5].n_residents = 2;
    gpus[2].n_residents = 1;
    gpus[1].n_residents = 1;
    residents[2][0].task = 20;
    residents[5][0].task = 50;
    residents[5][1].task = 51;
    memory_domain_link(&view);
    struct domain_walk walk = memory_domain_walk(&gpus[2]);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        const struct resident *resident = memory_domain_resident(&walk);
        assert_int_equal(resident ? resident->task : 0, expected[i]);
    }
    walk = memory_domain_walk(&gpus[4]);
    assert_null(memory_domain_resident(&walk));
}

static void others_are_on_another_place(void **state)
{
    gpus[0].n_residents = 1;
    memory_domain_link(&view);
    assert_false(memory_domain_has_others(&gpus[0]));
    assert_true(memory_domain_has_others(&gpus[2]));
    assert_false(memory_domain_has_others(&gpus[1]));
}

static void an_external_process_on_any_place_counts(void **state)
{
    memory_domain_link(&view);
    gpus[0].external_processes = reading_of(0);
    assert_false(memory_domain_has_external(&gpus[0]));
    gpus[5].external_processes = reading_of(1);
    assert_true(memory_domain_has_external(&gpus[0]));
    assert_false(memory_domain_has_external(&gpus[1]));
}

static void what_residents_of_any_place_use_is_accounted_for(void **state)
{
    gpus[0].n_residents = gpus[2].n_residents = 1;
    residents[0][0].mem_used_bytes = reading_of(3);
    residents[2][0].mem_used_bytes = reading_of(4);
    for (int i = 0; i < N; i++)
        gpus[i].mem_used_bytes = reading_of(10);
    memory_domain_link(&view);
    assert_true(gpu_view_unaccounted_bytes(&gpus[5]).value == 3);
    assert_true(gpu_view_unaccounted_bytes(&gpus[1]).value == 10);
}

/* `why`: no task of these ids is known, so they are their names. */
static void assert_held(int gpu, const char *why)
{
    static const struct core core;
    char text[100];
    const char *held = core_explain_hold(&core, &gpus[gpu], text, sizeof text);
    assert_string_equal(held ? held : "", why);
}

static void a_hold_of_one_place_is_said_of_all(void **state)
{
    memory_domain_link(&view);
    gpus[2].claims[CLAIM_EXCLUSIVE] = 7;
    assert_held(0, "task 7 has it to itself");
    assert_held(2, "task 7 has it to itself");
    assert_held(1, "");
    gpus[3].claims[CLAIM_DRAIN] = 8;
    assert_held(1, "kept empty for task 8, which recovers");
    gpus[2].claims[CLAIM_EXCLUSIVE] = 0;
    gpus[5].n_residents = 1;
    residents[5][0].task = 9;
    assert_held(0, "task 9 is still taking its memory");
}

/* Starts a task on the instance that has none, and samples that until the task has settled. */
static void settle_task(struct core *core, uint64_t task, int gpu, double used_gib, double smact)
{
    int64_t at_us = (int64_t)task * 100 * SECOND_US;
    struct task_request request = {.gpus = 1, .need = {NEED_DECLARED, 2 * GIB}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(world_sample(core, at_us, i, used_gib, smact, 0), 0);
    assert_int_equal(world_submit(core, at_us, task, request), 0);
    assert_int_equal(world_input(core, at_us, EVENT_STARTED, task), 0);
    assert_int_equal(core_task(core, task)->gpus[0], gpu);
    for (int i = 1; i < 20; i++)
        world_sample(core, at_us + i * SECOND_US, gpu, used_gib, smact, 0);
}

static const struct resident *resident_of(const struct core *core, int gpu)
{
    return &core_view(core)->gpus[gpu].residents[0];
}

/* Between two samples, what a task takes on one place must not look free on the other. */
static void a_sample_updates_the_memory_of_all(void **state)
{
    struct core *core = world_instances_core(&policy_magm, 2, 0);
    const struct cluster_view *seen = core_view(core);
    assert_int_equal(world_sample(core, 2, 0, 6, 0, 0), 0);
    assert_true(seen->gpus[1].mem_used_bytes.value == 6 * (double)GIB);
    assert_true(seen->open_bytes[1] == 34 * (double)GIB);
    struct event unknown = {.kind = EVENT_SAMPLE, .time_us = 3};
    assert_int_equal(core_step(core, &unknown), 0);
    assert_false(seen->gpus[0].mem_used_bytes.valid);
    assert_true(seen->gpus[1].mem_used_bytes.valid);
    core_destroy(core);
}

/* Half of the SMs of both instances are busy: the task's instance may be wholly so. */
static void activity_of_both_is_not_learned_of_a_task(void **state)
{
    struct core *core = world_instances_core(&policy_magm, 2, 1);
    settle_task(core, 1, 0, 2, 0.5);
    assert_true(residence_has_settled(resident_of(core, 0)->residence));
    assert_false(resident_of(core, 0)->expect.smact.valid);
    core_destroy(core);
    core = world_instances_core(&policy_magm, 0, 2);
    settle_task(core, 1, 0, 2, 0.5);
    assert_true(resident_of(core, 0)->expect.smact.value == 0.5);
    core_destroy(core);
}

/* Where the driver lists no processes, a task alone on an instance may not be alone there. */
static void memory_in_use_is_that_of_a_task_without_others(void **state)
{
    struct core *core = world_instances_core(&policy_magm, 2, 0);
    struct event no_list = {.kind = EVENT_SAMPLE, .time_us = 150 * SECOND_US};
    no_list.sample.mem_used_bytes = reading_of(3 * (double)GIB);
    settle_task(core, 1, 0, 2, 0.5);
    assert_int_equal(core_step(core, &no_list), 0);
    assert_true(resident_of(core, 0)->mem_used_bytes.value == 3 * (double)GIB);
    settle_task(core, 2, 1, 4, 0.9);
    no_list.time_us = 250 * SECOND_US;
    assert_int_equal(core_step(core, &no_list), 0);
    assert_false(resident_of(core, 0)->mem_used_bytes.valid);
    core_destroy(core);
}

/* A task that needs 30 of 40 GiB gives 20 back, and will take them again: no task that needs 20 GiB
 * starts, whichever instance is sampled first. */
static void memory_given_back_is_not_given_away(void **state)
{
    struct task_request large = {.gpus = 1, .need = {NEED_DECLARED, 30 * GIB}};
    struct task_request waiting = {.gpus = 1, .need = {NEED_DECLARED, 20 * GIB}};
    for (int first = 0; first < 2; first++) {
        struct core *core = world_instances_core(&policy_predictive, 2, 0);
        assert_int_equal(world_submit(core, 2, 1, large), 0);
        assert_int_equal(world_input(core, 2, EVENT_STARTED, 1), 0);
        assert_int_equal(core_task(core, 1)->gpus[0], 0);
        for (int i = 1; i < 20; i++)
            for (int gpu = 0; gpu < 2; gpu++)
                assert_int_equal(world_sample(core, i * SECOND_US, gpu, 30, 0.2, 0), 0);
        assert_int_equal(world_submit(core, 20 * SECOND_US, 2, waiting), 0);
        assert_int_equal(world_sample(core, 21 * SECOND_US, first, 10, 0.2, 0), 0);
        assert_int_equal(world_state(core, 2), TASK_QUEUED);
        assert_int_equal(world_sample(core, 21 * SECOND_US, !first, 10, 0.2, 0), 0);
        assert_int_equal(world_state(core, 2), TASK_QUEUED);
        assert_int_equal(world_exit(core, 22 * SECOND_US, 1, FAILURE_NONE), 0);
        for (int gpu = 0; gpu < 2; gpu++)
            assert_int_equal(world_sample(core, 23 * SECOND_US, gpu, 0, 0, 0), 0);
        assert_int_equal(world_state(core, 2), TASK_STARTING);
        core_destroy(core);
    }
}

/* A sample of instance `gpu`, whose task, if any, uses `task_gib` of all that is in use. */
static void sample_task(
    struct core *core, int64_t time_us, int gpu, double used_gib, double task_gib)
{
    int n = core_view(core)->gpus[gpu].n_residents;
    struct task_memory used = {.task = 0, .mem_used_bytes = reading_of(task_gib * (double)GIB)};
    if (n)
        used.task = resident_of(core, gpu)->task;
    struct event event = {.kind = EVENT_SAMPLE, .time_us = time_us};
    event.sample.gpu = gpu;
    event.sample.mem_used_bytes = reading_of(used_gib * (double)GIB);
    event.sample.smact = event.sample.utilisation = reading_of(0.9);
    event.sample.external_processes = reading_of(0);
    event.sample.tasks = &used;
    event.sample.n_tasks = n;
    assert_int_equal(core_step(core, &event), 0);
}

/* Samples of both instances until then: task 1 uses 10 GiB, task 2 uses 20. */
static void sample_both(struct core *core, int64_t until_us, double used_gib)
{
    for (int64_t at_us = until_us - 95 * SECOND_US; at_us <= until_us; at_us += SECOND_US)
        for (int gpu = 0; gpu < 2; gpu++)
            sample_task(core, at_us, gpu, used_gib, 10 * (gpu + 1));
}

/* Task 1 has 10 GiB on instance 0; task 2, which no task stops, needs 20 GiB on instance 1 and has
 * given 15 of them back, which the sample of instance 0 alone does not tell. Task 1 keeps its
 * memory when it is paused: 10 GiB are left for task 3, enough for 6 GiB, not for 16. */
static void memory_given_back_does_not_stop_a_task(void **state)
{
    static const struct {
        int64_t gib;
        enum task_state expected;
    } heads[] = {{16, TASK_RUNNING}, {6, TASK_PAUSED}};
    for (size_t i = 0; i < 2 * ARRAY_SIZE(heads); i++) {
        int first = i % 2;
        struct core *core = world_instances_core(&policy_magm, 2, 0);
        struct core_settings settings = *core_get_settings(core);
        settings.preempt = settings.can_pause = true;
        core_configure(core, &settings);
        struct task_request request = {.gpus = 1};
        sample_both(core, 100 * SECOND_US, 0);
        for (int task = 1; task <= 2; task++) {
            int64_t at_us = task * 100 * SECOND_US;
            request.need = (struct need){NEED_DECLARED, task * 10 * GIB};
            request.priority = task == 2 ? PRIORITY_HIGH : PRIORITY_NORMAL;
            assert_int_equal(world_submit(core, at_us, (uint64_t)task, request), 0);
            assert_int_equal(world_input(core, at_us, EVENT_STARTED, (uint64_t)task), 0);
            assert_int_equal(core_task(core, (uint64_t)task)->gpus[0], task - 1);
            sample_both(core, at_us + 99 * SECOND_US, task == 1 ? 10 : 30);
        }
        sample_task(core, 300 * SECOND_US, first, 15, first ? 5 : 10);
        request.need.bytes = heads[i / 2].gib * GIB;
        assert_int_equal(world_submit(core, 301 * SECOND_US, 3, request), 0);
        assert_int_equal(world_state(core, 1), heads[i / 2].expected);
        assert_int_equal(world_state(core, 2), TASK_RUNNING);
        core_destroy(core);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_places_of_a_domain_form_a_ring, begin),
        cmocka_unit_test_setup(a_place_that_is_not_there_is_not_in_the_ring, begin),
        cmocka_unit_test(thousands_of_places_are_linked),
        cmocka_unit_test_setup(places_of_two_servers_share_nothing, begin),
        cmocka_unit_test_setup(a_walk_passes_each_resident_once, begin),
        cmocka_unit_test_setup(others_are_on_another_place, begin),
        cmocka_unit_test_setup(an_external_process_on_any_place_counts, begin),
        cmocka_unit_test_setup(what_residents_of_any_place_use_is_accounted_for, begin),
        cmocka_unit_test_setup(a_hold_of_one_place_is_said_of_all, begin),
        cmocka_unit_test(a_sample_updates_the_memory_of_all),
        cmocka_unit_test(activity_of_both_is_not_learned_of_a_task),
        cmocka_unit_test(memory_in_use_is_that_of_a_task_without_others),
        cmocka_unit_test(memory_given_back_is_not_given_away),
        cmocka_unit_test(memory_given_back_does_not_stop_a_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
