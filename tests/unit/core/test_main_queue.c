/* SPDX-License-Identifier: Apache-2.0 */
/* Whose task is next: users take turns by what they have used of their shares. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "policy/policies.h"
#include "pretend_gpus.h"

#define S      SECOND_US
#define MINUTE (60 * SECOND_US)
#define HOUR   HOUR_US

enum { ADA = 1000, BOB = 1001, CARL = 1002 };

static const struct task_request plain = {.gpus = 1};

static void submit(
    struct core *core, int64_t time_us, uint64_t task, uint32_t uid, struct task_request request)
{
    struct event event = {.kind = EVENT_SUBMIT, .time_us = time_us, .task = task};
    event.submit.uid = uid;
    event.submit.request = request;
    assert_int_equal(core_step(core, &event), 0);
}

/* A core that gives out whole GPUs, all idle. */
static struct core *start(int n_gpus)
{
    struct core *core = world_core(&policy_exclusive, n_gpus);
    for (int i = 0; i < n_gpus; i++)
        assert_int_equal(world_sample(core, 1, i, 0, 0, 0), 0);
    return core;
}

/* The task ends, and its GPU is seen idle. */
static void end(struct core *core, int64_t time_us, uint64_t task)
{
    int gpu = core_task(core, task)->gpus[0];
    assert_int_equal(world_exit(core, time_us, task, FAILURE_NONE), 0);
    assert_int_equal(world_sample(core, time_us, gpu, 0, 0, 0), 0);
    world_check(core);
}

static bool runs(const struct core *core, uint64_t task)
{
    return task_state_holds_gpus(world_state(core, task));
}

static struct user_standing standing(const struct core *core, uint32_t uid, int64_t now_us)
{
    for (int i = 0; i < core_user_count(core); i++) {
        struct user_standing user = core_user_standing(core, i, now_us);
        if (user.uid == uid)
            return user;
    }
    fail_msg("user %u is not known", uid);
    return (struct user_standing){0};
}

static double hours_used(const struct core *core, uint32_t uid, int64_t now_us)
{
    return (double)standing(core, uid, now_us).usage_us / (double)HOUR;
}

/* Usage is recorded, and so decides, once the charging period is over. */
static void pass_time(struct core *core, int64_t time_us)
{
    assert_int_equal(world_input(core, time_us, EVENT_TICK, 0), 0);
    world_check(core);
}

/* ---- turns ---- */

static void a_flood_leaves_the_other_user_his_turn(void **state)
{
    struct core *core = start(2);
    assert_int_equal(world_input(core, 2, EVENT_TICK, 0), 0);
    for (uint64_t id = 1; id <= 6; id++)
        submit(core, 2, id, ADA, plain);
    submit(core, 3, 7, BOB, plain);
    submit(core, 3, 8, BOB, plain);
    assert_true(runs(core, 1) && runs(core, 2));
    end(core, 10, 1);
    assert_true(runs(core, 7)); /* ada holds a GPU, bob none */
    end(core, 20, 2);
    assert_true(runs(core, 3)); /* bob holds a GPU, ada none */
    end(core, 30, 7);
    assert_true(runs(core, 8));
    core_destroy(core);
}

static void assert_ahead(const struct core *core, uint64_t id, int n, int of_others)
{
    int others;
    assert_int_equal(core_ahead_of(core, core_task(core, id), &others), n);
    assert_int_equal(others, of_others);
}

/* The tasks of others that come first are counted once for all tasks of a user, until a change. */
static void the_tasks_before_one_follow_each_change(void **state)
{
    struct core *core = start(1);
    assert_int_equal(world_input(core, 2, EVENT_TICK, 0), 0);
    for (uint64_t id = 1; id <= 4; id++)
        submit(core, 2, id, ADA, plain);
    assert_ahead(core, 4, 2, 0);
    submit(core, 3, 5, BOB, plain);
    submit(core, 3, 6, BOB, plain);
    assert_ahead(core, 4, 4, 2); /* ada holds the GPU */
    assert_ahead(core, 3, 3, 2);
    assert_ahead(core, 6, 1, 0);
    assert_int_equal(world_input(core, 4, EVENT_CANCEL, 5), 0);
    assert_ahead(core, 4, 3, 1);
    struct core_settings settings = *core_get_settings(core);
    settings.order = ORDER_FIFO;
    core_configure(core, &settings);
    assert_ahead(core, 6, 3, 0);
    settings.order = ORDER_FAIR;
    core_configure(core, &settings);
    assert_ahead(core, 4, 3, 1);
    core_destroy(core);
}

