/* SPDX-License-Identifier: Apache-2.0 */
/* How tasks pause so that a promised one is measured alone (core/probe.h): when, for how long, and
 * that each goes on whatever happens meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/probe.h"
#include "policy/policies.h"
#include "pretend_gpus.h"

#define S SECOND_US

/* With steps of 40 ms: 1 s until they are counted, and 1.5 s. */
#define STEP_US (40.0 * MS_US)
#define STOP_US (5 * S / 2)

static struct task_request training(double smact)
{
    return (struct task_request){
        .gpus = 1, .need = {NEED_DECLARED, 4 * GIB}, .expect.smact = reading_of(smact)};
}

static void configure(struct core *core, double share)
{
    struct core_settings settings = *core_get_settings(core);
    settings.can_pause = true;
    settings.probe_share = share;
    core_configure(core, &settings);
}

static void submit(struct core *core, int64_t time_us, uint64_t task, struct task_request request)
{
    assert_int_equal(world_submit(core, time_us, task, request), 0);
    assert_int_equal(world_input(core, time_us, EVENT_STARTED, task), 0);
}

static int report(struct core *core, int64_t now_us, struct reading slowdown, double step_us)
{
    struct event event = {.kind = EVENT_SPEED, .time_us = now_us, .task = 1};
    event.slowdown = slowdown;
    event.step_us = reading_of(step_us);
    return core_step(core, &event);
}

/* Time passes second by second, and every five seconds the promised task 1 reports what its steps
 * take. Until a task pauses, or then. */
static int64_t pass_time(struct core *core, int64_t from_us, int64_t until_us, double step_us)
{
    int64_t now_us = from_us;
    while (now_us < until_us && world_state(core, 2) != TASK_PAUSED) {
        now_us += S;
        world_sample(core, now_us, 0, 8, 0.5, 0);
        if (now_us % (5 * S) == 0)
            assert_int_equal(report(core, now_us, READING_NONE, step_us), 0);
        world_check(core);
    }
    return now_us;
}

/* Task 2 runs from t=1 on, the promised task 1 beside it from t=60 on. */
static struct core *start_with(struct task_request neighbour)
{
    struct core *core = world_core(&policy_first_fit, 1);
    configure(core, 0.01);
    struct task_request promised = training(0.2);
    promised.slowdown_max = reading_of(3);
    world_sample(core, 1, 0, 0, 0, 0);
    submit(core, S, 2, neighbour);
    for (int t = 2; t <= 60; t++)
        world_sample(core, t * S, 0, 4, 0.2, 0);
    submit(core, 60 * S, 1, promised);
    assert_int_equal(world_state(core, 1), TASK_RUNNING);
    return core;
}

static struct core *start(void)
{
    return start_with(training(0.2));
}

static void finish(struct core *core)
{
    world_check(core);
    core_destroy(core);
}

static const char *explain(const struct core *core, int64_t now_us)
{
    static char text[256];
    return core_explain_promise(core, 1, now_us, text, sizeof text);
}

static void a_task_pauses_for_a_hundredth_of_its_time(void **state)
{
    struct core *core = start();
    int64_t now_us = pass_time(core, 60 * S, 150 * S, STEP_US);
    assert_int_equal(world_state(core, 2), TASK_RUNNING);
    assert_non_null(strstr(explain(core, now_us), "in 101 s at the earliest"));
    now_us = pass_time(core, now_us, 600 * S, STEP_US);
    assert_int_equal(now_us, 255 * S); /* the first report after t = 1 + 250 */
    assert_int_equal(world_state(core, 2), TASK_PAUSED);
    assert_int_equal(world_count(core, EFFECT_PAUSE, 2), 1);
    assert_non_null(strstr(explain(core, now_us), "it is measured alone now"));
    /* It is measured: the task goes on at once. */
    assert_int_equal(report(core, now_us + S + S / 2, reading_of(1), STEP_US / 2), 0);
    assert_int_equal(world_count(core, EFFECT_CONTINUE, 2), 1);
    assert_int_equal(world_state(core, 2), TASK_RUNNING);
    char text[128];
    core_explain_probes(core, core_task(core, 2), text, sizeof text);
    assert_string_equal(text, "paused 1.5 s to measure task 1 alone");
    assert_string_equal(explain(core, now_us + 2 * S), "kept");
    /* Once is enough. */
    now_us = pass_time(core, now_us + 3 * S, 300 * S, STEP_US);
    for (; now_us < 900 * S; now_us += 5 * S)
        assert_int_equal(report(core, now_us, reading_of(1.2), STEP_US), 0);
    assert_int_equal(world_state(core, 2), TASK_RUNNING);
    finish(core);
}

