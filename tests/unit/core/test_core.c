/* SPDX-License-Identifier: Apache-2.0 */
/* Single steps of the core: what each returns, which effects it leaves, what a replay restores. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/array.h"
#include "policy/policies.h"
#include "pretend_gpus.h"

#define S SECOND_US

static const struct task_request plain = {.gpus = 1};

static struct core *start(int n_gpus)
{
    struct core *core = world_core(&policy_magm, n_gpus);
    for (int i = 0; i < n_gpus; i++)
        assert_int_equal(world_sample(core, 1, i, 0, 0, 0), 0);
    return core;
}

static struct event update_of(uint64_t task, struct task_update update)
{
    return (struct event){.kind = EVENT_UPDATE, .time_us = 20, .task = task, .update = update};
}

static int check_update(const struct core *core, const struct event *event, const char *words)
{
    struct fault fault = {""};
    int r = core_check_update(core, event->task, &event->update, &fault);
    if (words && !strstr(fault.text, words))
        fail_msg("\"%s\" is not in \"%s\"", words, fault.text);
    return r;
}

/* A server may have tens of thousands of queued tasks, so they lack what only a placed task needs.
 * A larger `struct task` costs that much memory in each of them. */
static void a_queued_task_is_small(void **state)
{
    enum { BYTES_MAX = 568 };
    struct core *core = start(1);
    assert_int_equal(
        world_submit(core, 2, 1, (struct task_request){.gpus = 1, .exclusive = true}), 0);
    assert_int_equal(world_submit(core, 3, 2, plain), 0);
    assert_int_equal(world_state(core, 2), TASK_QUEUED);
    assert_true(task_has_run(core_task(core, 1)));
    assert_false(task_has_run(core_task(core, 2)));
    assert_true(sizeof(struct task) <= BYTES_MAX);
    core_destroy(core);
}

static void limits_of_a_running_task_are_raised_by_operators(void **state)
{
    struct core *core = start(2);
    struct core_settings settings = core_settings_default();
    struct task_request request = {.gpus = 1, .time_limit_us = 100, .host = {.cpus = 4}};
    settings.policy = &policy_exclusive;
    settings.host = (struct host_resources){8, GIB};
    core_configure(core, &settings);
    assert_int_equal(world_submit(core, 2, 1, request), 0);
    assert_int_equal(world_input(core, 3, EVENT_STARTED, 1), 0);
    struct event longer = update_of(1, (struct task_update){.sets_time_limit = true});
    longer.update.time_limit_us = 200;
    assert_int_equal(check_update(core, &longer, "only operators can raise"), -EBUSY);
    assert_int_equal(core_step(core, &longer), CORE_NOT_NOW);
    longer.update.may_raise = true;
    assert_int_equal(check_update(core, &longer, NULL), 0);
    assert_int_equal(core_step(core, &longer), 0);
    assert_int_equal(core_deadline_us(core), 202);
    struct event more = update_of(1, (struct task_update){.sets_host = true, .host = {9, 0}});
    assert_int_equal(check_update(core, &more, "only operators can change"), -EBUSY);
    more.update.may_raise = true;
    assert_int_equal(check_update(core, &more, "4 more CPUs are free, it would need 5"), -EBUSY);
    more.update.host.cpus = 7;
    assert_int_equal(check_update(core, &more, NULL), 0);
    assert_int_equal(core_step(core, &more), 0);
    assert_int_equal(world_submit(core, 21, 2, request), 0); /* needs 4, one is left */
    assert_int_equal(world_state(core, 2), TASK_QUEUED);
    more.update.host.cpus = 2;
    more.time_us = 22;
    assert_int_equal(core_step(core, &more), 0);
    assert_int_equal(world_state(core, 2), TASK_STARTING);
    assert_int_equal(core_task(core, 1)->request.host.cpus, 2);
    core_destroy(core);
}

/* Its processes are not listed, and another program is there, so that the task's memory is not
 * known: of 40 GiB 35 are free. Admission takes the task to have its 30 GiB after settle_max_us. */
static int sample_unseen_task(struct core *core, int64_t time_us, uint64_t task)
{
    struct task_memory unseen = {.task = task, .mem_used_bytes = READING_NONE};
    struct event event = {.kind = EVENT_SAMPLE, .time_us = time_us};
    event.sample = (struct core_sample){.gpu = 1,
        .mem_used_bytes = reading_of(5.0 * GIB),
        .smact = reading_of(0.1),
        .external_processes = reading_of(1),
        .tasks = &unseen,
        .n_tasks = 1};
    return core_step(core, &event);
}

static void a_task_is_not_moved_to_memory_that_an_unseen_one_may_still_take(void **state)
{
    struct core *core = start(2);
    struct core_settings settings = core_settings_default();
    struct fault fault = {""};
    const int to = 1;
    settings.policy = &policy_magm;
    settings.can_suspend = true;
    core_configure(core, &settings);
    for (uint64_t task = 1; task <= 2; task++) {
        struct task_request request = {
            .gpus = 1, .need = {.kind = NEED_DECLARED, .bytes = (task == 1 ? 20 : 30) * GIB}};
        assert_int_equal(world_submit(core, (int64_t)task + 1, task, request), 0);
        assert_int_equal(world_input(core, (int64_t)task + 1, EVENT_STARTED, task), 0);
        assert_int_equal(core_task(core, task)->gpus[0], task - 1);
    }
    assert_int_equal(sample_unseen_task(core, 2 * settings.settle_max_us, 2), 0);
    assert_int_equal(core_view(core)->gpus[1].residents[0].residence, RESIDENCE_PLACED_SETTLED);
    assert_true(resident_outstanding_bytes(&core_view(core)->gpus[1].residents[0]) == 0);
    assert_int_equal(core_check_move(core, 1, &to, 1, 2 * settings.settle_max_us, &fault), -EBUSY);
    assert_non_null(strstr(fault.text, "too little of its memory is free"));
    core_destroy(core);
}

static int sample_client(struct core *core, int64_t time_us, int hooked, int carried)
{
    struct task_memory client = {.task = 1,
        .mem_used_bytes = reading_of(20.0 * GIB),
        .mps_clients = hooked,
        .hooked = hooked,
        .carried = carried};
    struct event event = {.kind = EVENT_SAMPLE, .time_us = time_us};
    event.sample = (struct core_sample){.mem_used_bytes = reading_of(20.0 * GIB),
        .smact = reading_of(0.1),
        .external_processes = reading_of(0),
        .tasks = &client,
        .n_tasks = hooked > 0};
    return core_step(core, &event);
}

static void assert_not_suspended(const struct core *core, const char *why)
{
    struct fault fault = {""};
    assert_int_equal(core_check_suspend(core, 1, &fault), -ENOTSUP);
    assert_non_null(strstr(fault.text, why));
}

static void why_a_client_of_mps_is_not_suspended(void **state)
{
    struct core *core = start(2);
    struct core_settings settings = core_settings_default();
    struct task_request request = {.gpus = 1, .sharing = SHARING_MPS};
    struct fault fault = {""};
    const int to = 1;
    settings.policy = &policy_magm;
    settings.can_suspend = true;
    core_configure(core, &settings);
    assert_int_equal(world_submit(core, 2, 1, request), 0);
    assert_int_equal(world_input(core, 3, EVENT_STARTED, 1), 0);
    assert_not_suspended(core, "the setting carrier is off");
    settings.carries_mps = true;
    core_configure(core, &settings);
    assert_not_suspended(core, "no process of it has GPU memory yet");
    assert_int_equal(sample_client(core, SECOND_US, 2, 1), 0);
    assert_not_suspended(core, "the memory of 1 of its 2 processes");
    assert_int_equal(core_check_move(core, 1, &to, 1, SECOND_US, &fault), -ENOTSUP);
    assert_int_equal(sample_client(core, 2 * SECOND_US, 2, 2), 0);
    assert_int_equal(core_check_suspend(core, 1, &fault), 0);
    assert_int_equal(core_check_move(core, 1, &to, 1, 2 * SECOND_US, &fault), -ENOTSUP);
    assert_non_null(strstr(fault.text, "whose context stays on its GPU"));
    core_destroy(core);
}

/* Of two processes that are clients of MPS. */
static struct core *start_suspended(enum event_kind how)
{
    struct core *core = start(2);
    struct core_settings settings = core_settings_default();
    struct task_request request = {.gpus = 1, .sharing = SHARING_MPS};
    settings.policy = &policy_magm;
    settings.can_suspend = settings.carries_mps = true;
    core_configure(core, &settings);
    assert_int_equal(world_submit(core, 2, 1, request), 0);
    assert_int_equal(world_input(core, 3, EVENT_STARTED, 1), 0);
    assert_int_equal(sample_client(core, SECOND_US, 2, 2), 0);
    struct event going = {.kind = how, .time_us = 2 * SECOND_US, .task = 1};
    going.yield.reason = YIELD_TO_MEMORY;
    assert_int_equal(how == EVENT_SUSPEND ? core_step(core, &going) : core_apply(core, &going), 0);
    struct event suspended = {.kind = EVENT_SUSPENDED,
        .time_us = 3 * SECOND_US,
        .task = 1,
        .yielded = {.bytes = reading_of(20.0 * GIB), .context_bytes = reading_of(1.0 * GIB)}};
    assert_int_equal(core_apply(core, &suspended), 0);
    return core;
}

