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
    list = json_array();
    return list ? 0 : -1;
}

static int forget_task(void **state)
{
    json_decref(list);
    return 0;
}

static void note(struct event event)
{
    event.task = task.id;
    attempt_list_note(list, NULL, &event);
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
    place((int[]){1}, 1, 1000000);
    assert_attempts("[{\"gpus\":[\"1\"],\"gpu_uuids\":[\"GPU-b\"],\"started_at\":1.0,"
                    "\"ended_at\":null,\"reason\":null,\"exit_code\":null,\"signal\":null}]");
    end(FAILURE_GPU_OOM, 1, 0, 2500000);
    place((int[]){0, 1}, 2, 3000000);
    end(FAILURE_NONE, 0, 0, 4000000);
    assert_attempts(
        "[{\"gpus\":[\"1\"],\"gpu_uuids\":[\"GPU-b\"],\"started_at\":1.0,"
        "\"ended_at\":2.5,\"reason\":\"OutOfMemory\",\"exit_code\":1,\"signal\":null},"
        "{\"gpus\":[\"0\",\"1\"],\"gpu_uuids\":[\"GPU-a\",\"GPU-b\"],\"started_at\":3.0,"
        "\"ended_at\":4.0,\"reason\":\"None\",\"exit_code\":0,\"signal\":null}]");
}

static void the_reason_is_what_ended_it(void **state)
{
    place((int[]){0}, 1, 1000000);
    task.ending = FAILURE_CANCELLED;
    end(FAILURE_SIGNAL, -1, 15, 2000000);
    assert_attempts("[{\"gpus\":[\"0\"],\"gpu_uuids\":[\"GPU-a\"],\"started_at\":1.0,"
                    "\"ended_at\":2.0,\"reason\":\"Cancelled\",\"exit_code\":null,\"signal\":15}]");
}

static void a_start_that_never_was(void **state)
{
    place((int[]){0}, 1, 1000000);
    note((struct event){.kind = EVENT_UNSTARTED, .time_us = 1500000});
    assert_attempts(
        "[{\"gpus\":[\"0\"],\"gpu_uuids\":[\"GPU-a\"],\"started_at\":1.0,"
        "\"ended_at\":1.5,\"reason\":\"NotStarted\",\"exit_code\":null,\"signal\":null}]");
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
    assert_attempts("[{\"gpus\":[\"0\"],\"gpu_uuids\":[\"GPU-a\"],\"started_at\":1.0,"
                    "\"ended_at\":null,\"reason\":null,\"exit_code\":null,\"signal\":null}]");
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
        cmocka_unit_test_setup_teardown(other_events_leave_it_alone, begin_task, forget_task),
        cmocka_unit_test_setup_teardown(people_are_shown_wall_time, begin_task, forget_task),
        cmocka_unit_test(an_old_record_gets_the_keys_of_today),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
