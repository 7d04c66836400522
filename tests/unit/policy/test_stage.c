/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions of a compute instance that shares its memory: tasks on the other one leave, too. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "core/core.h"
#include "core/memory_domain.h"
#include "policy/opening.h"
#include "policy/policies.h"

static struct gpu_view gpus[2];
static struct resident residents[2][PREDICT_RESIDENTS_MAX + 1];
static struct cluster_view view;
static struct core_settings settings;
static struct task task;
static struct placement_query query;

/* Two idle instances that share 20 GiB; a task that needs 10 GiB. */
static int idle_instances(void **state)
{
    memset(gpus, 0, sizeof gpus);
    for (int i = 0; i < 2; i++) {
        gpus[i].id = (struct gpu_identity){.is_place = true,
            .is_mig_instance = true,
            .mem_total_bytes = 20 * GIB,
            .memory_domain = 1};
        gpus[i].is_listed = true;
        gpus[i].health = VIEW_OK;
        gpus[i].mem_used_bytes = gpus[i].external_processes = reading_of(0);
        gpus[i].smact_level = reading_of(0.1);
        gpus[i].residents = residents[i];
    }
    view = (struct cluster_view){.gpus = gpus, .n_gpus = 2, .last_placed = -1};
    memory_domain_link(&view);
    settings = core_settings_default();
    task = (struct task){.id = 50, .state = TASK_QUEUED};
    task.request.gpus = 1;
    task.request.need = (struct need){NEED_DECLARED, 10 * GIB};
    query = (struct placement_query){.view = &view,
        .conditions = &settings.conditions,
        .settings = &settings,
        .task = &task,
        .policy = &policy_magm};
    return 0;
}

/* A task that has settled; the time is its limit. 0: it has none. */
static struct resident *settle_in(int gpu, int gib, int limit_s)
{
    double bytes = (double)(gib * GIB);
    struct resident *resident = &residents[gpu][gpus[gpu].n_residents++];
    *resident = (struct resident){.task = 60 + (uint64_t)gpu,
        .gpus = 1,
        .residence = RESIDENCE_SETTLED,
        .need_bytes = reading_of(bytes),
        .mem_used_bytes = reading_of(bytes),
        .expect = {.smact = reading_of(0.1)},
        .ends_us = limit_s * SECOND_US};
    for (int i = 0; i < 2; i++)
        gpus[i].mem_used_bytes.value += bytes;
    return resident;
}

static void assert_holds(const struct stage *stage, int gib, int n_residents, int n_others)
{
    assert_true(stage->gpu.mem_used_bytes.value == (double)(gib * GIB));
    assert_int_equal(stage->gpu.n_residents, n_residents);
    assert_int_equal(stage->n_others, n_others);
}

static void tasks_leave_both_instances_in_the_order_of_their_times(void **state)
{
    struct stage stage;
    settle_in(0, 6, 0);
    settle_in(1, 8, 100);
    settle_in(1, 2, 0)->expect.time_us = reading_of(200 * (double)SECOND_US);
    stage_init(&stage, &query, 0);
    assert_holds(&stage, 16, 1, 2);
    stage_advance(&stage);
    assert_true(stage.passed_s == 100);
    assert_holds(&stage, 8, 1, 1);
    stage_advance(&stage);
    assert_in_range(stage.passed_s, 200, 300); /* slowed down by the other */
    assert_holds(&stage, 6, 1, 0);
    stage_advance(&stage);
    assert_true(isinf(stage.passed_s));
    assert_false(stage_can_advance(&stage));
}

static void time_passes_until_then(void **state)
{
    struct stage stage;
    settle_in(1, 8, 100);
    stage_init(&stage, &query, 0);
    stage_run_until(&stage, 99);
    assert_holds(&stage, 8, 0, 1);
    stage_run_until(&stage, 100);
    assert_holds(&stage, 0, 0, 0);
    assert_true(stage.passed_s == 100);
    task.request.time_limit_us = 20 * SECOND_US;
    stage_add_other(&stage, &task, 1, false);
    assert_holds(&stage, 10, 0, 1);
    stage_run_until(&stage, 119);
    assert_holds(&stage, 10, 0, 1);
    stage_run_until(&stage, 120);
    assert_holds(&stage, 0, 0, 0);
}