/* No report comes: it goes on when its time is over, and after three tries there is none. */
static void a_probe_that_measures_nothing_is_not_repeated_for_ever(void **state)
{
    struct core *core = start();
    int64_t now_us = 60 * S;
    int n = 0;
    for (; now_us < 3000 * S; now_us += S) {
        now_us = pass_time(core, now_us, 3000 * S, STEP_US);
        if (world_state(core, 2) != TASK_PAUSED)
            break;
        n++;
        assert_int_equal(core_deadline_us(core), now_us + STOP_US);
        assert_int_equal(world_input(core, now_us + STOP_US - 1, EVENT_TICK, 0), 0);
        assert_int_equal(world_state(core, 2), TASK_PAUSED);
        assert_int_equal(world_input(core, now_us + STOP_US, EVENT_TICK, 0), 0);
        assert_int_equal(world_state(core, 2), TASK_RUNNING);
        now_us += STOP_US;
        const struct task *task = core_task(core, 2);
        assert_true(task->run->yield.probed_us * 100 <= task_computed_us(task, now_us));
    }
    assert_int_equal(n, PROBE_TRIES);
    assert_non_null(strstr(explain(core, now_us), "have paused 3 times"));
    finish(core);
}

/* Its processes could not be frozen: it was beside the promised task, which is not taken for
 * alone, and no task is paused for nothing. */
static void what_could_not_be_paused_ends_the_probe(void **state)
{
    struct core *core = start();
    int64_t now_us = pass_time(core, 60 * S, 130 * S, STEP_US);
    submit(core, now_us, 3, training(0.2));
    now_us = pass_time(core, now_us, 900 * S, STEP_US);
    assert_int_equal(world_state(core, 3), TASK_PAUSED);
    struct event failed = {.kind = EVENT_SUSPENSION_FAILED, .time_us = now_us, .task = 2};
    failed.suspension_failed.why = SUSPENSION_REFUSED;
    assert_int_equal(core_step(core, &failed), 0);
    assert_int_equal(world_state(core, 2), TASK_RUNNING);
    assert_int_equal(world_state(core, 3), TASK_RUNNING);
    assert_int_equal(core_task(core, 1)->run->promise.probe_until_us, now_us);
    assert_string_equal(explain(core, now_us), "not measured yet: held by prediction; it is not "
                                               "measured alone: task 2 could not be paused");
    char text[128];
    assert_string_equal(core_explain_probes(core, core_task(core, 2), text, sizeof text), "");
    now_us = pass_time(core, now_us, 3000 * S, STEP_US);
    assert_int_equal(world_state(core, 3), TASK_RUNNING);
    /* For the task without it, there is one again. */
    assert_int_equal(world_exit(core, now_us, 2, FAILURE_NONE), 0);
    for (int64_t end_us = now_us + 300 * S; now_us < end_us; now_us += S)
        world_sample(core, now_us, 0, 8, 0.4, 0);
    assert_int_equal(report(core, now_us, READING_NONE, STEP_US), 0);
    assert_int_equal(world_state(core, 3), TASK_PAUSED);
    finish(core);
}

static void it_goes_on_when_the_promised_task_ends(void **state)
{
    struct core *core = start();
    int64_t now_us = pass_time(core, 60 * S, 600 * S, STEP_US);
    assert_int_equal(world_exit(core, now_us + S, 1, FAILURE_NONE), 0);
    assert_int_equal(world_state(core, 2), TASK_RUNNING);
    assert_int_equal(world_count(core, EFFECT_CONTINUE, 2), 1);
    finish(core);
}

static void a_paused_task_can_be_cancelled_and_suspended(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct core *core = start();
        int64_t now_us = pass_time(core, 60 * S, 600 * S, STEP_US);
        enum event_kind kind = i ? EVENT_CANCEL : EVENT_SUSPEND;
        assert_int_equal(world_input(core, now_us + 1, kind, 2), 0);
        assert_int_equal(world_input(core, now_us + 9 * S, EVENT_TICK, 0), 0);
        assert_int_equal(world_state(core, 2), i ? TASK_ENDING : TASK_PAUSED);
        if (i == 0) /* its user's order outlasts the probe */
            assert_int_equal(world_input(core, now_us + 10 * S, EVENT_RESUME, 2), 0);
        assert_int_equal(world_state(core, 2), i ? TASK_ENDING : TASK_RUNNING);
        finish(core);
    }
}

