/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `srun` reports when a step begins and how it ends; the event log has both as STEP events, which
 * are noted here when they are fed or, after a restart, replayed:
 *
 *     {"attempt": 1, "step": 0, "name": "python"}       a new element, with the time as its start
 *     {"attempt": 1, "step": 0, "exit_code": 1}         its end
 *
 * A step whose srun was killed, or ended together with the task, has no such end.
 */
#include "daemon/step_list.h"

#include <limits.h>

#include "base/json_member.h"

json_t *step_list_begin(int attempt, int step, const char *name, int processes)
{
    return json_pack("{s:i, s:i, s:s, s:i}", "attempt", attempt, "step", step, "name", name,
        "processes", processes);
}

json_t *step_list_end(int attempt, int step, int exit_code, int signal)
{
    return json_pack("{s:i, s:i, s:i}", "attempt", attempt, "step", step,
        signal ? "signal" : "exit_code", signal ? signal : exit_code);
}

/* A detail of a damaged log may have any number. */
static int member_integer(const json_t *object, const char *key, int otherwise)
{
    const json_t *number = json_object_get(object, key);
    json_int_t value = json_integer_value(number);
    return json_is_integer(number) && value >= 0 && value <= INT_MAX ? (int)value : otherwise;
}

static int attempt_of(const json_t *list)
{
    return member_integer(json_array_get(list, 0), "attempt", 0);
}

/* The steps are in the order of their numbers. */
static json_t *find_open(const json_t *list, int attempt, int step)
{
    json_t *found = step >= 0 ? json_array_get(list, (size_t)step) : NULL;
    bool is_open = found && attempt_of(list) == attempt &&
                   json_is_null(json_object_get(found, "ended_at"));
    return is_open ? found : NULL;
}

bool step_list_is_open(const json_t *list, int attempt, int step)
{
    return find_open(list, attempt, step) != NULL;
}

int step_list_next(const json_t *list, int attempt)
{
    return attempt_of(list) == attempt ? (int)json_array_size(list) : 0;
}

static double seconds_of(int64_t us)
{
    return (double)us / 1e6;
}

static void begin_step(json_t **list, int attempt, const char *name, int processes, int64_t time_us)
{
    if (!*list)
        *list = json_array();
    if (attempt_of(*list) != attempt)
        json_array_clear(*list);
    json_array_append_new(
        *list, json_pack("{s:i, s:i, s:s, s:i, s:f, s:n, s:n, s:n}", "attempt", attempt, "step",
                   (int)json_array_size(*list), "name", name, "processes", processes, "started_at",
                   seconds_of(time_us), "ended_at", "exit_code", "signal"));
}

void step_list_note(json_t **list, int64_t time_us, const json_t *detail)
{
    int attempt = member_integer(detail, "attempt", 0), step = member_integer(detail, "step", -1);
    const char *name = member_text(detail, "name", NULL);
    if (name && step_list_next(*list, attempt) < STEPS_MAX) {
        begin_step(list, attempt, name, member_integer(detail, "processes", 1), time_us);
        return;
    }
    json_t *open = name ? NULL : find_open(*list, attempt, step);
    if (!open)
        return;
    json_object_set_new(open, "ended_at", json_real(seconds_of(time_us)));
    json_object_update_existing(open, (json_t *)(uintptr_t)detail);
}

/* ---- as people see it ---- */

static void show_open(json_t *shown, const json_t *task)
{
    static const char *const members[] = {"state", "ended_at", "exit_code", "signal"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *value = json_object_get(task, members[i]);
        json_object_set(shown, members[i], value ? value : json_null());
    }
}

static json_t *step_json(const json_t *step, const json_t *task, int64_t ahead_us)
{
    json_t *shown = json_pack("{s:O, s:O, s:O, s:f}", "step", json_object_get(step, "step"), "name",
        json_object_get(step, "name"), "processes", json_object_get(step, "processes"),
        "started_at", member_number(step, "started_at", 0) + seconds_of(ahead_us));
    json_t *code = json_object_get(step, "exit_code"), *signal = json_object_get(step, "signal");
    if (json_is_null(json_object_get(step, "ended_at"))) {
        show_open(shown, task);
        return shown;
    }
    bool is_success = json_is_integer(code) && json_integer_value(code) == 0;
    json_object_set_new(shown, "state", json_string(is_success ? "COMPLETED" : "FAILED"));
    json_object_set_new(
        shown, "ended_at", json_real(member_number(step, "ended_at", 0) + seconds_of(ahead_us)));
    json_object_set(shown, "exit_code", code);
    json_object_set(shown, "signal", signal);
    return shown;
}

json_t *step_list_json(const json_t *list, int attempt, const json_t *task, int64_t ahead_us)
{
    json_t *copy = json_array(), *step;
    size_t i;
    if (attempt_of(list) != attempt)
        return copy;
    json_array_foreach(list, i, step) {
        json_array_append_new(copy, step_json(step, task, ahead_us));
    }
    return copy;
}
