/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual-clock driver: the order of what comes due, its clock, and what an observer sees. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "policy/policies.h"
#include "sim/sim_driver.h"

enum { N = 3000 };

/* The order in which wake-ups came due. */
struct order {
    uint64_t seen[N];
    int64_t at_us[N];
    int n;
};

static void on_start(void *context, struct sim *sim, const struct task *task)
{
    struct event event = {.kind = EVENT_STARTED, .time_us = sim_now_us(sim), .task = task->id};
    sim_schedule_event(sim, &event);
}

static void on_kill(void *context, struct sim *sim, const struct task *task)
{
    struct event event = {.kind = EVENT_EXITED, .time_us = sim_now_us(sim), .task = task->id};
    event.exited.failure = task->ending;
    sim_schedule_event(sim, &event);
}

static void on_wake(void *context, struct sim *sim, const struct sim_wakeup *wakeup)
{
    struct order *order = context;
    assert_int_equal(sim_now_us(sim), wakeup->time_us);
    assert_int_equal(wakeup->version, -(int)wakeup->subject);
    order->at_us[order->n] = wakeup->time_us;
    order->seen[order->n++] = wakeup->subject;
}

static struct sim *start(struct order *order, struct sim_world *world)
{
    struct core_settings settings = core_settings_default();
    settings.policy = &policy_magm;
    settings.conditions.sample_valid_us = INT64_MAX / 2;
    *order = (struct order){0};
    *world = (struct sim_world){order, on_start, on_kill, on_wake, NULL};
    struct sim *sim = sim_create(&settings, world, NULL);
    assert_non_null(sim);
    return sim;
}

static void wake_at(struct sim *sim, int64_t time_us, uint64_t number)
{
    struct sim_wakeup wakeup = {.time_us = time_us, .subject = number, .version = -(int)number};
    assert_int_equal(sim_schedule_wakeup(sim, &wakeup), 0);
}

static void events_come_by_time_then_by_order_of_scheduling(void **state)
{
    struct order *order = calloc(1, sizeof *order);
    struct sim_world world;
    struct sim *sim = start(order, &world);
    uint32_t random = 7;
    for (uint64_t i = 0; i < N; i++) {
        random = random * 1664525u + 1013904223u;
        wake_at(sim, (random >> 16) % 50, i);
    }
    assert_int_equal(sim_run(sim, 1000), 0);
    assert_int_equal(order->n, N);
    for (int i = 1; i < N; i++)
        assert_true(
            order->at_us[i - 1] < order->at_us[i] ||
            (order->at_us[i - 1] == order->at_us[i] && order->seen[i - 1] < order->seen[i]));
    sim_destroy(sim);
    free(order);
}

static void the_clock_stops_where_it_is_told_and_never_goes_back(void **state)
{
    struct order order;
    struct sim_world world;
    struct sim *sim = start(&order, &world);
    wake_at(sim, 10, 1);
    wake_at(sim, 20, 2);
    assert_int_equal(sim_run(sim, 10), 0);
    assert_int_equal(order.n, 1);
    wake_at(sim, 5, 3);
    assert_int_equal(sim_run(sim, 19), 0);
    assert_int_equal(order.n, 2);
    assert_int_equal(order.seen[1], 3);
    assert_int_equal(order.at_us[1], 10);
    assert_int_equal(sim_run(sim, 20), 0);
    assert_int_equal(order.n, 3);
    sim_destroy(sim);
}

static void a_time_limit_is_met_without_anyone_ticking(void **state)
{
    struct order order;
    struct sim_world world;
    struct sim *sim = start(&order, &world);
    struct gpu_identity gpu = {.uuid = "GPU-0", .is_place = true, .mem_total_bytes = 40 * GIB};
    struct event gpus = {.kind = EVENT_GPUS, .gpus = {.list = &gpu, .n = 1}};
    struct event idle = {.kind = EVENT_SAMPLE};
    idle.sample.mem_used_bytes = idle.sample.external_processes = reading_of(0);
    struct event submit = {.kind = EVENT_SUBMIT, .time_us = 3, .task = 1};
    submit.submit.request = (struct task_request){.gpus = 1, .time_limit_us = 10 * SECOND_US};
    sim_schedule_event(sim, &gpus);
    sim_schedule_event(sim, &idle);
    sim_schedule_event(sim, &submit);
    assert_int_equal(sim_run(sim, DAY_US), 0);
    const struct task *task = core_task(sim_core(sim), 1);
    assert_int_equal(task->state, TASK_TIMEOUT);
    assert_int_equal(task->ended_us, 3 + 10 * SECOND_US);
    sim_destroy(sim);
}

/* Notes what it sees as text: "SUBMIT 1, wait 1, ". */
struct notes {
    char text[256];
};