/* As a daemon that was killed: the log has the pause, and no reports. */
static void after_a_crash_it_goes_on(void **state)
{
    struct core *core = start();
    int64_t now_us = pass_time(core, 60 * S, 600 * S, STEP_US);
    int n;
    const struct effect *effects = core_effects(core, &n);
    assert_true(n > 0 && effects[0].kind == EFFECT_APPEND);
    struct event pause = effects[0].event;
    assert_int_equal(pause.yield.until_us, now_us + STOP_US);

    struct core *replayed = start();
    assert_int_equal(core_apply(replayed, &pause), 0);
    assert_int_equal(world_state(replayed, 2), TASK_PAUSED);
    assert_int_equal(world_input(replayed, now_us + 1, EVENT_TICK, 0), 0);
    assert_int_equal(world_state(replayed, 2), TASK_PAUSED);
    assert_int_equal(core_deadline_us(replayed), now_us + STOP_US);
    assert_int_equal(world_input(replayed, now_us + 100 * S, EVENT_STARTED, 2), 0);
    assert_int_equal(world_state(replayed, 2), TASK_RUNNING);
    assert_int_equal(world_count(replayed, EFFECT_CONTINUE, 2), 1);
    finish(replayed);
    finish(core);
}

static void nothing_comes_beside_it_meanwhile(void **state)
{
    struct core *core = start();
    int64_t now_us = pass_time(core, 60 * S, 600 * S, STEP_US);
    assert_int_equal(world_submit(core, now_us + 1, 3, training(0.1)), 0);
    assert_int_equal(world_state(core, 3), TASK_QUEUED);
    assert_int_equal(world_input(core, now_us + STOP_US, EVENT_TICK, 0), 0);
    world_sample(core, now_us + STOP_US + 1, 0, 8, 0.5, 0);
    assert_int_equal(world_state(core, 3), TASK_STARTING);
    finish(core);
}

/* Returns why there is no probe for an hour. */
static const char *why_none(struct core *core, double step_us)
{
    int64_t now_us = pass_time(core, 60 * S, 3600 * S, step_us);
    assert_int_equal(world_state(core, 2), TASK_RUNNING);
    return explain(core, now_us);
}

static void some_are_not_paused(void **state)
{
    struct core *core = start();
    assert_non_null(strstr(why_none(core, 161.0 * MS_US), "take too long for a pause of 5 s"));
    finish(core);
    core = start();
    configure(core, 0);
    assert_string_equal(why_none(core, STEP_US), "not measured yet: held by prediction");
    finish(core);
    struct task_request service = training(0.2);
    service.service.is_service = true;
    core = start_with(service);
    assert_non_null(strstr(why_none(core, STEP_US), "task 2 does not pause for that"));
    finish(core);
    core = start();
    world_sample(core, 61 * S, 0, 8, 0.5, 1);
    struct event event = {.kind = EVENT_SPEED, .time_us = 400 * S, .task = 1};
    event.step_us = reading_of(STEP_US);
    assert_int_equal(core_step(core, &event), 0);
    assert_int_equal(world_state(core, 2), TASK_RUNNING);
    assert_non_null(strstr(explain(core, 400 * S), "cannot pause all that may compute there"));
    finish(core);
}

/* Steps that no training makes are no report. */
static void a_false_report_is_refused(void **state)
{
    struct core *core = start();
    assert_int_equal(report(core, 300 * S, READING_NONE, -1), CORE_NOT_NOW);
    assert_int_equal(report(core, 300 * S, READING_NONE, 0), CORE_NOT_NOW);
    assert_int_equal(world_state(core, 2), TASK_RUNNING);
    finish(core);
}

/* A task that claimed, while it was alone, to be ten times as fast as beside the other one gains
 * no more than by any other claim. */
static void a_claim_is_believed_within_its_bound(void **state)
{
    struct core *core = start();
    int64_t now_us = pass_time(core, 60 * S, 600 * S, STEP_US);
    assert_int_equal(report(core, now_us + S, reading_of(1), STEP_US / 10), 0);
    for (int i = 1; i <= 20; i++)
        assert_int_equal(report(core, now_us + S + i * 5 * S, reading_of(10), STEP_US), 0);
    assert_true(core_task(core, 1)->run->promise.slowdown.value < 2);
    assert_int_equal(world_state(core, 2), TASK_RUNNING);
    finish(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_pauses_for_a_hundredth_of_its_time),
        cmocka_unit_test(a_probe_that_measures_nothing_is_not_repeated_for_ever),
        cmocka_unit_test(what_could_not_be_paused_ends_the_probe),
        cmocka_unit_test(it_goes_on_when_the_promised_task_ends),
        cmocka_unit_test(a_paused_task_can_be_cancelled_and_suspended),
        cmocka_unit_test(after_a_crash_it_goes_on),
        cmocka_unit_test(nothing_comes_beside_it_meanwhile),
        cmocka_unit_test(some_are_not_paused),
        cmocka_unit_test(a_false_report_is_refused),
        cmocka_unit_test(a_claim_is_believed_within_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
