/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a task: what its STEP events leave in the list, and how a TASK object shows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/step_list.h"

static json_t *list;

static void note(int64_t time_us, json_t *detail)
{
    step_list_note(&list, time_us, detail);
    json_decref(detail);
}

static void begin(int attempt, const char *name, int64_t time_us)
{
    note(time_us, step_list_begin(attempt, step_list_next(list, attempt), name, 1));
}

static void assert_json(json_t *actual, const char *text)
{
    json_t *expected = json_loads(text, 0, NULL);
    char *shown = json_dumps(actual, JSON_COMPACT | JSON_SORT_KEYS);
    assert_non_null(expected);
    if (!json_equal(expected, actual))
        fail_msg("%s is not %s", shown, text);
    free(shown);
    json_decref(expected);
    json_decref(actual);
}

static int forget(void **state)
{
    json_decref(list);
    list = NULL;
    return 0;
}

static void test_ends(void **state)
{
    json_t *task = json_pack(
        "{s:s, s:n, s:n, s:n}", "state", "RUNNING", "ended_at", "exit_code", "signal");
    begin(1, "a", 1 * SECOND_US);
    begin(1, "b", 2 * SECOND_US);
    begin(1, "c", 3 * SECOND_US);
    note(4 * SECOND_US, step_list_end(1, 1, 3, 0));
    note(5 * SECOND_US, step_list_end(1, 0, 0, 0));
    assert_false(step_list_is_open(list, 1, 0));
    assert_true(step_list_is_open(list, 1, 2));
    note(9 * SECOND_US, step_list_end(1, 0, 7, 0)); /* it has ended */
    note(9 * SECOND_US, step_list_end(2, 2, 7, 0)); /* of an attempt that has no steps */
    assert_json(step_list_json(list, 1, task, 100 * SECOND_US),
        "[{\"step\": 0, \"name\": \"a\", \"processes\": 1, \"started_at\": 101.0, "
        "\"ended_at\": 105.0, \"state\": \"COMPLETED\", \"exit_code\": 0, \"signal\": null},"
        "{\"step\": 1, \"name\": \"b\", \"processes\": 1, \"started_at\": 102.0, "
        "\"ended_at\": 104.0, \"state\": \"FAILED\", \"exit_code\": 3, \"signal\": null},"
        "{\"step\": 2, \"name\": \"c\", \"processes\": 1, \"started_at\": 103.0, "
        "\"ended_at\": null, \"state\": \"RUNNING\", \"exit_code\": null, \"signal\": null}]");
    note(6 * SECOND_US, step_list_end(1, 2, 0, 9));
    json_t *shown = step_list_json(list, 1, task, 0), *last = json_array_get(shown, 2);
    assert_string_equal(json_string_value(json_object_get(last, "state")), "FAILED");
    assert_int_equal(json_integer_value(json_object_get(last, "signal")), 9);
    json_decref(shown);
    json_decref(task);
}

static void test_the_tasks_end_is_that_of_an_open_step(void **state)
{
    json_t *task = json_pack(
        "{s:s, s:f, s:i, s:n}", "state", "TIMEOUT", "ended_at", 170.0, "exit_code", 143, "signal");
    begin(1, "a", SECOND_US);
    assert_json(step_list_json(list, 1, task, 100 * SECOND_US),
        "[{\"step\": 0, \"name\": \"a\", \"processes\": 1, \"started_at\": 101.0, "
        "\"ended_at\": 170.0, \"state\": \"TIMEOUT\", \"exit_code\": 143, \"signal\": null}]");
    json_decref(task);
}

static void test_an_attempt_has_its_own(void **state)
{
    begin(1, "a", SECOND_US);
    begin(1, "b", SECOND_US);
    assert_int_equal(step_list_next(list, 2), 0);
    assert_json(step_list_json(list, 2, NULL, 0), "[]");
    begin(2, "c", 2 * SECOND_US);
    assert_int_equal(json_array_size(list), 1);
    assert_false(step_list_is_open(list, 1, 0));
    assert_true(step_list_is_open(list, 2, 0));
}

static void test_there_is_a_most(void **state)
{
    for (int i = 0; i < STEPS_MAX + 5; i++)
        begin(1, "a", SECOND_US);
    assert_int_equal(json_array_size(list), STEPS_MAX);
    assert_int_equal(step_list_next(list, 1), STEPS_MAX);
}

static void test_any_detail(void **state)
{
    static const char *const texts[] = {"null", "[]", "{}", "{\"name\": 3}", "{\"step\": \"a\"}",
        "{\"step\": 0, \"attempt\": 1e300}", "{\"step\": -1, \"attempt\": 1, \"exit_code\": 0}",
        "{\"step\": 9223372036854775807, \"attempt\": 1, \"exit_code\": 0}"};
    begin(1, "a", SECOND_US);
    step_list_note(&list, 0, NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        note(0, json_loads(texts[i], JSON_DECODE_ANY, NULL));
    assert_int_equal(json_array_size(list), 1);
    assert_true(step_list_is_open(list, 1, 0));
    assert_json(step_list_json(NULL, 1, NULL, 0), "[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_ends, forget),
        cmocka_unit_test_teardown(test_the_tasks_end_is_that_of_an_open_step, forget),
        cmocka_unit_test_teardown(test_an_attempt_has_its_own, forget),
        cmocka_unit_test_teardown(test_there_is_a_most, forget),
        cmocka_unit_test_teardown(test_any_detail, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