static void who_has_used_less_is_next(void **state)
{
    struct core *core = start(1);
    submit(core, 2, 1, ADA, plain);
    pass_time(core, 3 * HOUR);
    submit(core, 3 * HOUR, 2, ADA, plain);
    submit(core, 3 * HOUR, 3, BOB, plain);
    end(core, 3 * HOUR + S, 1);
    assert_true(runs(core, 3));
    end(core, 4 * HOUR, 3);
    assert_true(runs(core, 2)); /* bob has no more */
    submit(core, 4 * HOUR, 4, BOB, plain);
    submit(core, 4 * HOUR, 5, ADA, plain);
    end(core, 5 * HOUR, 2);
    assert_true(runs(core, 4)); /* ada 4 h, bob 1 h */
    core_destroy(core);
}

static void shares_weigh_usage(void **state)
{
    struct share_table table;
    share_table_init(&table);
    table.users[0] = (struct user_shares){.uid = ADA, .shares = 4};
    table.n_users = 1;
    struct core *core = start(1);
    struct core_settings settings = *core_get_settings(core);
    settings.shares = &table;
    core_configure(core, &settings);
    submit(core, 2, 1, ADA, plain);
    pass_time(core, 3 * HOUR);
    end(core, 3 * HOUR, 1);
    submit(core, 3 * HOUR, 2, BOB, plain);
    pass_time(core, 4 * HOUR);
    submit(core, 4 * HOUR, 3, BOB, plain);
    submit(core, 4 * HOUR, 4, ADA, plain);
    end(core, 4 * HOUR, 2);
    assert_true(runs(core, 4)); /* 3 h of 4 shares are less than 1 h of 1 */
    assert_int_equal(standing(core, ADA, 4 * HOUR).shares, 4);
    core_destroy(core);
}

static void with_fifo_the_oldest_is_next(void **state)
{
    struct core *core = start(1);
    struct core_settings settings = *core_get_settings(core);
    settings.order = ORDER_FIFO;
    core_configure(core, &settings);
    for (uint64_t id = 1; id <= 3; id++)
        submit(core, 2, id, ADA, plain);
    submit(core, 3, 4, BOB, plain);
    end(core, 10, 1);
    assert_true(runs(core, 2));
    settings.order = ORDER_FAIR; /* while tasks wait */
    core_configure(core, &settings);
    world_check(core);
    assert_int_equal(core_queued_count(core), 2);
    end(core, 20, 2);
    assert_true(runs(core, 4));
    settings.order = ORDER_FIFO;
    core_configure(core, &settings);
    world_check(core);
    end(core, 30, 4);
    assert_true(runs(core, 3));
    core_destroy(core);
}

static void positions_follow_the_turns(void **state)
{
    char text[256];
    int others;
    struct core *core = start(1);
    submit(core, 2, 1, ADA, plain);
    pass_time(core, HOUR);
    for (uint64_t id = 2; id <= 4; id++)
        submit(core, HOUR, id, ADA, plain);
    submit(core, HOUR, 5, BOB, plain);
    submit(core, HOUR, 6, BOB, plain);
    assert_int_equal(core_ahead_of(core, core_task(core, 5), NULL), 0);
    assert_int_equal(core_ahead_of(core, core_task(core, 6), NULL), 1);
    assert_int_equal(core_ahead_of(core, core_task(core, 3), &others), 3);
    assert_int_equal(others, 2);
    assert_string_equal(core_explain(core, 3, HOUR, text, sizeof text),
        "3 tasks are before it in the queue, 2 of other users, who come first by fair share (rank "
        "of its user: 2)"); /* the GPU was never sampled: it is not reserved */
    assert_string_equal(core_reason_word(core, 3), "Priority");
    assert_string_equal(core_reason_word(core, 5), "Resources");
    core_destroy(core);
}

/* ---- queues that cannot go on do not stop the others ---- */

static void a_task_beyond_the_working_gpus_stops_only_its_user(void **state)
{
    char text[256];
    struct core *core = start(2);
    struct task_request both = {.gpus = 2};
    submit(core, 2, 1, ADA, plain);
    submit(core, 2, 2, ADA, plain);
    pass_time(core, HOUR);
    struct event lost = {.kind = EVENT_SAMPLE, .time_us = HOUR, .sample = {.gpu = 1, .lost = true}};
    submit(core, HOUR, 3, BOB, both); /* his turn, but one GPU is lost */
    submit(core, HOUR, 4, ADA, plain);
    assert_int_equal(core_step(core, &lost), 0);
    end(core, HOUR + S, 1);
    assert_true(runs(core, 4));
    core_explain(core, 3, HOUR + S, text, sizeof text);
    assert_non_null(strstr(text, "GPU 1: lost"));
    core_destroy(core);
}

