/* SPDX-License-Identifier: Apache-2.0 */
/* The attempts of a task: what the events of its life leave in the list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/attempt_list.h"

/* ---- the core ---- */

static struct gpu_view gpus[2] = {
    {.id = {.uuid = "GPU-a", .label = "0"}}, {.id = {.uuid = "GPU-b", .label = "1"}}};
static struct cluster_view view = {.gpus = gpus, .n_gpus = 2};
static struct task task;
static json_t *list;

const struct cluster_view *core_view(const struct core *core)
{
    return &view;
}

const struct task *core_task(const struct core *core, uint64_t id)
{
    return id == task.id ? &task : NULL;
}

/* ---- tests ---- */

static int begin_task(void **state)
{
    task = (struct task){.id = 7};
    list = NULL;
    return 0;
}

static int forget_task(void **state)
{
    json_decref(list);
    return 0;
}

static void note(struct event event)
{
    event.task = task.id;
    attempt_list_note(&list, NULL, &event);
}

static void place(const int *on, int n, int64_t time_us)
{
    struct event event = {.kind = EVENT_PLACE, .time_us = time_us};
    event.place.gpus = on;
    event.place.n = n;
    note(event);
}

static void end(enum failure_class failure, int code, int signal, int64_t time_us)
{
    struct event event = {.kind = EVENT_EXITED, .time_us = time_us};
    event.exited = (struct task_exit){.failure = failure, .code = code, .signal = signal};
    note(event);
}

static void assert_attempts(const char *expected)
{
    json_t *copy = attempt_list_copy(list, 0), *wanted = json_loads(expected, 0, NULL);
    char *text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(12));
    assert_non_null(wanted);
    if (!json_equal(copy, wanted))
        fail_msg("%s", text);
    free(text);
    json_decref(copy);
    json_decref(wanted);
}

static void a_crash_and_a_second_try(void **state)
{
    note((struct event){.kind = EVENT_HOLD});
    assert_null(list); /* most tasks of a long queue have no attempt yet */
    place((int[]){1}, 1, 1000000);
    assert_attempts(
        "[{\"gpus\":[\"1\"],\"gpu_uuids\":[\"GPU-b\"],\"started_at\":1.0,"
        "\"ended_at\":null,\"reason\":null,\"exit_code\":null,\"signal\":null,\"interruptions\":[]}]");
    end(FAILURE_GPU_OOM, 1, 0, 2500000);
    place((int[]){0, 1}, 2, 3000000);
    end(FAILURE_NONE, 0, 0, 4000000);
    assert_attempts(
        "[{\"gpus\":[\"1\"],\"gpu_uuids\":[\"GPU-b\"],\"started_at\":1.0,"
        "\"ended_at\":2.5,\"reason\":\"OutOfMemory\",\"exit_code\":1,\"signal\":null,\"interruptions\":[]},"
        "{\"gpus\":[\"0\",\"1\"],\"gpu_uuids\":[\"GPU-a\",\"GPU-b\"],\"started_at\":3.0,"
        "\"ended_at\":4.0,\"reason\":\"None\",\"exit_code\":0,\"signal\":null,\"interruptions\":[]}]");
}

static void the_reason_is_what_ended_it(void **state)
{
    place((int[]){0}, 1, 1000000);
    task.ending = FAILURE_CANCELLED;
    end(FAILURE_SIGNAL, -1, 15, 2000000);
    assert_attempts(
        "[{\"gpus\":[\"0\"],\"gpu_uuids\":[\"GPU-a\"],\"started_at\":1.0,"
        "\"ended_at\":2.0,\"reason\":\"Cancelled\",\"exit_code\":null,\"signal\":15,\"interruptions\":[]}]");
}

