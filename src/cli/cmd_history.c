#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/task_view.h"

enum { HISTORY_USER, HISTORY_LIMIT };

static const struct option_spec options[] = {
    [HISTORY_USER] = {.name = "user",
        .letter = 'u',
        .kind = OPTION_TEXT,
        .argument = "NAME",
        .help = "tasks of one user"},
    [HISTORY_LIMIT] = {.name = "limit",
        .letter = 'n',
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 1,
        .max = 1000000,
        .help = "at most this many, newest ended first; default: 20"},
};

static const struct table_column columns[] = {
    {"ID", TABLE_RIGHT},
    {"NAME", TABLE_CUT},
    {"USER", 0},
    {"STATE", 0},
    {"WAIT", TABLE_RIGHT},
    {"RUN", TABLE_RIGHT},
    {"PEAK", TABLE_RIGHT},
    {"SMACT", TABLE_RIGHT | TABLE_WIDE},
    {"ENERGY", TABLE_RIGHT | TABLE_WIDE},
    {"EXIT", 0},
    {"REASON", TABLE_REST},
};

/* Exit status as Slurm writes it: code:signal. */
static void exit_cell(struct table *table, const json_t *task)
{
    if (json_is_number(json_object_get(task, "exit_code")) ||
        json_is_number(json_object_get(task, "signal")))
        table_cell(table, NULL, "%.0f:%.0f", member_number(task, "exit_code", 0),
            member_number(task, "signal", 0));
    else
        table_cell(table, NULL, "-");
}

static void add_task(struct table *table, const json_t *task)
{
    char cell[CELL_SIZE];
    const char *reason = member_text(task, "reason", "-"),
               *words = member_text(task, "reason_text", "");
    table_row(table);
    table_cell(table, NULL, "%.0f", member_number(task, "id", 0));
    table_cell(table, NULL, "%s", member_text(task, "name", "-"));
    table_cell(table, NULL, "%s", member_text(task, "user", "-"));
    table_cell(table, task_colour(task), "%s", member_text(task, "state", "?"));
    table_cell(table, NULL, "%s", seconds_text(json_object_get(task, "wait_s"), cell));
    table_cell(table, NULL, "%s", seconds_text(json_object_get(task, "exec_s"), cell));
    table_cell(table, NULL, "%s", mib_text(json_object_get(task, "mem_peak_mib"), cell));
    table_cell(table, NULL, "%s", fraction_text(json_object_get(task, "smact_mean"), cell));
    table_cell(table, NULL, "%s", joules_text(json_object_get(task, "energy_j"), cell));
    exit_cell(table, task);
    table_cell(table, NULL, "%s", *words ? words : strcmp(reason, "None") == 0 ? "" : reason);
}

static int print_tasks(const struct invocation *invocation, const json_t *tasks)
{
    if (invocation->common[COMMON_JSON].number) {
        json_t *object = json_pack("{sO}", "tasks", tasks);
        int code = print_json(object);
        json_decref(object);
        return code;
    }
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task) {
        add_task(table, task);
    }
    table_print(table, "No task has ended yet.");
    table_destroy(table);
    return EXIT_OK;
}

static int run(const struct invocation *invocation)
{
    char path[1024] = "/v1/tasks?state=all", limit[32];
    const struct option_value *values = invocation->values;
    json_t *reply, *task, *ended = json_array();
    size_t i;
    snprintf(limit, sizeof limit, "%lld",
        values[HISTORY_LIMIT].set ? (long long)values[HISTORY_LIMIT].number : 20LL);
    query_add(path, sizeof path, "limit", limit);
    if (values[HISTORY_USER].set)
        query_add(path, sizeof path, "user", values[HISTORY_USER].text);
    int code = session_get(invocation, path, &reply);
    if (code == EXIT_OK) {
        json_array_foreach(json_object_get(reply, "tasks"), i, task) {
            if (task_has_ended(task))
                json_array_append(ended, task);
        }
        code = print_tasks(invocation, ended);
        json_decref(reply);
    }
    json_decref(ended);
    return code;
}

const struct command command_history = {
    .name = "history",
    .usage = "[OPTION...]",
    .summary = "show the tasks that have ended",
    .description =
        "Newest first. WAIT is the time in queues, RUN the time in execution over all attempts, PEAK the most "
        "GPU memory it held, SMACT its mean part of its GPUs' SM activity, ENERGY its part of what they drew (both "
        "left out on a narrow terminal). EXIT is "
        "the exit code and the signal of the last attempt, as Slurm writes them.",
    COMMAND_OPTIONS(options),
    .run = run,
};