static void an_estimate_under_way_stops_only_its_user(void **state)
{
    struct core *core = start(1);
    struct task_request pending = {.gpus = 1, .need = {NEED_PENDING, 0}};
    submit(core, 2, 1, ADA, plain);
    pass_time(core, HOUR);
    submit(core, HOUR, 2, BOB, pending);
    submit(core, HOUR, 3, ADA, plain);
    end(core, HOUR + S, 1);
    assert_true(runs(core, 3));
    core_destroy(core);
}

/* ---- what is charged ---- */

static void a_whole_gpu_is_charged_whole(void **state)
{
    struct core *core = start(2);
    struct task_request both = {.gpus = 2};
    submit(core, 2, 1, ADA, both);
    pass_time(core, HOUR);
    assert_float_equal(hours_used(core, ADA, HOUR), 2, 0.01);
    end(core, HOUR, 1);
    pass_time(core, 2 * HOUR);
    assert_float_equal(hours_used(core, ADA, HOUR + 7 * 24 * HOUR), 1, 0.01);
    core_destroy(core);
}

/* Two tasks on one GPU: ada's is expected to be three times as active, bob's holds more memory. */
static void a_shared_gpu_is_charged_by_activity_or_memory(void **state)
{
    struct core *core = world_core(&policy_magm, 1);
    struct task_request heavy = {.gpus = 1, .need = {NEED_ESTIMATED, 4 * GIB}},
                        light = {.gpus = 1, .need = {NEED_ESTIMATED, 4 * GIB}};
    heavy.expect.smact = reading_of(0.45);
    light.expect.smact = reading_of(0.15);
    assert_int_equal(world_sample(core, 1, 0, 0, 0, 0), 0);
    submit(core, 2, 1, ADA, heavy);
    world_input(core, 2, EVENT_STARTED, 1);
    for (int64_t i = 1; i <= 100; i++)
        world_sample(core, i * S, 0, 4, 0.45, 0);
    submit(core, 100 * S, 2, BOB, light);
    assert_true(runs(core, 2));
    double ada = hours_used(core, ADA, 100 * S);
    for (int64_t i = 100; i <= 3700; i++)
        world_sample(core, i * S, 0, 16, 0.6, 0);
    assert_float_equal(hours_used(core, ADA, 3700 * S) - ada, 0.45, 0.02);
    assert_float_equal(hours_used(core, BOB, 3700 * S), 0.2, 0.01); /* 8 of 40 GiB */
    core_destroy(core);
}

static void a_suspended_task_is_charged_little(void **state)
{
    struct core *core = world_core(&policy_magm, 1);
    struct core_settings settings = *core_get_settings(core);
    settings.can_suspend = true;
    core_configure(core, &settings);
    assert_int_equal(world_sample(core, 1, 0, 0, 0, 0), 0);
    submit(core, 2, 1, ADA, plain);
    world_input(core, 2, EVENT_STARTED, 1);
    world_sample(core, S, 0, 20, 0.5, 0);
    assert_int_equal(world_input(core, S, EVENT_SUSPEND, 1), 0);
    struct event suspended = {.kind = EVENT_SUSPENDED, .time_us = 2 * S, .task = 1};
    suspended.yielded.bytes = reading_of(20 * GIB);
    assert_int_equal(core_step(core, &suspended), 0);
    for (int64_t i = 1; i <= 40; i++)
        pass_time(core, i * 15 * MINUTE);
    assert_float_equal(hours_used(core, ADA, 10 * HOUR), 10 * 0.05 * 0.5, 0.02);
    core_destroy(core);
}

static void without_a_half_life_nothing_is_charged(void **state)
{
    int n;
    struct core *core = start(1);
    struct core_settings settings = *core_get_settings(core);
    settings.usage_half_life_us = 0;
    core_configure(core, &settings);
    submit(core, 2, 1, ADA, plain);
    pass_time(core, HOUR);
    core_effects(core, &n);
    assert_int_equal(n, 0);
    assert_int_equal(standing(core, ADA, HOUR).usage_us, 0);
    core_destroy(core);
}

/* ---- what the log holds ---- */