static void a_start_that_never_was(void **state)
{
    place((int[]){0}, 1, 1000000);
    note((struct event){.kind = EVENT_UNSTARTED, .time_us = 1500000});
    assert_attempts(
        "[{\"gpus\":[\"0\"],\"gpu_uuids\":[\"GPU-a\"],\"started_at\":1.0,"
        "\"ended_at\":1.5,\"reason\":\"NotStarted\",\"exit_code\":null,\"signal\":null,\"interruptions\":[]}]");
}

/* An interruption decided at `time_us` that leads to these GPUs. */
static void yield(enum event_kind kind, enum yield_reason reason, const int *to, int n, int64_t us)
{
    struct event event = {.kind = kind, .time_us = us};
    event.yield.reason = reason;
    event.yield.gpus = to;
    event.yield.n = n;
    note(event);
}

static void assert_interruptions(const char *expected)
{
    json_t *wanted = json_loads(expected, 0, NULL);
    const json_t *attempt = json_array_get(list, json_array_size(list) - 1),
                 *got = json_object_get(attempt, "interruptions");
    char *text = json_dumps(got, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(12));
    assert_non_null(wanted);
    if (!json_equal(got, wanted))
        fail_msg("%s", text);
    free(text);
    json_decref(wanted);
}

static void a_suspension_and_a_move(void **state)
{
    note((struct event){.kind = EVENT_RESUMED});
    place((int[]){0}, 1, 1000000);
    yield(EVENT_SUSPENDING, YIELD_TO_MEMORY, NULL, 0, 2000000);
    note((struct event){.kind = EVENT_SUSPENDED, .time_us = 2500000});
    assert_interruptions("[{\"kind\":\"suspended\",\"reason\":\"memory\",\"since\":2.0,"
                         "\"until\":null,\"gpus\":null,\"gpu_uuids\":null}]");
    yield(EVENT_RESUMING, YIELD_TO_MEMORY, (int[]){1}, 1, 3000000);
    note((struct event){.kind = EVENT_RESUMED, .time_us = 3500000});
    yield(EVENT_MOVING, YIELD_TO_USER, (int[]){0}, 1, 4000000);
    note((struct event){.kind = EVENT_MOVED, .time_us = 4500000});
    yield(EVENT_PAUSE, YIELD_TO_SLOT, NULL, 0, 5000000);
    end(FAILURE_NONE, 0, 0, 6000000); /* it ends what goes on */
    assert_interruptions(
        "[{\"kind\":\"suspended\",\"reason\":\"memory\",\"since\":2.0,\"until\":3.5,"
        "\"gpus\":[\"1\"],\"gpu_uuids\":[\"GPU-b\"]},"
        "{\"kind\":\"moved\",\"reason\":\"user\",\"since\":4.0,\"until\":4.5,"
        "\"gpus\":[\"0\"],\"gpu_uuids\":[\"GPU-a\"]},"
        "{\"kind\":\"paused\",\"reason\":\"slot\",\"since\":5.0,\"until\":6.0,"
        "\"gpus\":null,\"gpu_uuids\":null}]");
    json_t *copy = attempt_list_copy(list, 1000000);
    const json_t *first = json_array_get(
        json_object_get(json_array_get(copy, 0), "interruptions"), 0);
    assert_true(json_real_value(json_object_get(first, "until")) > 4.4);
    json_decref(copy);
}

static void a_move_that_fails(void **state)
{
    struct event failed = {.kind = EVENT_SUSPENSION_FAILED, .time_us = 3000000};
    place((int[]){0}, 1, 1000000);
    note(failed);
    yield(EVENT_MOVING, YIELD_TO_USER, (int[]){1}, 1, 2000000);
    note(failed);
    assert_interruptions("[{\"kind\":\"moved\",\"reason\":\"user\",\"since\":2.0,"
                         "\"until\":3.0,\"gpus\":null,\"gpu_uuids\":null}]");
    yield(EVENT_MOVING, YIELD_TO_USER, (int[]){1}, 1, 4000000);
    failed.suspension_failed.is_suspended = true;
    note(failed);
    const json_t *now = json_array_get(
        json_object_get(json_array_get(list, 0), "interruptions"), 1);
    assert_string_equal(json_string_value(json_object_get(now, "kind")), "suspended");
    assert_true(json_is_null(json_object_get(now, "until")));
}

