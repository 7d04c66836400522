/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc queue`: the waiting and running tasks as a table or JSON.
 *
 *     ID  NAME   USER  STATE    TIME  GPUS    MEMORY  GPU(REASON)
 *     12  train  ada   RUNNING  3:04     1  11.4 GiB  2
 *     13  bert   bob   PENDING  0:41     2         -  (Resources) GPU 0: 3.1 GiB short
 *
 * The daemon sorts and filters (GET /v1/tasks); here its answer only becomes lines. The table asks
 * for arrays to be folded: their waiting tasks share a line, such as 14_[3-99]. JSON has each task.
 */
#include <stdlib.h>

#include "base/array.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/task_view.h"
#include "cli/task_words.h"

enum { QUEUE_USER, QUEUE_STATE, QUEUE_LIMIT, QUEUE_LONG };

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

/* TIME is how long the task has waited or has run, whichever it does now. */
static void add_task(struct table *table, const json_t *task, bool is_long)
{
    char id[CELL_SIZE], time[CELL_SIZE], need[CELL_SIZE];
    char *place = task_place_text(task, !is_long);
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
    table_cell(table, NULL, "%s", place ? place : "");
    if (is_long)
        table_cell(table, NULL, "%s", member_text(task, "command", "-"));
    free(place);
}

static void print_tasks(const json_t *tasks, bool is_long)
{
    struct table *table = is_long ? table_create(long_columns, ARRAY_SIZE(long_columns))
                                  : table_create(columns, ARRAY_SIZE(columns));
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task) {
        add_task(table, task, is_long);
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

/* Arrays are folded for people only: a program that reads JSON gets each task. */
static int run(const struct invocation *invocation)
{
    char path[1024] = "/v1/tasks", limit[32];
    const struct option_value *values = invocation->values;
    json_t *reply;
    if (values[QUEUE_STATE].set)
        query_add(path, sizeof path, "state", values[QUEUE_STATE].text);
    if (values[QUEUE_USER].set)
        query_add(path, sizeof path, "user", values[QUEUE_USER].text);
    if (values[QUEUE_LIMIT].set) {
        snprintf(limit, sizeof limit, "%lld", (long long)values[QUEUE_LIMIT].number);
        query_add(path, sizeof path, "limit", limit);
    }
    if (!invocation->common[COMMON_JSON].number)
        query_add(path, sizeof path, "fold", "1");
    query_add(path, sizeof path, "page", PAGE);
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
        print_tasks(json_object_get(reply, "tasks"), values[QUEUE_LONG].number);
    if (member_text(reply, "warning", NULL))
        print_error("%s", member_text(reply, "warning", NULL));
    json_decref(reply);
    return EXIT_OK;
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