static void an_exclusive_task_keeps_its_memory_to_itself(void **state)
{
    struct stage stage;
    gpus[1].claims[CLAIM_EXCLUSIVE] = settle_in(1, 2, 100)->task;
    stage_init(&stage, &query, 0);
    assert_false(stage_admits(&query, &stage));
    stage_advance(&stage);
    assert_true(stage_admits(&query, &stage));
    gpus[1].claims[CLAIM_EXCLUSIVE] = 0;
    stage_init(&stage, &query, 0);
    assert_true(stage_admits(&query, &stage));
}

/* Tasks beyond the limits never leave: a task that shares with none has no chance. */
static void too_many_others_stay(void **state)
{
    struct stage stage;
    query.idle_only = true;
    task.request.need.bytes = 0;
    task.request.time_limit_us = 100 * SECOND_US;
    stage_init(&stage, &query, 0);
    for (int i = 0; i < STAGE_OTHERS_MAX; i++)
        stage_add_other(&stage, &task, 1, false);
    assert_false(stage_admits(&query, &stage));
    stage_run_until(&stage, 100);
    assert_true(stage_admits(&query, &stage));
    stage_init(&stage, &query, 0);
    for (int i = 0; i < STAGE_OTHERS_MAX + 1; i++)
        stage_add_other(&stage, &task, 1, false);
    stage_run_until(&stage, 100);
    assert_false(stage_admits(&query, &stage));
    for (int i = 0; i < PREDICT_RESIDENTS_MAX + 1; i++)
        settle_in(1, 0, 100);
    stage_init(&stage, &query, 0);
    assert_false(stage_admits(&query, &stage));
    query.idle_only = false;
    assert_true(stage_admits(&query, &stage));
}

/* Given back on the other instance, which has not been sampled since: it will be taken again. */
static void memory_given_back_stays_with_its_task(void **state)
{
    settle_in(1, 12, 100);
    for (int i = 0; i < 2; i++) {
        gpus[i].external_processes = reading_of(1);
        gpus[i].mem_used_bytes = reading_of(3 * (double)GIB);
    }
    assert_true(stage_used_bytes(&gpus[0]).value == 12 * (double)GIB);
    gpus[0].mem_used_bytes = reading_of(14 * (double)GIB);
    assert_true(stage_used_bytes(&gpus[0]).value == 14 * (double)GIB);
}

static void an_instance_opens_when_a_task_leaves_the_other_one(void **state)
{
    const struct opening later = {0, 150 * SECOND_US, 1, 1}, sooner = {0, 50 * SECOND_US, 1, 1};
    struct opening opening;
    settle_in(1, 12, 100);
    assert_true(opening_predict(&query, 0, NULL, &opening));
    assert_int_equal(opening.at_us, 100 * SECOND_US);
    assert_int_equal(opening.n_left, 1);
    settle_in(0, 2, 0); /* of unknown time: it stays */
    assert_true(opening_predict(&query, 0, &later, &opening));
    assert_int_equal(opening.at_us, 100 * SECOND_US);
    assert_false(opening_predict(&query, 0, &sooner, &opening));
}

/* The joining task has left again when the one on the other instance leaves. */
static void a_task_that_leaves_before_does_not_delay_it(void **state)
{
    struct task joining = {.id = 51, .state = TASK_QUEUED, .request = {.gpus = 1}};
    joining.request.need = (struct need){NEED_DECLARED, 4 * GIB};
    joining.request.time_limit_us = 50 * SECOND_US;
    settle_in(1, 12, 100);
    assert_true(opening_lasts(&query, 0, &joining, 100 * SECOND_US));
    joining.request.need.bytes = 16 * GIB;
    joining.request.time_limit_us = 150 * SECOND_US;
    assert_false(opening_lasts(&query, 0, &joining, 100 * SECOND_US));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(
            tasks_leave_both_instances_in_the_order_of_their_times, idle_instances),
        cmocka_unit_test_setup(time_passes_until_then, idle_instances),
        cmocka_unit_test_setup(an_exclusive_task_keeps_its_memory_to_itself, idle_instances),
        cmocka_unit_test_setup(too_many_others_stay, idle_instances),
        cmocka_unit_test_setup(memory_given_back_stays_with_its_task, idle_instances),
        cmocka_unit_test_setup(an_instance_opens_when_a_task_leaves_the_other_one, idle_instances),
        cmocka_unit_test_setup(a_task_that_leaves_before_does_not_delay_it, idle_instances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
