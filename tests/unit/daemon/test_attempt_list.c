/* SPDX-License-Identifier: Apache-2.0 */
/* The attempts of a task: what the events of its life leave in the list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/daemon.h"

/* ---- what attempts.c asks of the rest of the daemon ---- */

static struct gpu_view gpus[2] = {
    {.id = {.uuid = "GPU-a", .label = "0"}}, {.id = {.uuid = "GPU-b", .label = "1"}}};
static struct cluster_view view = {.gpus = gpus, .n_gpus = 2};
static struct task task;
static struct job job;

const struct cluster_view *core_view(const struct core *core)
{
    return &view;
}

const struct task *core_task(const struct core *core, uint64_t id)
{
    return id == task.id ? &task : NULL;
}

int64_t driver_wall_us(struct driver *driver, int64_t time_us)
{
    return time_us;
}

struct job *job_find(struct daemon *daemon, uint64_t id)
{
    return id == job.id ? &job : NULL;
}

const char *record_failure_word(enum failure_class failure)
{
    return failure_name(failure);
}

/* ---- tests ---- */

static int begin_task(void **state)
{
    task = (struct task){.id = 7};
    static struct daemon daemon;
    job = (struct job){.id = 7, .attempts = json_array(), .daemon = &daemon};
    return job.attempts ? 0 : -1;
}

static int forget_task(void **state)
{
    json_decref(job.attempts);
    return 0;
}

static void note(struct event event, uint64_t of)
{
    static struct daemon daemon;
    event.task = of;
    attempts_note(&daemon, &event);
}

static void place(const int *on, int n, int64_t time_us)
{
    struct event event = {.kind = EVENT_PLACE, .time_us = time_us};
    event.place.gpus = on;
    event.place.n = n;
    note(event, 7);
}

static void end(enum failure_class failure, int code, int signal, int64_t time_us)
{
    struct event event = {.kind = EVENT_EXITED, .time_us = time_us};
    event.exited = (struct task_exit){.failure = failure, .code = code, .signal = signal};
    note(event, 7);
}

static void assert_attempts(const char *expected)
{
    json_t *list = attempts_snapshot(&job), *wanted = json_loads(expected, 0, NULL);
    char *text = json_dumps(list, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(12));
    assert_non_null(wanted);
    if (!json_equal(list, wanted))
        fail_msg("%s", text);
    free(text);
    json_decref(list);
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
        "\"ended_at\":2.5,\"reason\":\"gpu-oom\",\"exit_code\":1,\"signal\":null},"
        "{\"gpus\":[\"0\",\"1\"],\"gpu_uuids\":[\"GPU-a\",\"GPU-b\"],\"started_at\":3.0,"
        "\"ended_at\":4.0,\"reason\":\"none\",\"exit_code\":0,\"signal\":null}]");
}

static void what_it_was_told_to_do_is_the_reason(void **state)
{
    place((int[]){0}, 1, 1000000);
    task.ending = FAILURE_CANCELLED;
    end(FAILURE_SIGNAL, -1, 15, 2000000);
    assert_attempts("[{\"gpus\":[\"0\"],\"gpu_uuids\":[\"GPU-a\"],\"started_at\":1.0,"
                    "\"ended_at\":2.0,\"reason\":\"cancelled\",\"exit_code\":null,\"signal\":15}]");
}

static void a_start_that_never_was(void **state)
{
    place((int[]){0}, 1, 1000000);
    note((struct event){.kind = EVENT_UNSTARTED, .time_us = 1500000}, 7);
    assert_attempts(
        "[{\"gpus\":[\"0\"],\"gpu_uuids\":[\"GPU-a\"],\"started_at\":1.0,"
        "\"ended_at\":1.5,\"reason\":\"NotStarted\",\"exit_code\":null,\"signal\":null}]");
}

static void other_events_and_other_tasks_leave_it_alone(void **state)
{
    end(FAILURE_NONE, 0, 0, 1000000);
    note((struct event){.kind = EVENT_HOLD}, 7);
    note((struct event){.kind = EVENT_UNSTARTED}, 7);
    note((struct event){.kind = EVENT_PLACE}, 8);
    assert_attempts("[]");
    place((int[]){-1, 2}, 2, 1000000); /* not GPUs of this machine */
    assert_int_equal(json_array_size(json_object_get(json_array_get(job.attempts, 0), "gpus")), 0);
}

static void an_old_record_gets_the_keys_of_today(void **state)
{
    json_t *old = json_pack("{s:i}", "attempts", 2);
    attempts_upgrade(old);
    attempts_upgrade(old); /* a second time changes nothing */
    assert_int_equal(json_integer_value(json_object_get(old, "attempt_count")), 2);
    assert_true(json_is_array(json_object_get(old, "attempts")));
    json_decref(old);
    json_t *none = attempts_snapshot(NULL);
    assert_int_equal(json_array_size(none), 0);
    json_decref(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_crash_and_a_second_try, begin_task, forget_task),
        cmocka_unit_test_setup_teardown(
            what_it_was_told_to_do_is_the_reason, begin_task, forget_task),
        cmocka_unit_test_setup_teardown(a_start_that_never_was, begin_task, forget_task),
        cmocka_unit_test_setup_teardown(
            other_events_and_other_tasks_leave_it_alone, begin_task, forget_task),
        cmocka_unit_test(an_old_record_gets_the_keys_of_today),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