/* Both processes keep their places among the clients of the server. */
static void the_context_of_a_suspended_client_counts(void **state)
{
    struct core *core = start_suspended(EVENT_SUSPEND);
    const struct gpu_view *gpu = &core_view(core)->gpus[0];
    assert_int_equal(gpu->n_residents, 0);
    assert_int_equal(gpu_view_mps_clients(gpu), 2);
    assert_true(gpu_view_has_context(gpu, 1));
    assert_false(gpu_view_is_idle(gpu));
    assert_int_equal(task_context_gpu(core_task(core, 1)), 0);
    struct event exited = {.kind = EVENT_EXITED,
        .time_us = 4 * SECOND_US,
        .task = 1,
        .exited = {.failure = FAILURE_PROGRAM, .code = 1}};
    assert_int_equal(core_step(core, &exited), 0);
    assert_int_equal(gpu_view_mps_clients(gpu), 0);
    core_destroy(core);
}

/* The event may name the list that the core frees meanwhile. */
static void a_task_comes_back_to_the_gpus_of_its_contexts(void **state)
{
    struct core *core = start_suspended(EVENT_SUSPENDING);
    const struct task *task = core_task(core, 1);
    struct event resuming = {.kind = EVENT_RESUMING, .time_us = 4 * SECOND_US, .task = 1};
    assert_int_equal(task->run->yield.n_context_gpus, 1);
    resuming.yield.gpus = task->run->yield.context_gpus;
    resuming.yield.n = 1;
    assert_int_equal(core_apply(core, &resuming), 0);
    assert_int_equal(task->state, TASK_RESUMING);
    assert_int_equal(task->gpus[0], 0);
    core_destroy(core);
}

/* It was paused then, and its memory stayed, until a sample listed its process. */
static void a_client_that_has_come_back_is_suspended_again_at_once(void **state)
{
    struct core *core = start_suspended(EVENT_SUSPENDING);
    struct core_settings settings = core_settings_default();
    settings.policy = &policy_magm;
    settings.can_suspend = settings.carries_mps = settings.can_pause = true;
    core_configure(core, &settings);
    const struct task *task = core_task(core, 1);
    struct event resuming = {.kind = EVENT_RESUMING, .time_us = 4 * SECOND_US, .task = 1};
    resuming.yield.gpus = task->run->yield.context_gpus;
    resuming.yield.n = 1;
    assert_int_equal(core_apply(core, &resuming), 0);
    struct event resumed = {.kind = EVENT_RESUMED, .time_us = 5 * SECOND_US, .task = 1};
    assert_int_equal(core_step(core, &resumed), 0);
    assert_int_equal(task->state, TASK_RUNNING);
    assert_int_equal(world_input(core, 5, EVENT_SUSPEND, 1), 0);
    assert_int_equal(task->state, TASK_SUSPENDING);
    core_destroy(core);
}

static void a_task_that_fits_starts_in_the_step_of_its_submission(void **state)
{
    struct core *core = start(1);
    assert_int_equal(world_submit(core, 2, 7, plain), 0);
    int n;
    const struct effect *effects = core_effects(core, &n);
    assert_int_equal(n, 2);
    assert_int_equal(effects[0].kind, EFFECT_APPEND);
    assert_int_equal(effects[0].event.kind, EVENT_PLACE);
    assert_int_equal(effects[0].event.place.gpus[0], 0);
    assert_int_equal(effects[1].kind, EFFECT_START);
    assert_int_equal(effects[1].task, 7);
    core_destroy(core);
}

static struct core *preempting_core(void)
{
    struct core *core = world_core(&policy_predictive, 1);
    struct core_settings settings = core_settings_default();
    settings.policy = &policy_predictive;
    settings.preempt = true;
    core_configure(core, &settings);
    return core;
}

static struct task_request takes_s(double expected_s)
{
    struct task_request request = {.gpus = 1};
    request.expect.time_us = reading_of(expected_s * (double)S);
    return request;
}

/* A log as a restart reads it: without the events of tasks that have ended. */
struct restart {
    struct core *core, *restarted;
    uint64_t ended[2];
};

static void log_event(struct restart *restart, const struct event *event)
{
    if (event->task != restart->ended[0] && event->task != restart->ended[1])
        assert_int_equal(core_apply(restart->restarted, event), 0);
}

static void step_logged(struct restart *restart, const struct event *event)
{
    int n;
    assert_int_equal(core_step(restart->core, event), 0);
    log_event(restart, event);
    const struct effect *effects = core_effects(restart->core, &n);
    for (int i = 0; i < n; i++)
        if (effects[i].kind == EFFECT_APPEND)
            log_event(restart, &effects[i].event);
}

static void submit_logged(struct restart *restart, int64_t at_s, uint64_t task, double expected_s)
{
    struct event event = {.kind = EVENT_SUBMIT, .time_us = at_s * S, .task = task};
    event.submit.request = takes_s(expected_s);
    step_logged(restart, &event);
}

static void step_at(struct restart *restart, int64_t at_s, enum event_kind kind, uint64_t task)
{
    const struct event event = {.kind = kind, .time_us = at_s * S, .task = task};
    step_logged(restart, &event);
}

static int64_t latest_start_s(const struct core *core, uint64_t task)
{
    return core_task(core, task)->latest_start_us / S;
}

/* Returns how many schedules the last step has decided. */
static int count_schedules(const struct core *core)
{
    int n, count = 0;
    const struct effect *effects = core_effects(core, &n);
    for (int i = 0; i < n; i++)
        count += effects[i].kind == EFFECT_APPEND && effects[i].event.kind == EVENT_FIFO;
    return count;
}

/* A log with a larger number could not be read again, and with 0 a task would have no latest start.
 * The first of these could start at the time 0. */
static void latest_starts_can_stand_in_the_log(void **state)
{
    struct core *core = preempting_core();
    struct task_request request = {.gpus = 1};
    request.expect.time_us = reading_of((double)EVENT_NUMBER_MAX);
    for (uint64_t id = 1; id <= 9; id++) {
        assert_int_equal(world_submit(core, 0, id, request), 0);
        assert_in_range(core_task(core, id)->latest_start_us, 1, EVENT_NUMBER_MAX);
    }
    core_destroy(core);
}

/* Cancels follow each other: the tasks' times are given back together, in the step after them. */
static void cancels_shorten_the_schedule_once(void **state)
{
    struct core *core = preempting_core();
    for (uint64_t id = 1; id <= 4; id++) {
        assert_int_equal(world_submit(core, S, id, takes_s(id < 4 ? 864000 : 100)), 0);
        assert_int_equal(count_schedules(core), 1);
    }
    for (uint64_t id = 1; id <= 3; id++) {
        assert_int_equal(world_input(core, 2 * S, EVENT_CANCEL, id), 0);
        assert_int_equal(world_state(core, id), TASK_CANCELLED);
        assert_int_equal(count_schedules(core), 0);
        assert_int_equal(core_deadline_us(core), 0);
    }
    assert_int_equal(world_input(core, 3 * S, EVENT_TICK, 0), 0);
    assert_int_equal(count_schedules(core), 1);
    assert_int_equal(latest_start_s(core, 4), 4); /* 1 + 1.5 x 102 - 1.5 x 100 */
    assert_true(core_deadline_us(core) > 0);
    assert_int_equal(world_input(core, 3 * S, EVENT_TICK, 0), 0);
    assert_int_equal(count_schedules(core), 0);
    core_destroy(core);
}

/* Nor does each of many cancels make a pass: the step after them does, whatever it is. */
static void cancels_leave_the_pass_to_the_step_after_them(void **state)
{
    static const enum event_kind next[] = {EVENT_TICK, EVENT_SAMPLE, EVENT_STARTED};
    for (size_t i = 0; i < ARRAY_SIZE(next); i++) {
        struct core *core = start(2);
        struct core_settings settings = core_settings_default();
        settings.policy = &policy_exclusive;
        settings.backfill = false;
        core_configure(core, &settings);
        assert_int_equal(world_submit(core, 2, 1, plain), 0);
        for (uint64_t id = 2; id <= 4; id++)
            assert_int_equal(world_submit(core, 2, id, (struct task_request){.gpus = 2}), 0);
        assert_int_equal(world_submit(core, 2, 5, plain), 0);
        for (uint64_t id = 2; id <= 4; id++) {
            assert_int_equal(world_input(core, 3, EVENT_CANCEL, id), 0);
            assert_int_equal(world_state(core, 5), TASK_QUEUED);
            assert_int_equal(core_deadline_us(core), 0);
        }
        assert_int_equal(next[i] == EVENT_SAMPLE
                             ? world_sample(core, 4, 1, 0, 0, 0)
                             : world_input(core, 4, next[i], next[i] == EVENT_STARTED),
            0);
        assert_int_equal(world_state(core, 5), TASK_STARTING);
        assert_true(core_deadline_us(core) > 0);
        core_destroy(core);
    }
}

/* A driver that is asked too soon answers what it has answered before. */
static void a_repeated_activity_is_one_sample(void **state)
{
    struct core *core = start(2);
    const struct gpu_view *gpu = &core_view(core)->gpus[0];
    int before = gpu->smact.count;
    for (int64_t now_us = 1; now_us <= 6; now_us++) {
        struct event event = {.kind = EVENT_SAMPLE, .time_us = now_us};
        event.sample = (struct core_sample){.mem_used_bytes = reading_of(0),
            .smact = reading_of(now_us <= 3 ? 0.1 : 0.4),
            .smact_repeats = now_us % 3 != 1};
        assert_int_equal(core_step(core, &event), 0);
    }
    assert_int_equal(gpu->smact.count - before, 2);
    core_destroy(core);
}

