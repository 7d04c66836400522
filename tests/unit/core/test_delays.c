/* SPDX-License-Identifier: Apache-2.0 */
/* What the core learns of measured speeds: of which mixes, of how many users, and that a replayed
 * log has the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/gpu_sharers.h"
#include "policy/policies.h"
#include "pretend_gpus.h"

#define S SECOND_US

enum { ADA = 1001, BOB = 1002 };

/* Two tasks of SMACT 0.3 on a GPU of which the level is what the model expects. */
#define LEVEL 0.5

static const struct task_request training = {
    .gpus = 1, .need = {NEED_DECLARED, 4 * GIB}, .expect.smact = {.value = 0.3, .valid = true}};

static struct core *start(void)
{
    struct core *core = world_core(&policy_predictive, 1);
    struct core_settings settings = *core_get_settings(core);
    settings.learns_delays = true;
    core_configure(core, &settings);
    world_sample(core, 0, 0, 0, 0, 0);
    return core;
}

static void submit(struct core *core, uint64_t id, uint32_t uid)
{
    struct event event = {.kind = EVENT_SUBMIT, .time_us = S, .task = id};
    event.submit.uid = uid;
    event.submit.request = training;
    assert_int_equal(core_step(core, &event), 0);
    assert_int_equal(world_input(core, S, EVENT_STARTED, id), 0);
}

/* A second of samples and, each five seconds, a report of each of the two tasks. Returns the last
 * DELAYS that were decided, or an event of another kind. */
static struct event share_for(
    struct core *core, int64_t from_s, int64_t s, double smact, double ada, double bob)
{
    struct event last = {.kind = EVENT_TICK};
    struct task_memory memory[] = {{.task = 1, .mem_used_bytes = reading_of(4.0 * GIB)},
        {.task = 2, .mem_used_bytes = reading_of(4.0 * GIB)}};
    for (int64_t t = from_s; t < from_s + s; t++) {
        struct event sample = {.kind = EVENT_SAMPLE, .time_us = t * S};
        sample.sample = (struct core_sample){.mem_used_bytes = reading_of(8.0 * GIB),
            .smact = reading_of(smact),
            .utilisation = reading_of(smact),
            .external_processes = reading_of(0),
            .tasks = memory,
            .n_tasks = 2};
        assert_int_equal(core_step(core, &sample), 0);
        for (uint64_t id = 1; id <= 2 && t % 5 == 0; id++) {
            struct event speed = {.kind = EVENT_SPEED, .time_us = t * S, .task = id};
            speed.slowdown = reading_of(id == 1 ? ada : bob);
            assert_int_equal(core_step(core, &speed), 0);
            int n;
            const struct effect *effects = core_effects(core, &n);
            for (int i = 0; i < n; i++)
                if (effects[i].kind == EFFECT_APPEND && effects[i].event.kind == EVENT_DELAYS)
                    last = effects[i].event;
        }
    }
    return last;
}

static double factor(const struct core *core)
{
    return core_learned_delay(core, SHARING_STREAMS).factor;
}

static void two_users_teach_the_model(void **state)
{
    struct core *core = start();
    submit(core, 1, ADA);
    submit(core, 2, BOB);
    share_for(core, 2, 3600, LEVEL, 1.6, 1.6);
    double learned = factor(core);
    assert_true(learned > 1.2 && learned <= 2);
    assert_int_equal(core_learned_delay(core, SHARING_STREAMS).n_users, 2);
    assert_float_equal(core_learned_delay(core, SHARING_MPS).factor, 1, 1e-6);
    struct core_settings settings = *core_get_settings(core);
    settings.learns_delays = false;
    core_configure(core, &settings);
    assert_float_equal(factor(core), 1, 1e-6);
    core_destroy(core);
}

static void one_user_alone_teaches_nothing_to_others(void **state)
{
    struct core *core = start();
    submit(core, 1, ADA);
    submit(core, 2, ADA);
    share_for(core, 2, 3600, LEVEL, 50, 50);
    assert_float_equal(factor(core), 2, 0.1); /* while it is the only user */
    struct event other = {.kind = EVENT_SUBMIT, .time_us = 4000 * S, .task = 3};
    other.submit.uid = BOB;
    other.submit.request = training;
    assert_int_equal(core_step(core, &other), 0);
    assert_float_equal(factor(core), 1, 1e-6);
    core_destroy(core);
}

/* One that declares too little is no error of the model. */
static void activity_that_was_declared_wrongly_teaches_nothing(void **state)
{
    struct core *core = start();
    submit(core, 1, ADA);
    submit(core, 2, BOB);
    struct event last = share_for(core, 2, 3600, 0.95, 1.9, 1.9);
    assert_int_equal(last.kind, EVENT_TICK);
    assert_float_equal(factor(core), 1, 1e-6);
    core_destroy(core);
}