/* Only the last USAGE of a user matters, also of one whose tasks are forgotten. */
static void sample_both(struct core *core, int64_t time_us, double used_gib, double smact)
{
    assert_int_equal(world_sample(core, time_us, 0, used_gib, smact, 0), 0);
    assert_int_equal(world_sample(core, time_us, 1, used_gib, smact, 0), 0);
}

/* On each of two compute instances the activity and the memory of both are measured. */
static void instances_that_share_memory_are_charged_once(void **state)
{
    struct core *core = world_instances_core(&policy_magm, 2, 0);
    struct task_request small = {.gpus = 1, .need = {NEED_DECLARED, 4 * GIB}};
    submit(core, 2, 1, ADA, small);
    for (int i = 1; i <= 20; i++)
        sample_both(core, i * S, 4, 0.6);
    submit(core, 20 * S, 2, BOB, small);
    assert_true(runs(core, 1) && runs(core, 2));
    for (int i = 1; i <= 60; i++)
        sample_both(core, 20 * S + i * HOUR / 60, 8, 0.6);
    pass_time(core, HOUR + 20 * S);
    assert_float_equal(hours_used(core, ADA, HOUR), 0.3, 0.02);
    assert_float_equal(hours_used(core, BOB, HOUR), 0.3, 0.02);
    core_destroy(core);
}

static void usage_follows_from_the_last_event(void **state)
{
    struct core *core = start(1);
    struct event events[] = {
        {.kind = EVENT_USAGE, .time_us = HOUR, .usage = {.uid = BOB, .usage_us = 5 * HOUR}},
        {.kind = EVENT_USAGE, .time_us = 2 * HOUR, .usage = {.uid = BOB, .usage_us = 4 * HOUR}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(events); i++)
        assert_int_equal(core_apply(core, &events[i]), 0);
    assert_int_equal(standing(core, BOB, 2 * HOUR).usage_us, 4 * HOUR);
    assert_int_equal(standing(core, BOB, 2 * HOUR + 7 * 24 * HOUR).usage_us, 2 * HOUR);
    assert_int_equal(world_sample(core, 2 * HOUR, 0, 0, 0, 0), 0);
    submit(core, 2 * HOUR, 1, CARL, plain);
    submit(core, 2 * HOUR, 2, BOB, plain);
    submit(core, 2 * HOUR, 3, ADA, plain);
    end(core, 2 * HOUR + S, 1);
    assert_true(runs(core, 3));
    core_destroy(core);
}

/* Ada's task 1 runs for an hour. Bob has used nothing: his task comes before hers of the same
 * priority. */
static void a_task_that_begins_later_is_ranked_as_its_user(void **state)
{
    struct core *core = start(1);
    const struct task_request later = {.gpus = 1, .begin_us = 10 * HOUR},
                              urgent = {
                                  .gpus = 1, .begin_us = 10 * HOUR, .priority = PRIORITY_HIGH};
    submit(core, 1, 1, ADA, plain);
    submit(core, 2, 2, ADA, later);
    submit(core, 3, 3, ADA, plain);
    submit(core, 4, 4, BOB, later);
    submit(core, 5, 5, ADA, later);
    submit(core, 6, 6, ADA, urgent);
    pass_time(core, HOUR);
    const struct task *waiting = core_task(core, 3);
    assert_true(core_would_come_before(core, core_task(core, 2), waiting));
    assert_true(core_would_come_before(core, core_task(core, 4), waiting));
    assert_false(core_would_come_before(core, core_task(core, 5), waiting));
    assert_true(core_would_come_before(core, core_task(core, 6), core_task(core, 4)));
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_leaves_the_other_user_his_turn),
        cmocka_unit_test(the_tasks_before_one_follow_each_change),
        cmocka_unit_test(who_has_used_less_is_next),
        cmocka_unit_test(shares_weigh_usage),
        cmocka_unit_test(with_fifo_the_oldest_is_next),
        cmocka_unit_test(positions_follow_the_turns),
        cmocka_unit_test(a_task_beyond_the_working_gpus_stops_only_its_user),
        cmocka_unit_test(an_estimate_under_way_stops_only_its_user),
        cmocka_unit_test(a_whole_gpu_is_charged_whole),
        cmocka_unit_test(a_shared_gpu_is_charged_by_activity_or_memory),
        cmocka_unit_test(a_suspended_task_is_charged_little),
        cmocka_unit_test(without_a_half_life_nothing_is_charged),
        cmocka_unit_test(instances_that_share_memory_are_charged_once),
        cmocka_unit_test(usage_follows_from_the_last_event),
        cmocka_unit_test(a_task_that_begins_later_is_ranked_as_its_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