static int sample_idle(struct core *core, int64_t now_us, int gpu, bool more_follow)
{
    const struct event sample = {.kind = EVENT_SAMPLE,
        .time_us = now_us,
        .sample = {.gpu = gpu,
            .more_follow = more_follow,
            .mem_used_bytes = reading_of(0),
            .smact = reading_of(0),
            .external_processes = reading_of(0)}};
    return core_step(core, &sample);
}

/* Tasks wait for the first samples: they are placed when the last GPU of the poll has been sampled,
 * or in the next step where that one does not answer. */
static void tasks_are_placed_when_the_poll_is_complete(void **state)
{
    for (int is_complete = 0; is_complete < 2; is_complete++) {
        struct core *core = world_core(&policy_magm, 2);
        for (uint64_t id = 1; id <= 2; id++)
            assert_int_equal(world_submit(core, S, id, plain), 0);
        assert_int_equal(sample_idle(core, 2 * S, 0, true), 0);
        assert_int_equal(world_state(core, 1), TASK_QUEUED);
        assert_int_equal(core_deadline_us(core), 0);
        assert_int_equal(is_complete ? sample_idle(core, 2 * S, 1, false)
                                     : world_input(core, 2 * S, EVENT_TICK, 0),
            0);
        assert_int_equal(world_state(core, 1), TASK_STARTING);
        assert_int_equal(world_state(core, 2), is_complete ? TASK_STARTING : TASK_QUEUED);
        core_destroy(core);
    }
}

/* The task that comes next is appended to the schedule without the cancelled one. */
static void a_submission_shortens_and_appends_in_one_schedule(void **state)
{
    struct core *core = preempting_core();
    assert_int_equal(world_submit(core, S, 1, takes_s(864000)), 0);
    assert_int_equal(world_submit(core, S, 2, takes_s(100)), 0);
    assert_int_equal(world_input(core, 2 * S, EVENT_CANCEL, 1), 0);
    assert_int_equal(world_submit(core, 3 * S, 3, takes_s(10)), 0);
    assert_int_equal(count_schedules(core), 1);
    assert_int_equal(latest_start_s(core, 3), 153); /* 3 + 1.5 x 110 - 1.5 x 10 */
    core_destroy(core);
}

/* Tasks 2 and 3 depend on task 1, and have no place: it fails, and all three end in one step. */
static void ends_in_one_step_shorten_the_schedule_once(void **state)
{
    const struct dependency after_1 = {DEPENDENCY_OK, 1, 1, false};
    const int gpu = 0;
    struct task_request dependent = takes_s(864000);
    struct event place = {.kind = EVENT_PLACE, .time_us = S, .task = 1};
    struct core *core = preempting_core();
    dependent.after = &after_1;
    dependent.n_after = 1;
    place.place.gpus = &gpu;
    place.place.n = 1;
    assert_int_equal(world_submit(core, S, 1, takes_s(864000)), 0);
    assert_int_equal(world_submit(core, S, 2, dependent), 0);
    assert_int_equal(world_submit(core, S, 3, dependent), 0);
    assert_int_equal(latest_start_s(core, 3), 0);
    assert_int_equal(core_apply(core, &place), 0);
    assert_int_equal(world_input(core, S, EVENT_STARTED, 1), 0);
    assert_int_equal(world_exit(core, 2 * S, 1, FAILURE_PROGRAM), 0);
    assert_int_equal(world_state(core, 3), TASK_CANCELLED);
    assert_int_equal(count_schedules(core), 1);
    assert_int_equal(world_submit(core, 3 * S, 4, takes_s(10)), 0);
    assert_int_equal(latest_start_s(core, 4), 3);
    core_destroy(core);
}

static struct core *core_with(bool preempts)
{
    struct core *core = preempting_core();
    struct core_settings settings = *core_get_settings(core);
    settings.preempt = preempts;
    core_configure(core, &settings);
    return core;
}

/* What tasks get when preemption is switched on is what they would have got with it. */
static void a_reload_gives_waiting_tasks_latest_starts(void **state)
{
    struct core *early = core_with(true), *late = core_with(false);
    for (uint64_t id = 1; id <= 3; id++) {
        assert_int_equal(world_submit(early, (int64_t)id * S, id, takes_s(100)), 0);
        assert_int_equal(world_submit(late, (int64_t)id * S, id, takes_s(100)), 0);
        assert_int_equal(latest_start_s(late, id), 0);
    }
    struct core_settings settings = *core_get_settings(early);
    core_configure(late, &settings);
    assert_int_equal(core_deadline_us(late), 0);
    assert_int_equal(world_input(late, 9 * S, EVENT_TICK, 0), 0);
    assert_int_equal(count_schedules(late), 1);
    for (uint64_t id = 1; id <= 3; id++)
        assert_int_equal(latest_start_s(late, id), latest_start_s(early, id));
    assert_true(latest_start_s(late, 3) > 9);
    core_configure(late, &settings); /* nothing has changed */
    assert_int_equal(world_input(late, 10 * S, EVENT_TICK, 0), 0);
    assert_int_equal(count_schedules(late), 0);
    core_destroy(early);
    core_destroy(late);
}

/* Task 2 delays no task while it is held, and comes when it is released. */
static void held_tasks_have_no_place(void **state)
{
    struct core *core = preempting_core();
    assert_int_equal(world_submit(core, S, 1, takes_s(100)), 0);
    assert_int_equal(world_submit(core, S, 2, takes_s(864000)), 0);
    assert_int_equal(world_input(core, S, EVENT_HOLD, 2), 0);
    assert_int_equal(latest_start_s(core, 2), 0);
    assert_int_equal(world_submit(core, 2 * S, 3, takes_s(10)), 0);
    assert_int_equal(latest_start_s(core, 3), 150); /* 2 + 1.5 x 109 - 1.5 x 10 */
    assert_int_equal(world_input(core, 50 * S, EVENT_RELEASE, 2), 0);
    assert_int_equal(latest_start_s(core, 2), 50 + 3 * (111 - 50) / 2); /* after 1 and 3 */
    assert_int_equal(core_fifo_completion_us(core_task(core, 2)) / S, 864000 + 111 - 50);
    assert_int_equal(world_input(core, 51 * S, EVENT_TICK, 0), 0);
    assert_int_equal(count_schedules(core), 0);
    core_destroy(core);
}

/* Task 2 waits, until an update gives it a begin time. */
static void an_update_with_a_begin_time_gives_up_the_place(void **state)
{
    struct event begin = {.kind = EVENT_UPDATE, .time_us = 2 * S, .task = 2};
    begin.update.sets_begin = true;
    begin.update.begin_us = 600 * S;
    struct core *core = preempting_core();
    assert_int_equal(world_submit(core, S, 1, takes_s(100)), 0);
    assert_int_equal(world_submit(core, S, 2, takes_s(864000)), 0);
    assert_true(latest_start_s(core, 2) > 1);
    assert_int_equal(core_step(core, &begin), 0);
    assert_int_equal(world_state(core, 2), TASK_BLOCKED);
    assert_int_equal(latest_start_s(core, 2), 0);
    assert_int_equal(world_submit(core, 2 * S, 3, takes_s(10)), 0);
    assert_int_equal(latest_start_s(core, 3), 152); /* 2 + 1.5 x (100 + 10) - 1.5 x 10 */
    assert_int_equal(world_input(core, 600 * S, EVENT_TICK, 0), 0);
    assert_true(latest_start_s(core, 2) >= 600);
    core_destroy(core);
}

/* The log ends between the cancels of tasks 1 and 2 and the step that shortens the schedule. */
static void a_restart_shortens_what_the_log_left_too_long(void **state)
{
    struct restart restart = {preempting_core(), preempting_core(), {1, 2}};
    submit_logged(&restart, 1, 1, 864000);
    submit_logged(&restart, 1, 2, 864000);
    submit_logged(&restart, 2, 3, 100);
    step_at(&restart, 3, EVENT_CANCEL, 1);
    step_at(&restart, 3, EVENT_CANCEL, 2);
    assert_true(latest_start_s(restart.core, 3) > 864000);
    struct core *both[] = {restart.core, restart.restarted};
    for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
        assert_int_equal(world_input(both[i], 4 * S, EVENT_TICK, 0), 0);
        assert_int_equal(count_schedules(both[i]), 1);
        assert_int_equal(latest_start_s(both[i], 3), 5); /* 2 + 1.5 x 102 - 1.5 x 100 */
        assert_int_equal(world_submit(both[i], 5 * S, 4, takes_s(10)), 0);
        assert_int_equal(latest_start_s(both[i], 4), 153); /* 5 + 1.5 x 109 - 1.5 x 10 */
        core_destroy(both[i]);
    }
}

/* Task 1 is cancelled: the others do not wait for its ten days. Task 3 completes, beside or before
 * others, at a time when first come, first served would not have begun it. */
static void latest_starts_are_the_same_after_a_restart(void **state)
{
    const int gpu = 0;
    struct restart restart = {preempting_core(), preempting_core(), {1, 3}};
    submit_logged(&restart, 1, 1, 864000);
    submit_logged(&restart, 2, 2, 100);
    assert_true(latest_start_s(restart.core, 2) > 864000);
    step_at(&restart, 3, EVENT_CANCEL, 1);
    step_at(&restart, 3, EVENT_TICK, 0);
    assert_int_equal(latest_start_s(restart.core, 2), 3); /* 2 + 1.5 x 101 - 1.5 x 100 */
    submit_logged(&restart, 4, 3, 50);
    struct event place = {.kind = EVENT_PLACE, .time_us = 5 * S, .task = 3};
    place.place.gpus = &gpu;
    place.place.n = 1;
    assert_int_equal(core_apply(restart.core, &place), 0);
    step_at(&restart, 5, EVENT_STARTED, 3);
    step_at(&restart, 55, EVENT_EXITED, 3);
    assert_int_equal(world_state(restart.core, 3), TASK_COMPLETED);

    assert_int_equal(world_submit(restart.core, 60 * S, 4, takes_s(10)), 0);
    assert_int_equal(world_submit(restart.restarted, 60 * S, 4, takes_s(10)), 0);
    /* It would end at 3 + 100 + 50 + 10 s. */
    assert_int_equal(latest_start_s(restart.core, 4), 199); /* 60 + 1.5 x 103 - 1.5 x 10 */
    assert_int_equal(latest_start_s(restart.restarted, 4), 199);
    assert_int_equal(latest_start_s(restart.restarted, 2), 3);
    core_destroy(restart.core);
    core_destroy(restart.restarted);
}