static void a_replayed_log_has_the_same(void **state)
{
    struct core *core = start(), *again = start();
    submit(core, 1, ADA);
    submit(core, 2, BOB);
    submit(again, 1, ADA);
    submit(again, 2, BOB);
    struct event last = share_for(core, 2, 600, LEVEL, 1.6, 1.6);
    assert_int_equal(last.kind, EVENT_DELAYS);
    struct event other = last;
    other.delays.uid = last.delays.uid == ADA ? BOB : ADA;
    assert_int_equal(core_apply(again, &last), 0);
    assert_float_equal(factor(again), 1, 1e-6); /* of one user so far */
    assert_int_equal(core_apply(again, &other), 0);
    assert_true(factor(again) > 1.05);
    assert_float_equal(factor(again), factor(core), 0.02);
    core_destroy(core);
    core_destroy(again);
}

/* A client of MPS is slower alone, and less active than the plain process that is expected. */
static void the_activity_of_a_client_is_taken_for_that_of_a_process(void **state)
{
    struct sharer sharer;
    gpu_sharer_set(&sharer, &training.expect, SHARING_MPS, 0);
    double seen = 0.3 / interference_alone(&interference_measured, 1, 1, &sharer);
    assert_true(seen < 0.29);
    assert_float_equal(gpu_sharer_smact(NULL, &training.expect, SHARING_MPS, 0, seen), 0.3, 1e-3);
    assert_float_equal(
        gpu_sharer_smact(NULL, &training.expect, SHARING_STREAMS, 0, seen), seen, 1e-6);
    assert_float_equal(gpu_sharer_smact(NULL, &training.expect, SHARING_MPS, 0, 1), 1, 1e-6);
}

/* The task 1 has both GPUs, and is alone on GPU 0 only: there it waits for GPU 1. */
static void a_task_that_is_slowed_elsewhere_shows_no_activity(void **state)
{
    struct core *core = world_core(&policy_predictive, 2);
    world_sample(core, 0, 0, 0, 0, 0);
    world_sample(core, 0, 1, 0, 0, 0);
    struct task_request wide = training;
    wide.gpus = 2;
    assert_int_equal(world_submit(core, S, 1, wide), 0);
    assert_int_equal(world_input(core, S, EVENT_STARTED, 1), 0);
    assert_int_equal(world_submit(core, S, 2, training), 0);
    assert_int_equal(world_input(core, S, EVENT_STARTED, 2), 0);
    assert_int_equal(core_view(core)->gpus[0].n_residents, 2);
    for (int t = 2; t < 400; t++) {
        world_sample(core, t * S, 0, 8, 0.5, 0);
        world_sample(core, t * S, 1, 4, 0.1, 0);
    }
    const struct resident *alone = &core_view(core)->gpus[1].residents[0];
    assert_float_equal(alone->expect.smact.value, 0.3, 1e-6);
    world_exit(core, 400 * S, 2, FAILURE_NONE);
    for (int t = 401; t < 800; t++) {
        world_sample(core, t * S, 0, 4, 0.2, 0);
        world_sample(core, t * S, 1, 4, 0.2, 0);
    }
    assert_float_equal(alone->expect.smact.value, 0.2, 1e-6);
    core_destroy(core);
}

/* Without an MPS server the attempt is time-sliced: the same level is that of another activity. */
static void the_activity_of_a_client_is_learned_again_without_a_server(void **state)
{
    const double level = 0.25; /* the mean of a window of it is no other */
    struct core *core = world_core(&policy_predictive, 1);
    world_sample(core, 0, 0, 0, 0, 0);
    struct task_request client = training;
    client.sharing = SHARING_MPS;
    assert_int_equal(world_submit(core, S, 1, client), 0);
    for (int t = 2; t < 400; t++)
        world_sample(core, t * S, 0, 4, level, 0);
    const struct resident *resident = &core_view(core)->gpus[0].residents[0];
    assert_int_equal(resident->sharing, SHARING_MPS);
    assert_true(resident->expect.smact.value > level + 0.001);
    struct event started = {.kind = EVENT_STARTED, .time_us = 400 * S, .task = 1};
    started.started.by_streams = true;
    assert_int_equal(core_step(core, &started), 0);
    assert_int_equal(resident->sharing, SHARING_STREAMS);
    world_sample(core, 401 * S, 0, 4, level, 0);
    assert_float_equal(resident->expect.smact.value, level, 1e-12);
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_users_teach_the_model),
        cmocka_unit_test(one_user_alone_teaches_nothing_to_others),
        cmocka_unit_test(activity_that_was_declared_wrongly_teaches_nothing),
        cmocka_unit_test(a_replayed_log_has_the_same),
        cmocka_unit_test(the_activity_of_a_client_is_taken_for_that_of_a_process),
        cmocka_unit_test(a_task_that_is_slowed_elsewhere_shows_no_activity),
        cmocka_unit_test(the_activity_of_a_client_is_learned_again_without_a_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