static void note_event(void *context, struct sim *sim, const struct event *event)
{
    struct notes *notes = context;
    size_t n = strlen(notes->text);
    snprintf(notes->text + n, sizeof notes->text - n, "%s %d, ", event_name(event->kind),
        (int)event->task);
}

static void note_wait(void *context, struct sim *sim, uint64_t task)
{
    struct notes *notes = context;
    size_t n = strlen(notes->text);
    snprintf(notes->text + n, sizeof notes->text - n, "wait %d, ", (int)task);
}

static void an_observer_sees_inputs_decisions_and_waits_in_order(void **state)
{
    struct notes notes = {""};
    struct order order = {.n = 0};
    const struct sim_world world = {&order, on_start, on_kill, on_wake, NULL};
    const struct sim_observer observer = {&notes, note_event, note_wait};
    struct core_settings settings = core_settings_default();
    settings.policy = &policy_exclusive;
    struct sim *sim = sim_create(&settings, &world, &observer);
    struct gpu_identity gpu = {.uuid = "GPU-0", .is_place = true, .mem_total_bytes = 40 * GIB};
    struct event gpus = {.kind = EVENT_GPUS, .gpus = {.list = &gpu, .n = 1}};
    struct event idle = {.kind = EVENT_SAMPLE};
    idle.sample.mem_used_bytes = idle.sample.external_processes = reading_of(0);
    sim_schedule_event(sim, &gpus);
    sim_schedule_event(sim, &idle);
    for (uint64_t id = 1; id <= 2; id++) {
        struct event submit = {.kind = EVENT_SUBMIT, .time_us = 1, .task = id};
        submit.submit.request = (struct task_request){.gpus = 1};
        sim_schedule_event(sim, &submit);
        wake_at(sim, 1, id);
    }
    assert_int_equal(sim_run(sim, 1), 0);
    assert_string_equal(
        notes.text, "GPUS 0, SAMPLE 0, SUBMIT 1, PLACE 1, SUBMIT 2, wait 2, STARTED 1, ");
    assert_int_equal(order.n, 2); /* wake-ups are the world's, and no event of the core */
    sim_destroy(sim);
}

static void a_refused_event_is_no_fault(void **state)
{
    struct order order;
    struct sim_world world;
    struct sim *sim = start(&order, &world);
    struct event cancel = {.kind = EVENT_CANCEL, .task = 9};
    assert_int_equal(sim_step(sim, &cancel), CORE_NO_SUCH_TASK);
    sim_schedule_event(sim, &cancel);
    assert_int_equal(sim_run(sim, 1), 0);
    sim_destroy(sim);
}

static void wake_again(void *context, struct sim *sim, const struct sim_wakeup *wakeup)
{
    sim_schedule_wakeup(sim, wakeup);
}

static void what_repeats_while_no_time_passes_is_an_error(void **state)
{
    struct order order;
    struct sim_world world;
    struct sim *sim = start(&order, &world);
    struct event submit = {.kind = EVENT_SUBMIT, .time_us = 1, .task = 7};
    submit.submit.request = (struct task_request){.gpus = 1};
    world.wake = wake_again;
    sim_schedule_event(sim, &submit);
    wake_at(sim, 1, 1);
    assert_int_equal(sim_run(sim, 1), -ELOOP);
    assert_int_equal(sim_last_task(sim), 7);
    sim_destroy(sim);
}

/* The core has a deadline as long as a task waits, for another one may give way to it later. */
static void a_task_that_waits_for_nothing_but_time_is_an_error(void **state)
{
    struct order order;
    struct sim_world world;
    struct core_settings settings = core_settings_default();
    settings.policy = &policy_magm;
    settings.make_room = settings.can_suspend = true;
    sim_destroy(start(&order, &world));
    struct sim *sim = sim_create(&settings, &world, NULL);
    struct event submit = {.kind = EVENT_SUBMIT, .time_us = 1, .task = 7};
    submit.submit.request = (struct task_request){.gpus = 1};
    sim_schedule_event(sim, &submit);
    assert_int_equal(sim_run(sim, DAY_US), 0);
    assert_int_equal(sim_run(sim, TIME_NEVER), -EDEADLK);
    assert_int_equal(core_task(sim_core(sim), 7)->state, TASK_QUEUED);
    sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_by_time_then_by_order_of_scheduling),
        cmocka_unit_test(the_clock_stops_where_it_is_told_and_never_goes_back),
        cmocka_unit_test(a_time_limit_is_met_without_anyone_ticking),
        cmocka_unit_test(an_observer_sees_inputs_decisions_and_waits_in_order),
        cmocka_unit_test(a_refused_event_is_no_fault),
        cmocka_unit_test(what_repeats_while_no_time_passes_is_an_error),
        cmocka_unit_test(a_task_that_waits_for_nothing_but_time_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