static void nonsense_is_an_answer_and_changes_nothing(void **state)
{
    struct core *core = start(1);
    struct task_request none = {.gpus = -1};
    assert_int_equal(world_submit(core, 2, 1, plain), 0);
    char *before = world_digest(core);
    assert_int_equal(world_submit(core, 3, 1, plain), CORE_NOT_NOW);
    assert_int_equal(world_submit(core, 3, 0, plain), CORE_NOT_NOW);
    assert_int_equal(world_submit(core, 3, 2, none), CORE_NOT_NOW);
    assert_int_equal(world_sample(core, 3, 1, 0, 0, 0), CORE_NOT_NOW);
    assert_int_equal(world_sample(core, 3, -1, 0, 0, 0), CORE_NOT_NOW);
    assert_int_equal(world_input(core, 3, EVENT_RELEASE, 1), CORE_NOT_NOW);
    assert_int_equal(world_input(core, 3, EVENT_HOLD, 1), CORE_NOT_NOW);
    assert_int_equal(world_input(core, 3, EVENT_CANCEL, 99), CORE_NO_SUCH_TASK);
    assert_int_equal(world_exit(core, 3, 99, FAILURE_NONE), CORE_NO_SUCH_TASK);
    char *after = world_digest(core);
    assert_string_equal(before, after);
    free(before);
    free(after);
    core_destroy(core);
}

static void cancelling_a_start_kills_once_there_is_something_to_kill(void **state)
{
    struct core *core = start(1);
    world_submit(core, 2, 1, plain);
    assert_int_equal(world_input(core, 3, EVENT_CANCEL, 1), 0);
    assert_int_equal(world_count(core, EFFECT_KILL, 1), 0);
    assert_int_equal(world_input(core, 3, EVENT_CANCEL, 1), CORE_NOT_NOW);
    assert_int_equal(world_input(core, 4, EVENT_STARTED, 1), 0);
    assert_int_equal(world_count(core, EFFECT_KILL, 1), 1);
    assert_int_equal(world_state(core, 1), TASK_ENDING);
    assert_int_equal(world_exit(core, 5, 1, FAILURE_NONE), 0);
    assert_int_equal(world_state(core, 1), TASK_CANCELLED);
    core_destroy(core);
}

static void a_cancelled_start_that_never_was_is_cancelled(void **state)
{
    struct core *core = start(1);
    world_submit(core, 2, 1, plain);
    world_input(core, 3, EVENT_CANCEL, 1);
    assert_int_equal(world_input(core, 4, EVENT_UNSTARTED, 1), 0);
    assert_int_equal(world_state(core, 1), TASK_CANCELLED);
    assert_int_equal(core_view(core)->gpus[0].n_residents, 0);
    core_destroy(core);
}

static int submit_cpus(struct core *core, int64_t time_us, uint64_t id, uint32_t uid, int cpus)
{
    struct event event = {.kind = EVENT_SUBMIT, .time_us = time_us, .task = id};
    event.submit.uid = uid;
    event.submit.request = plain;
    event.submit.request.host.cpus = cpus;
    return core_step(core, &event);
}

static void what_can_have_its_cpus_no_more_holds_up_no_other_user(void **state)
{
    struct core *core = start(1);
    struct core_settings settings = *core_get_settings(core);
    settings.host.cpus = 64;
    settings.conditions.sample_valid_us = 0; /* none is placed yet */
    core_configure(core, &settings);
    assert_int_equal(submit_cpus(core, 2 * S, 2, 1000, 48), 0);
    assert_int_equal(submit_cpus(core, 3 * S, 3, 1001, 1), 0);
    settings.host.cpus = 32;
    settings.conditions.sample_valid_us = 100 * S;
    core_configure(core, &settings);
    world_sample(core, 110 * S, 0, 0, 0, 0);
    assert_int_equal(world_state(core, 2), TASK_QUEUED);
    assert_int_equal(world_state(core, 3), TASK_STARTING);
    core_destroy(core);
}

static int submit_without_gpu(
    struct core *core, int64_t time_us, uint64_t id, uint32_t uid, int cpus)
{
    struct event event = {.kind = EVENT_SUBMIT, .time_us = time_us, .task = id};
    event.submit.uid = uid;
    event.submit.request = plain;
    event.submit.request.gpus = 0;
    event.submit.request.host.cpus = cpus;
    return core_step(core, &event);
}

static void many_that_wait_for_cpus_hold_off_none_that_requests_nothing(void **state)
{
    struct core *core = start(1);
    struct core_settings settings = *core_get_settings(core);
    settings.host.cpus = 8;
    core_configure(core, &settings);
    for (uint64_t id = 1; id <= 300; id++)
        assert_int_equal(submit_without_gpu(core, 2 * S, id, 1000, 8), 0);
    assert_int_equal(submit_without_gpu(core, 3 * S, 301, 1001, 0), 0);
    assert_int_equal(world_state(core, 1), TASK_STARTING);
    assert_int_equal(world_state(core, 2), TASK_QUEUED);
    assert_int_equal(world_state(core, 301), TASK_STARTING);
    core_destroy(core);
}

static void what_can_have_its_cpus_no_more_holds_up_none_without_gpu(void **state)
{
    struct core *core = start(1);
    struct core_settings settings = *core_get_settings(core);
    settings.host.cpus = 64;
    core_configure(core, &settings);
    assert_int_equal(submit_without_gpu(core, 2 * S, 1, 1000, 64), 0);
    assert_int_equal(submit_without_gpu(core, 2 * S, 2, 1000, 48), 0);
    settings.host.cpus = 32;
    core_configure(core, &settings);
    assert_int_equal(world_input(core, 3 * S, EVENT_STARTED, 1), 0);
    assert_int_equal(world_exit(core, 4 * S, 1, FAILURE_NONE), 0);
    assert_int_equal(submit_without_gpu(core, 5 * S, 3, 1001, 1), 0);
    assert_int_equal(world_state(core, 2), TASK_QUEUED);
    assert_int_equal(world_state(core, 3), TASK_STARTING);
    core_destroy(core);
}

static void what_never_started_has_waited_all_the_time(void **state)
{
    struct core *core = start(1);
    struct core_settings settings = *core_get_settings(core);
    world_submit(core, 2 * S, 1, plain);
    settings.conditions.sample_valid_us = 0; /* so that it is not placed again at once */
    core_configure(core, &settings);
    assert_int_equal(world_input(core, 100 * S, EVENT_UNSTARTED, 1), 0);
    const struct task *task = core_task(core, 1);
    assert_int_equal(task->state, TASK_QUEUED);
    assert_int_equal(task->executed_us, 0);
    assert_int_equal(task->attempts - task->run->unstarted, 0);
    world_sample(core, 110 * S, 0, 0, 0, 0);
    assert_int_equal(task->state, TASK_STARTING);
    assert_int_equal(task->waited_us, 108 * S);
    core_destroy(core);
}

/* A daemon that was killed between logging STARTED and the claim of the shim. */
static void what_was_logged_as_started_but_never_ran_is_queued_again(void **state)
{
    static const enum event_kind meanwhile[] = {EVENT_STARTED, EVENT_TICK, EVENT_CANCEL};
    static const enum task_state after[] = {TASK_STARTING, TASK_STARTING, TASK_CANCELLED};
    for (size_t i = 0; i < ARRAY_SIZE(after); i++) {
        struct core *core = start(1);
        struct task_request request = plain;
        request.time_limit_us = 50 * S;
        world_submit(core, 2 * S, 1, request);
        assert_int_equal(world_input(core, 3 * S, EVENT_STARTED, 1), 0);
        assert_int_equal(world_input(core, 60 * S, meanwhile[i], 1), 0);
        world_sample(core, 60 * S, 0, 0, 0, 0);
        assert_int_equal(world_input(core, 60 * S, EVENT_UNSTARTED, 1), 0);
        const struct task *task = core_task(core, 1);
        assert_int_equal(task->state, after[i]);
        assert_int_equal(world_count(core, EFFECT_START, 1), after[i] == TASK_STARTING);
        assert_int_equal(task->executed_us, 0);
        assert_int_equal(task->waited_us, 58 * S);
        assert_int_equal(task->run->unstarted, 1);
        assert_int_equal(core_view(core)->gpus[0].n_residents, after[i] == TASK_STARTING);
        assert_int_equal(world_input(core, 61 * S, EVENT_UNSTARTED, 1),
            after[i] == TASK_STARTING ? 0 : CORE_NOT_NOW);
        world_check(core);
        core_destroy(core);
    }
}