static void interruptions_are_bounded(void **state)
{
    place((int[]){0}, 1, 1000000);
    for (int i = 0; i < ATTEMPT_INTERRUPTIONS_MAX + 5; i++) {
        yield(EVENT_PAUSE, YIELD_TO_SLOT, NULL, 0, 1000000 * (i + 2));
        note((struct event){.kind = EVENT_CONTINUE, .time_us = 1000000 * (i + 2) + 1});
    }
    const json_t *kept = json_object_get(json_array_get(list, 0), "interruptions");
    assert_int_equal(json_array_size(kept), ATTEMPT_INTERRUPTIONS_MAX);
    assert_true(json_real_value(json_object_get(json_array_get(kept, 0), "since")) > 6.9);
    json_object_del(json_array_get(list, 0), "interruptions"); /* as an older daemon began it */
    yield(EVENT_PAUSE, YIELD_TO_SLOT, NULL, 0, 9000000000);
    kept = json_object_get(json_array_get(list, 0), "interruptions");
    assert_int_equal(json_array_size(kept), 1);
}

static void other_events_leave_it_alone(void **state)
{
    end(FAILURE_NONE, 0, 0, 1000000);
    note((struct event){.kind = EVENT_HOLD});
    note((struct event){.kind = EVENT_UNSTARTED});
    assert_attempts("[]");
    place((int[]){-1, 2}, 2, 1000000); /* not GPUs of this machine */
    assert_int_equal(json_array_size(json_object_get(json_array_get(list, 0), "gpus")), 0);
}

static void people_are_shown_wall_time(void **state)
{
    place((int[]){0}, 1, 1000000);
    json_t *copy = attempt_list_copy(list, 500000);
    const json_t *started = json_object_get(json_array_get(copy, 0), "started_at");
    assert_true(json_real_value(started) > 1.4 && json_real_value(started) < 1.6);
    json_decref(copy);
    assert_attempts(
        "[{\"gpus\":[\"0\"],\"gpu_uuids\":[\"GPU-a\"],\"started_at\":1.0,"
        "\"ended_at\":null,\"reason\":null,\"exit_code\":null,\"signal\":null,\"interruptions\":[]}]");
}

static void an_old_record_gets_the_keys_of_today(void **state)
{
    json_t *old = json_pack("{s:i}", "attempts", 2);
    attempt_list_upgrade(old);
    attempt_list_upgrade(old); /* a second time changes nothing */
    assert_int_equal(json_integer_value(json_object_get(old, "attempt_count")), 2);
    assert_true(json_is_array(json_object_get(old, "attempts")));
    json_decref(old);
    json_t *none = attempt_list_copy(NULL, 0);
    assert_int_equal(json_array_size(none), 0);
    json_decref(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_crash_and_a_second_try, begin_task, forget_task),
        cmocka_unit_test_setup_teardown(the_reason_is_what_ended_it, begin_task, forget_task),
        cmocka_unit_test_setup_teardown(a_start_that_never_was, begin_task, forget_task),
        cmocka_unit_test_setup_teardown(a_suspension_and_a_move, begin_task, forget_task),
        cmocka_unit_test_setup_teardown(a_move_that_fails, begin_task, forget_task),
        cmocka_unit_test_setup_teardown(interruptions_are_bounded, begin_task, forget_task),
        cmocka_unit_test_setup_teardown(other_events_leave_it_alone, begin_task, forget_task),
        cmocka_unit_test_setup_teardown(people_are_shown_wall_time, begin_task, forget_task),
        cmocka_unit_test(an_old_record_gets_the_keys_of_today),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
