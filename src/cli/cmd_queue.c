/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc queue`: the waiting and running tasks as a table or JSON.
 *
 *     ID  NAME   USER  STATE    TIME  GPUS    MEMORY  GPU(REASON)
 *     12  train  ada   RUNNING  3:04     1  11.4 GiB  2
 *     13  bert   bob   PENDING  0:41     2         -  (Resources) GPU 0: 3.1 GiB short
 *
 * The daemon sorts and filters (GET /v1/tasks); here its answer is only formatted. The table
 * requests folded arrays: their waiting tasks share a line, such as 14_[3-99]. JSON has each task.
 */
#include <stdlib.h>

#include "base/array.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/task_view.h"
#include "cli/task_words.h"

enum { QUEUE_USER, QUEUE_STATE, QUEUE_LIMIT, QUEUE_LONG, QUEUE_START };

static const char *const states[] = {
    "live", "all", "PENDING", "RUNNING", "SUSPENDED", "PAUSED", "COMPLETING", NULL};

static const struct option_spec options[] = {
    [QUEUE_USER] = {.name = "user",
        .letter = 'u',
        .kind = OPTION_TEXT,
        .argument = "NAME",
        .help = "show only the tasks of this user"},
    [QUEUE_STATE] = {.name = "state",
        .letter = 's',
        .kind = OPTION_TEXT,
        .argument = "STATE",
        .choices = states,
        .help = "show only the tasks in this state (upper or lower case), all, or live "
                "(not ended); default: live"},
    [QUEUE_LIMIT] = {.name = "limit",
        .letter = 'n',
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 1,
        .max = 1000000,
        .help = "largest number of tasks; default: no limit"},
    [QUEUE_LONG] = {.name = "long",
        .letter = 'l',
        .kind = OPTION_FLAG,
        .help = "show the command lines instead of the full reasons; of your own tasks, "
                "and for root of all"},
    [QUEUE_START] = {.name = "start",
        .kind = OPTION_FLAG,
        .help = "show when the first 64 waiting tasks are expected to start, by expected times "
                "and time limits; \"after\" a moment: only the moment of --begin is known; -: "
                "unknown; with --json instead of the tasks"},
};

static const struct table_column columns[] = {
    {"ID", TABLE_RIGHT},
    {"NAME", TABLE_CUT},
    {"USER", 0},
    {"STATE", 0},
    {"TIME", TABLE_RIGHT},
    {"GPUS", TABLE_RIGHT},
    {"MEMORY", TABLE_RIGHT},
    {"GPU(REASON)", TABLE_REST},
};

static const struct table_column long_columns[] = {
    {"ID", TABLE_RIGHT},
    {"NAME", TABLE_CUT},
    {"USER", 0},
    {"STATE", 0},
    {"TIME", TABLE_RIGHT},
    {"GPUS", TABLE_RIGHT | TABLE_WIDE},
    {"MEMORY", TABLE_RIGHT | TABLE_WIDE},
    {"GPU(REASON)", 0},
    {"COMMAND", TABLE_REST},
};

static const struct table_column start_columns[] = {
    {"ID", TABLE_RIGHT},
    {"NAME", TABLE_CUT},
    {"USER", 0},
    {"STATE", 0},
    {"TIME", TABLE_RIGHT},
    {"GPUS", TABLE_RIGHT},
    {"MEMORY", TABLE_RIGHT},
    {"START", 0},
    {"GPU(REASON)", TABLE_REST},
};

/* The optional columns. */
struct form {
    bool is_long;
    const json_t *starts; /* of GET /v1/starts; NULL: not requested */
};

/* The task's entry in an answer of GET /v1/starts; NULL: it has none. */
static const json_t *find_start(const json_t *starts, const json_t *task)
{
    size_t i;
    json_t *start;
    json_array_foreach(starts, i, start) {
        if (json_equal(json_object_get(start, "id"), json_object_get(task, "id")))
            return start;
    }
    return NULL;
}

/* When the task is expected to start, or the moment before which it does not. */
static void add_start(struct table *table, const json_t *start)
{
    char cell[CELL_SIZE];
    const json_t *expected = json_object_get(start, "expected_start"),
                 *earliest = json_object_get(start, "earliest_start");
    bool is_earliest = !json_is_number(expected) && json_is_number(earliest);
    table_cell(table, NULL, "%s%s", is_earliest ? "after " : "",
        moment_text(is_earliest ? earliest : expected, cell));
}

/* TIME is how long the task has waited or has run, whichever it does now. */
static void add_task(struct table *table, const json_t *task, const struct form *form)
{
    char id[CELL_SIZE], time[CELL_SIZE], need[CELL_SIZE];
    char *place = task_place_text(task, !form->is_long);
    const char *pending_or_running = json_is_null(json_object_get(task, "started_at")) ? "wait_s"
                                                                                       : "exec_s";
    table_row(table);
    table_cell(table, NULL, "%s", task_id_text(task, id, sizeof id));
    table_cell(table, NULL, "%s", member_text(task, "name", "-"));
    table_cell(table, NULL, "%s", member_text(task, "user", "-"));
    table_cell(table, task_colour(task), "%s", member_text(task, "state", "?"));
    table_cell(table, NULL, "%s", seconds_text(json_object_get(task, pending_or_running), time));
    table_cell(table, NULL, "%.0f", member_number(task, "gpus_requested", 1));
    table_cell(table, NULL, "%s", mib_text(json_object_get(task, "need_mib"), need));
    if (form->starts)
        add_start(table, find_start(form->starts, task));
    table_cell(table, NULL, "%s", place ? place : "");
    if (form->is_long)
        table_cell(table, NULL, "%s", member_text(task, "command", "-"));
    free(place);
}

static void print_tasks(const json_t *tasks, const struct form *form)
{
    struct table *table = form->starts    ? table_create(start_columns, ARRAY_SIZE(start_columns))
                          : form->is_long ? table_create(long_columns, ARRAY_SIZE(long_columns))
                                          : table_create(columns, ARRAY_SIZE(columns));
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task) {
        add_task(table, task, form);
    }
    table_print(table, "No tasks.");
    table_destroy(table);
}

/* Tasks in an answer. Chosen: some 4 MB of JSON in the daemon at a time. */
#define PAGE "2000"

/* The daemon's limit is of ended tasks. */
static void cut_tasks(json_t *tasks, size_t limit)
{
    while (json_array_size(tasks) > limit)
        json_array_remove(tasks, json_array_size(tasks) - 1);
}

static void list_query(const struct invocation *invocation, char *path, size_t size)
{
    char limit[32];
    const struct option_value *values = invocation->values;
    if (values[QUEUE_STATE].set)
        query_add(path, size, "state", values[QUEUE_STATE].text);
    if (values[QUEUE_USER].set)
        query_add(path, size, "user", values[QUEUE_USER].text);
    if (values[QUEUE_LIMIT].set) {
        snprintf(limit, sizeof limit, "%lld", (long long)values[QUEUE_LIMIT].number);
        query_add(path, size, "limit", limit);
    }
    if (!invocation->common[COMMON_JSON].number) {
        query_add(path, size, "fold", "1");
        query_add(path, size, "short", "1");
    }
    query_add(path, size, "page", PAGE);
}

/* Arrays are folded, and tasks reduced to the shown members, for people only: JSON has each task in
 * full. `starts`: NULL, or an answer of GET /v1/starts. */
static int show_queue(const struct invocation *invocation, const json_t *starts)
{
    char path[1024] = "/v1/tasks";
    const struct option_value *values = invocation->values;
    const struct form form = {values[QUEUE_LONG].number, json_object_get(starts, "starts")};
    json_t *reply;
    list_query(invocation, path, sizeof path);
    int code = session_get(invocation, path, &reply);
    if (code != EXIT_OK)
        return code;
    if (values[QUEUE_LIMIT].set)
        cut_tasks(json_object_get(reply, "tasks"), (size_t)values[QUEUE_LIMIT].number);
    if (values[QUEUE_USER].set && !json_array_size(json_object_get(reply, "tasks")))
        warn_of_unknown_user(values[QUEUE_USER].text);
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    else
        print_tasks(json_object_get(reply, "tasks"), &form);
    if (member_text(reply, "warning", NULL))
        print_error("%s", member_text(reply, "warning", NULL));
    json_decref(reply);
    return EXIT_OK;
}

static int run(const struct invocation *invocation)
{
    json_t *starts = NULL;
    int code = EXIT_OK;
    if (!invocation->values[QUEUE_START].number)
        return show_queue(invocation, NULL);
    code = session_get(invocation, "/v1/starts", &starts);
    if (code != EXIT_OK)
        return code;
    if (invocation->common[COMMON_JSON].number)
        print_json(starts);
    else
        code = show_queue(invocation, starts);
    json_decref(starts);
    return code;
}

const struct command command_queue = {
    .name = "queue",
    .usage = "[OPTION...]",
    .summary = "show the waiting and running tasks",
    .description =
        "One line for each task, in the order in which the scheduler considers them; the "
        "waiting tasks of an array share a line. "
        "TIME is how long the task has waited or run. MEMORY is the GPU memory "
        "reserved for it on each GPU. The last column has the task's GPUs or, in "
        "parentheses, why it waits: JobHeldUser (release it), Priority (other tasks "
        "are before it), Resources (with what each GPU lacks), Recovering (it ran "
        "out of GPU memory and waits to run alone). The text is cut to the width of "
        "the terminal; `colloc show ID` prints all of it.",
    COMMAND_OPTIONS(options),
    .run = run,
};