/* The daemon was stopped when the process ended. */
static void an_end_that_is_noticed_late_counts_from_when_it_was(void **state)
{
    static const int64_t told_us[] = {30 * S, 0, 200 * S, 1},
                         ended_us[] = {30 * S, 90 * S, 90 * S, 90 * S};
    for (size_t i = 0; i < ARRAY_SIZE(told_us); i++) {
        struct core *core = start(1);
        world_submit(core, 2 * S, 1, plain);
        int64_t started_us = core_task(core, 1)->started_us;
        assert_int_equal(world_input(core, 4 * S, EVENT_STARTED, 1), 0);
        struct event event = {.kind = EVENT_EXITED, .time_us = 90 * S, .task = 1};
        event.exited.ended_us = told_us[i];
        assert_int_equal(core_step(core, &event), 0);
        const struct task *task = core_task(core, 1);
        assert_int_equal(task->state, TASK_COMPLETED);
        assert_int_equal(task->ended_us, ended_us[i]);
        assert_int_equal(task->executed_us, ended_us[i] - started_us);
        world_check(core);
        core_destroy(core);
    }
}

static int estimate(struct core *core, uint64_t task, struct need need)
{
    struct event event = {
        .kind = EVENT_ESTIMATE, .time_us = 9, .task = task, .estimate.need = need};
    return core_step(core, &event);
}

static enum task_state end_late(enum failure_class failure, int code, int signal, int64_t ended_us)
{
    struct core *core = start(1);
    struct task_request limited = {.gpus = 1, .time_limit_us = 4 * S};
    struct event event = {.kind = EVENT_EXITED, .time_us = 9 * S + 1, .task = 1};
    event.exited = (struct task_exit){
        .failure = failure, .code = code, .signal = signal, .ended_us = ended_us};
    world_submit(core, S, 1, limited);
    world_input(core, S, EVENT_STARTED, 1);
    world_input(core, 9 * S, EVENT_TICK, 0); /* the first step after the daemon was away */
    assert_int_equal(world_state(core, 1), TASK_ENDING);
    assert_int_equal(core_step(core, &event), 0);
    enum task_state state = world_state(core, 1);
    assert_int_equal(
        core_task(core, 1)->ending, state == TASK_TIMEOUT ? FAILURE_TIME_LIMIT : FAILURE_NONE);
    core_destroy(core);
    return state;
}

/* The daemon finds the limit to be over before it reads how the task has ended. */
static void a_task_that_ended_in_time_has_not_run_out_of_it(void **state)
{
    const int64_t before = 3 * S, after = 5 * S + 1;
    assert_int_equal(end_late(FAILURE_PROGRAM, 1, 0, before), TASK_FAILED);
    assert_int_equal(end_late(FAILURE_SIGNAL, -1, 11, before), TASK_FAILED);
    assert_int_equal(end_late(FAILURE_NONE, 0, 0, before), TASK_COMPLETED);
    assert_int_equal(end_late(FAILURE_HOST_OOM, -1, 9, before), TASK_OUT_OF_MEMORY);
    assert_int_equal(end_late(FAILURE_TIME_LIMIT, -1, 15, after), TASK_TIMEOUT);
    assert_int_equal(end_late(FAILURE_PROGRAM, 1, 0, after), TASK_TIMEOUT);
    assert_int_equal(end_late(FAILURE_LOST, -1, 0, 0), TASK_TIMEOUT);
}

static void only_who_waits_for_an_estimate_takes_one(void **state)
{
    struct core *core = start(1);
    struct need six = {NEED_ESTIMATED, 6 * GIB};
    struct task_request pending = {.gpus = 1, .need = {.kind = NEED_PENDING}};
    for (uint64_t id = 1; id <= 3; id++)
        world_submit(core, 2, id, pending);
    world_input(core, 3, EVENT_CANCEL, 1);
    assert_int_equal(estimate(core, 1, six), CORE_NOT_NOW);
    world_input(core, 3, EVENT_HOLD, 2);
    assert_int_equal(estimate(core, 2, pending.need), CORE_NOT_NOW);
    assert_int_equal(estimate(core, 2, six), 0);
    assert_int_equal(estimate(core, 2, six), CORE_NOT_NOW);
    assert_int_equal(world_state(core, 3), TASK_QUEUED);
    assert_int_equal(estimate(core, 3, (struct need){NEED_UNKNOWN, 0}), 0);
    assert_int_equal(world_state(core, 3), TASK_STARTING);
    core_destroy(core);
}

static void times_are_kept_apart(void **state)
{
    struct core *core = start(1);
    world_sample(core, 10 * S, 0, 0, 0, 0);
    world_submit(core, 11 * S, 1, plain);
    world_input(core, 12 * S, EVENT_STARTED, 1);
    world_submit(core, 13 * S, 2, plain);
    world_exit(core, 31 * S, 1, FAILURE_NONE);
    const struct task *task = core_task(core, 1);
    assert_int_equal(task->waited_us, 0);
    assert_int_equal(task->executed_us, 20 * S);
    assert_int_equal(task->ended_us, 31 * S);
    world_sample(core, 33 * S, 0, 0, 0, 0);
    assert_int_equal(core_task(core, 2)->waited_us, 20 * S);
    core_destroy(core);
}

static enum task_state final_state(enum failure_class failure, bool company)
{
    switch (failure) {
    case FAILURE_NONE:
        return TASK_COMPLETED;
    case FAILURE_CANCELLED:
        return TASK_CANCELLED;
    case FAILURE_TIME_LIMIT: /* its shim kept the limit while no daemon ran */
        return TASK_TIMEOUT;
    case FAILURE_HOST_OOM:
        return TASK_OUT_OF_MEMORY;
    case FAILURE_GPU_OOM:
        return company ? TASK_RECOVERING : TASK_OUT_OF_MEMORY;
    default:
        return TASK_FAILED;
    }
}

static void only_a_gpu_crash_with_company_recovers(void **state)
{
    for (enum failure_class failure = FAILURE_NONE; failure <= FAILURE_LOST; failure++) {
        for (int company = 0; company < 2; company++) {
            struct core *core = start(1);
            world_submit(core, 2, 1, plain);
            world_input(core, 2, EVENT_STARTED, 1);
            world_sample(core, 3, 0, 10, 0.1, company);
            assert_int_equal(world_count(core, EFFECT_APPEND, 1), company);
            assert_int_equal(world_exit(core, 4, 1, failure), 0);
            if (failure == FAILURE_GPU_GONE)
                assert_int_equal(core_task(core, 1)->requeue_count, 1);
            else
                assert_int_equal(world_state(core, 1), final_state(failure, company));
            core_destroy(core);
        }
    }
}

static void both_sides_have_company_even_when_one_has_left(void **state)
{
    struct core *core = start(1);
    world_submit(core, 2, 1, plain);
    world_sample(core, 3 * S, 0, 10, 0.1, 0);
    for (int t = 4; t < 80; t++)
        world_sample(core, t * S, 0, 10, 0.1, 0);
    world_submit(core, 80 * S, 2, plain);
    world_input(core, 80 * S, EVENT_STARTED, 1);
    world_input(core, 80 * S, EVENT_STARTED, 2);
    assert_int_equal(world_state(core, 2), TASK_RUNNING);
    world_exit(core, 81 * S, 2, FAILURE_NONE);
    world_exit(core, 90 * S, 1, FAILURE_GPU_OOM);
    assert_int_equal(world_state(core, 1), TASK_RECOVERING);
    core_destroy(core);
}

static void the_deadline_is_the_earliest_time_limit(void **state)
{
    struct core *core = start(2);
    struct task_request limited = {.gpus = 2, .time_limit_us = 20 * S};
    assert_int_equal(core_deadline_us(core), INT64_MAX);
    world_submit(core, S, 1, limited);
    assert_int_equal(core_deadline_us(core), INT64_MAX);
    world_input(core, 2 * S, EVENT_STARTED, 1);
    assert_int_equal(core_deadline_us(core), 21 * S);
    world_input(core, 21 * S - 1, EVENT_TICK, 0);
    assert_int_equal(world_state(core, 1), TASK_RUNNING);
    world_input(core, 21 * S, EVENT_TICK, 0);
    assert_int_equal(world_count(core, EFFECT_KILL, 1), 1);
    assert_int_equal(world_count(core, EFFECT_APPEND, 1), 1);
    assert_int_equal(core_deadline_us(core), INT64_MAX);
    core_destroy(core);
}

static void a_replay_decides_what_the_log_left_open(void **state)
{
    struct core *core = start(1);
    const struct event log[] = {
        {.kind = EVENT_SUBMIT, .time_us = 2, .task = 1, .submit = {.request = {.gpus = 1}}},
        {.kind = EVENT_SUBMIT, .time_us = 2, .task = 2, .submit = {.request = {.gpus = 1}}},
        {.kind = EVENT_SUBMIT,
            .time_us = 2,
            .task = 3,
            .submit = {.request = {.gpus = 1}, .held = true}},
        {.kind = EVENT_PLACE, .time_us = 2, .task = 1, .place = {.gpus = (int[]){0}, .n = 1}},
        {.kind = EVENT_STARTED, .time_us = 3, .task = 1},
        {.kind = EVENT_CANCEL, .time_us = 4, .task = 2},
        {.kind = EVENT_CANCEL, .time_us = 4, .task = 3},
        {.kind = EVENT_EXITED, .time_us = 5, .task = 1, .exited = {.failure = FAILURE_NONE}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(log); i++)
        assert_int_equal(core_apply(core, &log[i]), 0);
    assert_int_equal(world_state(core, 1), TASK_EXITED);
    assert_int_equal(world_input(core, 6, EVENT_TICK, 0), 0);
    assert_int_equal(world_state(core, 1), TASK_COMPLETED);
    assert_int_equal(world_state(core, 2), TASK_CANCELLED);
    assert_int_equal(world_state(core, 3), TASK_CANCELLED);
    core_destroy(core);
}

static void done_tasks_can_be_forgotten_and_no_others(void **state)
{
    struct core *core = start(1);
    for (uint64_t id = 10; id > 0; id -= 2)
        world_submit(core, 2, id, plain);
    uint64_t expected = 2;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id), expected += 2)
        assert_int_equal(task->id, expected);
    assert_int_equal(expected, 12);
    world_input(core, 3, EVENT_CANCEL, 4);
    core_forget(core, 4);
    core_forget(core, 6);
    core_forget(core, 5);
    assert_null(core_task(core, 4));
    assert_non_null(core_task(core, 6));
    assert_int_equal(core_next_task(core, 2)->id, 6);
    world_check(core);
    core_destroy(core);
}

