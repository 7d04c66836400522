/* SPDX-License-Identifier: Apache-2.0 */
/* When measured speeds say that too many share a GPU, and when they say nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/policies.h"
#include "pretend_gpus.h"

#define S SECOND_US

/* Two tasks on one GPU, and how many times as long as alone each is measured to take; 0: it is
 * not. */
struct mix {
    bool is_off;     /* the setting */
    int n_known;     /* of the tasks from the first on: their activity is known */
    double promised; /* to the first; 0: nothing */
    double slowdowns[2];
};

static struct core *start(const struct mix *mix)
{
    struct core *core = world_core(&policy_first_fit, 1);
    struct core_settings settings = *core_get_settings(core);
    settings.can_suspend = settings.can_pause = true;
    settings.thins_out = !mix->is_off;
    core_configure(core, &settings);
    world_sample(core, 1, 0, 0, 0, 0);
    for (uint64_t task = 1; task <= 2; task++) {
        int64_t at_s = task == 1 ? 1 : 60;
        struct task_request request = {.gpus = 1, .need = {NEED_DECLARED, 4 * GIB}};
        if ((int)task <= mix->n_known)
            request.expect.smact = reading_of(0.4);
        if (task == 1 && mix->promised > 0)
            request.slowdown_max = reading_of(mix->promised);
        assert_int_equal(world_submit(core, at_s * S, task, request), 0);
        assert_int_equal(world_input(core, at_s * S, EVENT_STARTED, task), 0);
        for (int64_t t = at_s + 1; t <= 60; t++)
            world_sample(core, t * S, 0, 4, 0.4, 0);
        assert_int_equal(world_state(core, task), TASK_RUNNING);
    }
    return core;
}

/* Reports the speeds as the daemon does. Returns when the second task gave way, in seconds since
 * its start; 0: not within five minutes. */
static int gives_way_after(const struct mix *mix)
{
    struct core *core = start(mix);
    int after_s = 0;
    for (int t = 1; t <= 300 && !after_s; t++) {
        int64_t now_us = (60 + t) * S;
        world_sample(core, now_us, 0, 8, 0.9, 0);
        for (uint64_t task = 1; task <= 2 && t % 5 == 0; task++) {
            struct event event = {.kind = EVENT_SPEED, .time_us = now_us, .task = task};
            event.slowdown = reading_of(mix->slowdowns[task - 1]);
            if (event.slowdown.value > 0)
                assert_int_equal(core_step(core, &event), 0);
        }
        world_check(core);
        after_s = world_state(core, 2) == TASK_RUNNING ? 0 : t;
    }
    assert_int_equal(world_state(core, 2), after_s ? TASK_SUSPENDING : TASK_RUNNING);
    assert_int_equal(world_state(core, 1), TASK_RUNNING);
    core_destroy(core);
    return after_s;
}

/* Not before it has computed for 20 times as long as a stop and a return take, 3.7 s at 4 GiB. */
static void it_gives_way_where_one_alone_gets_more_done(void **state)
{
    int after_s = gives_way_after(&(struct mix){.slowdowns = {2.6, 2.6}});
    assert_in_range(after_s, 60, 90);
}

static void it_stays_where_both_get_more_done(void **state)
{
    assert_int_equal(gives_way_after(&(struct mix){.slowdowns = {1.9, 1.9}}), 0);
    assert_int_equal(gives_way_after(&(struct mix){.slowdowns = {1.0, 1.0}}), 0);
}

static void without_all_speeds_nothing_is_known(void **state)
{
    assert_int_equal(gives_way_after(&(struct mix){.slowdowns = {2.6, 0}}), 0);
    assert_int_equal(gives_way_after(&(struct mix){.slowdowns = {0, 2.6}}), 0);
}

/* They were let in by what is known, and that stands. */
static void of_known_activity_it_stays(void **state)
{
    struct mix mix = {.n_known = 2, .slowdowns = {2.6, 2.6}};
    assert_int_equal(gives_way_after(&mix), 0);
    mix = (struct mix){.n_known = 1, .slowdowns = {2.6, 2.6}};
    assert_in_range(gives_way_after(&mix), 60, 90);
}

/* The promise comes first, and is kept here. */
static void beside_a_promise_it_stays(void **state)
{
    const struct mix kept = {.promised = 10, .slowdowns = {2.6, 2.6}};
    assert_int_equal(gives_way_after(&kept), 0);
}

static void the_setting_turns_it_off(void **state)
{
    assert_int_equal(gives_way_after(&(struct mix){.is_off = true, .slowdowns = {2.6, 2.6}}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_gives_way_where_one_alone_gets_more_done),
        cmocka_unit_test(it_stays_where_both_get_more_done),
        cmocka_unit_test(without_all_speeds_nothing_is_known),
        cmocka_unit_test(of_known_activity_it_stays),
        cmocka_unit_test(beside_a_promise_it_stays),
        cmocka_unit_test(the_setting_turns_it_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