/* With gaps of all lengths between ids, and one far above all others. */
static void tasks_are_found_among_any_ids(void **state)
{
    enum { FIRST = 7, IDS = 300 };
    bool is_there[IDS + 2] = {false};
    struct core *core = start(1);
    uint32_t random = 1;
    world_submit(core, 2, 1000000, plain);
    for (uint64_t id = FIRST; id < IDS; id++)
        world_submit(core, 2, id, plain);
    for (uint64_t id = FIRST; id < IDS; id++) {
        random = random * 1664525u + 1013904223u;
        is_there[id] = random >> 31;
        if (is_there[id])
            continue;
        world_input(core, 3, EVENT_CANCEL, id);
        core_forget(core, id);
    }
    uint64_t next = 1000000;
    for (uint64_t id = IDS; id-- > 0;) {
        assert_int_equal(core_next_task(core, id)->id, next);
        assert_int_equal(core_task(core, id) != NULL, is_there[id]);
        next = is_there[id] ? id : next;
    }
    assert_null(core_task(core, IDS));
    assert_int_equal(core_task(core, 1000000)->id, 1000000);
    assert_null(core_next_task(core, 1000000));
    core_destroy(core);
}

static void gpus_come_and_go_under_the_same_index(void **state)
{
    struct core *core = start(2);
    struct gpu_identity list[] = {
        {.uuid = "GPU-new", .is_place = true}, {.uuid = "GPU-1", .is_place = true}};
    struct event event = {.kind = EVENT_GPUS, .time_us = 2, .gpus = {.list = list, .n = 2}};
    assert_int_equal(core_step(core, &event), 0);
    const struct cluster_view *view = core_view(core);
    assert_int_equal(view->n_gpus, 3);
    assert_int_equal(view->gpus[0].health, VIEW_LOST);
    assert_int_equal(view->gpus[1].health, VIEW_UNSEEN);
    assert_string_equal(view->gpus[2].id.uuid, "GPU-new");
    core_destroy(core);
}

/* A cluster of 40,000 GPUs, listed in two orders: each keeps its index, and one that is listed
 * twice is one GPU. To compare each with all others would take seconds. */
static void many_gpus_are_known_by_their_uuids(void **state)
{
    enum { GPUS = 40000 };
    struct core *core = start(0);
    struct gpu_identity *list = calloc(GPUS, sizeof *list);
    struct event event = {.kind = EVENT_GPUS, .time_us = 2, .gpus = {.list = list, .n = GPUS}};
    clock_t begin = clock();
    assert_non_null(list);
    for (int i = 0; i < GPUS; i++)
        snprintf(list[i].uuid, sizeof list[i].uuid, "GPU-%08d", i);
    list[1] = list[0];
    assert_int_equal(core_step(core, &event), 0);
    const struct cluster_view *view = core_view(core);
    assert_int_equal(view->n_gpus, GPUS - 1);
    for (int i = 0; i < GPUS; i++)
        snprintf(list[i].uuid, sizeof list[i].uuid, "GPU-%08d", GPUS - 1 - i);
    event.time_us = 3;
    assert_int_equal(core_step(core, &event), 0);
    assert_int_equal(view->n_gpus, GPUS);
    assert_string_equal(view->gpus[0].id.uuid, "GPU-00000000");
    assert_string_equal(view->gpus[1].id.uuid, "GPU-00000002");
    assert_string_equal(view->gpus[GPUS - 1].id.uuid, "GPU-00000001");
    assert_true((clock() - begin) / CLOCKS_PER_SEC < 3);
    free(list);
    core_destroy(core);
}

/* Task 1 is to end first: its GPU is reserved for task 3, until the driver no longer lists it. */
static void the_head_gets_another_gpu_for_one_that_is_gone(void **state)
{
    struct core *core = start(2);
    struct task_request large = {.gpus = 1, .exclusive = true};
    for (uint64_t task = 1; task <= 3; task++) {
        large.expect.time_us = reading_of((double)(100 * S * (int64_t)task));
        assert_int_equal(world_submit(core, 2, task, large), 0);
    }
    const struct gpu_view *gpus = core_view(core)->gpus;
    assert_int_equal(gpus[0].claims[CLAIM_HEAD], 3);
    assert_int_equal(gpus[1].claims[CLAIM_HEAD], 0);
    struct gpu_identity left = {.uuid = "GPU-1", .is_place = true, .mem_total_bytes = 40 * GIB};
    struct event event = {.kind = EVENT_GPUS, .time_us = 3, .gpus = {.list = &left, .n = 1}};
    assert_int_equal(core_step(core, &event), 0);
    assert_int_equal(world_sample(core, 4, 1, 1, 0.1, 0), 0);
    gpus = core_view(core)->gpus;
    assert_int_equal(gpus[0].claims[CLAIM_HEAD], 0);
    assert_int_equal(gpus[1].claims[CLAIM_HEAD], 3);
    core_destroy(core);
}

/* Two MIG instances; the second may be gone. */
static int list_instances(struct core *core, int64_t time_us, bool gone)
{
    struct gpu_identity list[] = {{.uuid = "MIG-a", .is_place = true, .is_mig_instance = true},
        {.uuid = "MIG-b", .is_place = !gone, .is_mig_instance = true, .is_gone = gone}};
    list[0].mem_total_bytes = list[1].mem_total_bytes = 20 * GIB;
    struct event event = {.kind = EVENT_GPUS, .time_us = time_us, .gpus = {.list = list, .n = 2}};
    return core_step(core, &event);
}

/* A task on each. */
static struct core *start_on_instances(void)
{
    struct core *core = world_core(&policy_magm, 0);
    assert_int_equal(list_instances(core, 1, false), 0);
    world_sample(core, 1, 0, 0, 0, 0);
    world_sample(core, 1, 1, 0, 0, 0);
    for (uint64_t task = 1; task <= 2; task++) {
        struct task_request alone = plain;
        alone.exclusive = true;
        assert_int_equal(world_submit(core, 2, task, alone), 0);
        assert_int_equal(world_state(core, task), TASK_STARTING);
    }
    return core;
}

static uint64_t on_second_instance(const struct core *core)
{
    return core_view(core)->gpus[1].residents[0].task;
}

static void who_is_on_an_instance_that_is_gone_goes_back(void **state)
{
    struct core *core = start_on_instances();
    uint64_t task = on_second_instance(core), other = 3 - task;
    world_input(core, 3, EVENT_STARTED, task);
    world_input(core, 3, EVENT_STARTED, other);
    assert_int_equal(list_instances(core, 4, true), 0);
    assert_int_equal(world_state(core, task), TASK_ENDING);
    assert_int_equal(world_count(core, EFFECT_KILL, task), 1);
    assert_int_equal(world_count(core, EFFECT_KILL, other), 0);
    assert_int_equal(list_instances(core, 5, true), 0);
    assert_int_equal(world_count(core, EFFECT_APPEND, task), 0);
    world_exit(core, 6, task, FAILURE_GPU_GONE);
    assert_int_equal(world_state(core, task), TASK_QUEUED);
    assert_int_equal(core_task(core, task)->requeue_count, 1);
    world_sample(core, 7, 0, 5, 0.1, 0);
    assert_int_equal(world_state(core, task), TASK_QUEUED);
    assert_int_equal(list_instances(core, 8, false), 0);
    world_sample(core, 9, 1, 0, 0, 0);
    assert_int_equal(world_state(core, task), TASK_STARTING);
    world_check(core);
    core_destroy(core);
}

static void an_instance_that_goes_before_its_task_has_started(void **state)
{
    struct core *core = start_on_instances();
    uint64_t task = on_second_instance(core);
    assert_int_equal(list_instances(core, 4, true), 0);
    world_input(core, 5, EVENT_UNSTARTED, task);
    assert_int_equal(world_state(core, task), TASK_QUEUED);
    assert_int_equal(core_task(core, task)->ending, FAILURE_NONE);
    assert_int_equal(core_task(core, task)->requeue_count, 0);
    world_check(core);
    core_destroy(core);
}

static void who_ends_as_its_instance_goes_has_ended(void **state)
{
    for (int cancel = 0; cancel < 2; cancel++) {
        struct core *core = start_on_instances();
        uint64_t task = on_second_instance(core);
        world_input(core, 3, EVENT_STARTED, task);
        assert_int_equal(list_instances(core, 4, true), 0);
        if (cancel)
            assert_int_equal(world_input(core, 5, EVENT_CANCEL, task), 0);
        world_exit(core, 6, task, FAILURE_NONE);
        assert_int_equal(world_state(core, task), cancel ? TASK_CANCELLED : TASK_COMPLETED);
        world_check(core);
        core_destroy(core);
    }
}

static void what_is_only_not_listed_goes_on(void **state)
{
    struct core *core = start_on_instances();
    struct event none = {.kind = EVENT_GPUS, .time_us = 4};
    world_input(core, 3, EVENT_STARTED, 1);
    assert_int_equal(core_step(core, &none), 0);
    assert_int_equal(world_state(core, 1), TASK_RUNNING);
    core_destroy(core);
}

/* Samples with few readings: returns after how many seconds task 1 counts as settled, or 0. */
static int settles_after(double foreign, bool lists_processes, bool lists_task, bool knows_memory)
{
    struct core *core = start(1);
    int settled = 0;
    world_submit(core, 2, 1, plain);
    for (int t = 1; t <= 60 && !settled; t++) {
        struct task_memory task = {.task = 1,
            .mem_used_bytes = knows_memory ? reading_of(8.0 * (double)GIB) : READING_NONE};
        struct event event = {.kind = EVENT_SAMPLE, .time_us = t * S};
        event.sample.mem_used_bytes = reading_of(8.0 * (double)GIB);
        event.sample.external_processes = lists_processes ? reading_of(foreign) : READING_NONE;
        event.sample.tasks = &task;
        event.sample.n_tasks = lists_task;
        assert_int_equal(core_step(core, &event), 0);
        if (!gpu_view_unsettled(&core_view(core)->gpus[0]))
            settled = t;
    }
    core_destroy(core);
    return settled;
}

static void memory_is_seen_as_far_as_the_driver_tells(void **state)
{
    assert_int_equal(settles_after(0, true, true, true), 11);
    assert_int_equal(settles_after(1, true, true, true), 11);
    assert_int_equal(settles_after(0, true, true, false), 11);
    assert_int_equal(settles_after(1, true, true, false), 0);
    assert_int_equal(settles_after(0, true, false, false), 0);
    assert_int_equal(settles_after(0, false, false, false), 11);
}

static void a_task_alone_shows_what_it_asks_for(void **state)
{
    struct core *core = start(1);
    const struct gpu_view *gpu = &core_view(core)->gpus[0];
    struct task_request said = plain;
    said.expect.smact = reading_of(0.9);
    world_submit(core, 2, 1, said);
    for (int t = 1; t <= 10; t++)
        world_sample(core, t * S, 0, 8, 0.3, 0);
    assert_float_equal(
        gpu->residents[0].expect.smact.value, 0.9, 1e-9); /* it may not have begun yet */
    world_sample(core, 11 * S, 0, 8, 0.3, 0);
    assert_float_equal(gpu->residents[0].expect.smact.value, 0.3, 1e-9);
    world_sample(core, 12 * S, 0, 8, 0.6, 1); /* an external process is there, too */
    assert_float_equal(gpu->residents[0].expect.smact.value, 0.3, 1e-9);
    world_sample(core, 13 * S, 0, 8, 0.3, 0);
    world_submit(core, 13 * S, 2, plain);
    assert_int_equal(gpu->n_residents, 2);
    for (int t = 14; t <= 90; t++)
        world_sample(core, t * S, 0, 20, 0.7, 0);
    assert_float_equal(gpu->residents[0].expect.smact.value, 0.33, 0.03);
    assert_false(gpu->residents[1].expect.smact.valid);
    world_exit(core, 90 * S + 1, 1, FAILURE_NONE);
    world_sample(core, 91 * S, 0, 20, 0.4, 0);
    world_sample(core, 92 * S, 0, 20, 0.4, 0);
    assert_false(gpu->residents[0].expect.smact.valid); /* the mean is still that of both */
    world_sample(core, 93 * S, 0, 20, 0.4, 0);
    assert_float_equal(gpu->residents[0].expect.smact.value, 0.4, 1e-9);
    core_destroy(core);
}

static void a_wait_is_told_once_for_each_reason(void **state)
{
    struct core *core = start(1);
    world_submit(core, 2, 1, plain);
    world_submit(core, 2, 2, plain);
    assert_int_equal(world_count(core, EFFECT_WAIT, 2), 1);
    world_sample(core, S, 0, 10, 0.1, 0);
    assert_int_equal(world_count(core, EFFECT_WAIT, 2), 0);
    for (int t = 2; t <= 30; t++)
        world_sample(core, t * S, 0, t == 30 ? 39 : 10, 0.9, 0);
    assert_int_equal(world_count(core, EFFECT_WAIT, 2), 1);
    world_sample(core, 31 * S, 0, 38.5, 0.9, 0);
    assert_int_equal(world_count(core, EFFECT_WAIT, 2), 0);
    core_destroy(core);
}

/* ---- a sample that shows free memory places the tasks that wait for it ---- */

struct looks {
    double used_gib, of_task_gib;
    struct reading smact;
    double utilisation, foreign;
};

static void see(struct core *core, int64_t time_us, const struct looks *looks)
{
    struct event event = {.kind = EVENT_SAMPLE, .time_us = time_us};
    struct task_memory memory = {
        .task = 1, .mem_used_bytes = reading_of(looks->of_task_gib * (double)GIB)};
    event.sample.mem_used_bytes = reading_of(looks->used_gib * (double)GIB);
    event.sample.smact = looks->smact;
    event.sample.utilisation = reading_of(looks->utilisation);
    event.sample.external_processes = reading_of(looks->foreign);
    event.sample.tasks = &memory;
    event.sample.n_tasks = looks->of_task_gib > 0;
    assert_int_equal(core_step(core, &event), 0);
}

struct makes_room {
    const struct policy *policy;
    struct task_request there, waits; /* there.gpus 0: the GPU has no resident */
    struct looks before, after;
};

#define KNOWN(gib, activity)                                                                       \
    {                                                                                              \
        .gpus = 1, .sharing = SHARING_MPS, .need = {NEED_DECLARED, (gib)*GIB}, .expect = {         \
            .smact = {activity, true}                                                              \
        }                                                                                          \
    }

static void the_sample_that_makes_room_places(void **state)
{
    const struct makes_room stories[] = {
        {&policy_magm, plain, plain, {38, 38, {0.1, true}, 0.1, 0}, {10, 10, {0.1, true}, 0.1, 0}},
        {&policy_magm, plain, plain, {10, 10, {0.9, true}, 0.9, 1}, {10, 10, {0.1, true}, 0.9, 1}},
        {&policy_magm, plain, plain, {10, 10, {0, false}, 0.9, 0}, {10, 10, {0, false}, 0.1, 0}},
        {&policy_magm, {0}, {.gpus = 1, .exclusive = true}, {0.5, 0, {0.1, true}, 0.1, 1},
            {0.5, 0, {0.1, true}, 0.1, 0}},
        {&policy_predictive, KNOWN(5, 0.95), KNOWN(5, 0.9), {5, 5, {0.95, true}, 1, 0},
            {5, 5, {0.2, true}, 1, 0}},
        {&policy_predictive, KNOWN(20, 0.2), KNOWN(10, 0.2), {25, 5, {0.2, true}, 1, 1},
            {25, 20, {0.2, true}, 1, 1}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
        const struct makes_room *story = &stories[i];
        struct core *core = world_core(story->policy, 1);
        int64_t t = 1;
        world_sample(core, t, 0, 0, 0, 0);
        if (story->there.gpus) {
            assert_int_equal(world_submit(core, t, 1, story->there), 0);
            assert_int_equal(world_input(core, t, EVENT_STARTED, 1), 0);
        }
        for (; t <= 120; t++)
            see(core, t * S, &story->before);
        assert_int_equal(world_submit(core, t * S, 2, story->waits), 0);
        see(core, ++t * S, &story->before);
        assert_int_equal(world_state(core, 2), TASK_QUEUED);
        for (int n = 0; n < 200 && world_state(core, 2) == TASK_QUEUED; n++)
            see(core, ++t * S, &story->after);
        assert_int_equal(world_state(core, 2), TASK_STARTING);
        core_destroy(core);
    }
}

static void see_two(struct core *core, int64_t time_us, double first_gib, double second_gib)
{
    struct event event = {.kind = EVENT_SAMPLE, .time_us = time_us};
    struct task_memory memory[] = {
        {.task = 1, .mem_used_bytes = reading_of(first_gib * (double)GIB)},
        {.task = 2, .mem_used_bytes = reading_of(second_gib * (double)GIB)}};
    event.sample.mem_used_bytes = reading_of((first_gib + second_gib) * (double)GIB);
    event.sample.smact = event.sample.utilisation = reading_of(0.2);
    event.sample.external_processes = reading_of(0);
    event.sample.tasks = memory;
    event.sample.n_tasks = 2;
    assert_int_equal(core_step(core, &event), 0);
}

/* One resident frees memory beyond its requirement; another takes memory that it is known to need.
 */
static void memory_that_moves_between_residents_is_seen(void **state)
{
    const struct task_request first = KNOWN(10, 0.1), second = KNOWN(15, 0.1),
                              third = KNOWN(8, 0.1);
    struct core *core = world_core(&policy_predictive, 1);
    int64_t t = 1;
    world_sample(core, t, 0, 0, 0, 0);
    world_submit(core, t, 1, first);
    world_submit(core, t, 2, second);
    for (; t <= 120; t++)
        see_two(core, t * S, 20, 2);
    world_submit(core, t * S, 3, third);
    see_two(core, ++t * S, 20, 2);
    assert_int_equal(world_state(core, 3), TASK_QUEUED);
    see_two(core, ++t * S, 10, 12);
    assert_int_equal(world_state(core, 3), TASK_STARTING);
    core_destroy(core);
}

/* As after a restart of the daemon: the first sample shows the task with its memory. */
static void a_task_first_seen_with_its_memory_causes_no_hold_off(void **state)
{
    struct core *core = start(1);
    world_submit(core, 2, 1, plain);
    world_submit(core, 200 * S, 2, plain);
    assert_int_equal(world_state(core, 2), TASK_QUEUED);
    world_sample(core, 201 * S, 0, 10, 0.1, 0);
    assert_int_equal(world_state(core, 2), TASK_STARTING);
    core_destroy(core);
}

static void the_first_sample_after_a_silence_places(void **state)
{
    struct core *core = start(1);
    world_submit(core, 60 * S, 1, plain);
    assert_int_equal(world_state(core, 1), TASK_QUEUED);
    world_sample(core, 61 * S, 0, 0, 0, 0);
    assert_int_equal(world_state(core, 1), TASK_STARTING);
    core_destroy(core);
}

static struct {
    int choices, reservations;
} counted;

static enum placement_answer choose_counted(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    counted.choices++;
    return policy_magm.choose(query, ret_gpus, ret_verdicts);
}

static bool reserve_counted(
    const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us)
{
    counted.reservations++;
    return policy_magm.reserve(query, ret_gpus, ret_start_us);
}

/* GPUs are reserved anew when an external process appears, and when it has taken 256 MiB more since
 * then, whatever the steps: less than that causes no pass. */
static void external_memory_reserves_anew_in_steps(void **state)
{
    const struct task_request there = KNOWN(20, 0.1), head = KNOWN(30, 0.1);
    const double external_gib[] = {0.5, 0.6, 0.7, 0.74, 0.76, 0.9, 1.02};
    const int reservations[] = {2, 2, 2, 2, 3, 3, 4};
    struct policy policy = policy_magm;
    policy.choose = choose_counted;
    policy.reserve = reserve_counted;
    struct core *core = world_core(&policy, 1);
    int64_t t = 1;
    world_sample(core, t, 0, 0, 0, 0);
    world_submit(core, t, 1, there);
    for (; t <= 120; t++)
        see(core, t * S, &(struct looks){20, 20, {0.1, true}, 0.1, 0});
    memset(&counted, 0, sizeof counted);
    world_submit(core, t * S, 2, head);
    assert_int_equal(counted.reservations, 1);
    for (size_t i = 0; i < ARRAY_SIZE(external_gib); i++) {
        int last = counted.reservations, choices = counted.choices;
        see(core, ++t * S, &(struct looks){20 + external_gib[i], 20, {0.1, true}, 0.1, 1});
        assert_int_equal(counted.reservations, reservations[i]);
        assert_int_equal(counted.choices > choices, counted.reservations > last);
    }
    core_destroy(core);
}

/* The tasks of an array follow its id: a task of that id would hide them for ever. */
static void no_task_has_the_id_of_an_array(void **state)
{
    const struct array_element elements[] = {{8, 0}, {9, 1}};
    struct core *core = world_core(&policy_exclusive, 1);
    struct event array = {.kind = EVENT_SUBMIT,
        .task = 7,
        .submit = {.elements = elements,
            .n_elements = 2,
            .array_limit = 1,
            .request = {.gpus = 1, .sharing = SHARING_STREAMS}}};
    assert_int_equal(core_step(core, &array), 0);
    assert_int_equal(world_submit(core, 1, 7, (struct task_request){.gpus = 1}), CORE_NOT_NOW);
    assert_int_equal(core_step(core, &array), CORE_NOT_NOW);
    assert_int_equal(world_submit(core, 1, 6, (struct task_request){.gpus = 1}), 0);
    assert_int_equal(world_submit(core, 1, 10, (struct task_request){.gpus = 1}), 0);
    core_destroy(core);
}

enum { MANY = 40 };

static int left_of_array[MANY + 1];

static enum placement_answer choose_noting_what_is_left(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    left_of_array[query->task->id] = query->array_left;
    return policy_exclusive.choose(query, ret_gpus, ret_verdicts);
}

static void submit_array(struct core *core, uint64_t id, size_t n)
{
    struct array_element elements[MANY];
    for (size_t i = 0; i < n; i++)
        elements[i] = (struct array_element){id + 1 + i, (int)i};
    struct event event = {.kind = EVENT_SUBMIT,
        .task = id,
        .submit = {.elements = elements, .n_elements = n, .request = plain}};
    memset(left_of_array, 0, sizeof left_of_array);
    assert_int_equal(core_step(core, &event), 0);
}

/* A policy reads how many of an array wait, where they are few. */
static void the_last_of_an_array_are_counted(void **state)
{
    struct policy policy = policy_exclusive;
    policy.choose = choose_noting_what_is_left;
    struct core *core = world_core(&policy, 1);
    assert_int_equal(world_sample(core, 1, 0, 0, 0, 0), 0);
    submit_array(core, 1, 3);
    assert_int_equal(left_of_array[2], 3);
    assert_int_equal(left_of_array[3], 2);
    assert_int_equal(world_submit(core, 1, 5, plain), 0);
    core_destroy(core);
    core = world_core(&policy, 1);
    assert_int_equal(world_sample(core, 1, 0, 0, 0, 0), 0);
    submit_array(core, 1, 30);
    assert_int_equal(left_of_array[2], 0); /* too many */
    assert_int_equal(left_of_array[3], 0);
    core_destroy(core);
    core = world_core(&policy, 1);
    assert_int_equal(world_sample(core, 1, 0, 0, 0, 0), 0);
    assert_int_equal(world_submit(core, 1, 1, plain), 0);
    assert_int_equal(left_of_array[1], 0); /* of none */
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_of_an_array_are_counted),
        cmocka_unit_test(a_queued_task_is_small),
        cmocka_unit_test(limits_of_a_running_task_are_raised_by_operators),
        cmocka_unit_test(the_sample_that_makes_room_places),
        cmocka_unit_test(external_memory_reserves_anew_in_steps),
        cmocka_unit_test(the_first_sample_after_a_silence_places),
        cmocka_unit_test(memory_that_moves_between_residents_is_seen),
        cmocka_unit_test(a_task_first_seen_with_its_memory_causes_no_hold_off),
        cmocka_unit_test(a_task_is_not_moved_to_memory_that_an_unseen_one_may_still_take),
        cmocka_unit_test(why_a_client_of_mps_is_not_suspended),
        cmocka_unit_test(the_context_of_a_suspended_client_counts),
        cmocka_unit_test(a_task_comes_back_to_the_gpus_of_its_contexts),
        cmocka_unit_test(a_client_that_has_come_back_is_suspended_again_at_once),
        cmocka_unit_test(a_task_that_fits_starts_in_the_step_of_its_submission),
        cmocka_unit_test(latest_starts_can_stand_in_the_log),
        cmocka_unit_test(cancels_shorten_the_schedule_once),
        cmocka_unit_test(a_repeated_activity_is_one_sample),
        cmocka_unit_test(cancels_leave_the_pass_to_the_step_after_them),
        cmocka_unit_test(tasks_are_placed_when_the_poll_is_complete),
        cmocka_unit_test(a_submission_shortens_and_appends_in_one_schedule),
        cmocka_unit_test(ends_in_one_step_shorten_the_schedule_once),
        cmocka_unit_test(a_restart_shortens_what_the_log_left_too_long),
        cmocka_unit_test(latest_starts_are_the_same_after_a_restart),
        cmocka_unit_test(a_reload_gives_waiting_tasks_latest_starts),
        cmocka_unit_test(held_tasks_have_no_place),
        cmocka_unit_test(an_update_with_a_begin_time_gives_up_the_place),
        cmocka_unit_test(nonsense_is_an_answer_and_changes_nothing),
        cmocka_unit_test(cancelling_a_start_kills_once_there_is_something_to_kill),
        cmocka_unit_test(a_cancelled_start_that_never_was_is_cancelled),
        cmocka_unit_test(what_can_have_its_cpus_no_more_holds_up_no_other_user),
        cmocka_unit_test(many_that_wait_for_cpus_hold_off_none_that_requests_nothing),
        cmocka_unit_test(what_can_have_its_cpus_no_more_holds_up_none_without_gpu),
        cmocka_unit_test(what_never_started_has_waited_all_the_time),
        cmocka_unit_test(what_was_logged_as_started_but_never_ran_is_queued_again),
        cmocka_unit_test(an_end_that_is_noticed_late_counts_from_when_it_was),
        cmocka_unit_test(a_task_that_ended_in_time_has_not_run_out_of_it),
        cmocka_unit_test(only_who_waits_for_an_estimate_takes_one),
        cmocka_unit_test(times_are_kept_apart),
        cmocka_unit_test(only_a_gpu_crash_with_company_recovers),
        cmocka_unit_test(both_sides_have_company_even_when_one_has_left),
        cmocka_unit_test(the_deadline_is_the_earliest_time_limit),
        cmocka_unit_test(a_replay_decides_what_the_log_left_open),
        cmocka_unit_test(done_tasks_can_be_forgotten_and_no_others),
        cmocka_unit_test(tasks_are_found_among_any_ids),
        cmocka_unit_test(gpus_come_and_go_under_the_same_index),
        cmocka_unit_test(many_gpus_are_known_by_their_uuids),
        cmocka_unit_test(the_head_gets_another_gpu_for_one_that_is_gone),
        cmocka_unit_test(who_is_on_an_instance_that_is_gone_goes_back),
        cmocka_unit_test(an_instance_that_goes_before_its_task_has_started),
        cmocka_unit_test(who_ends_as_its_instance_goes_has_ended),
        cmocka_unit_test(what_is_only_not_listed_goes_on),
        cmocka_unit_test(memory_is_seen_as_far_as_the_driver_tells),
        cmocka_unit_test(a_task_alone_shows_what_it_asks_for),
        cmocka_unit_test(a_wait_is_told_once_for_each_reason),
        cmocka_unit_test(no_task_has_the_id_of_an_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
