/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc history`: ended tasks as a table, CSV or JSON. The daemon selects them (state, user,
 * period, limit); the columns come from the table in task_fields.c.
 *
 *     colloc history --since=7d --state=FAILED --csv | column -s, -t
 *
 * Without --since and --until the newest 20 tasks are shown, of a period up to 10,000: a table of a
 * period should have all of it.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/moment.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/session_once.h"
#include "cli/task_table.h"

enum {
    HISTORY_USER,
    HISTORY_STATE,
    HISTORY_SINCE,
    HISTORY_UNTIL,
    HISTORY_LIMIT,
    HISTORY_OUTPUT,
    HISTORY_CSV
};

enum { LIMIT_DEFAULT = 20, LIMIT_OF_PERIOD = 10000 };

static const char *const states[] = {
    "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "STOPPED", NULL};

static const struct option_spec options[] = {
    [HISTORY_USER] = OPTION(
        "user", TEXT, "NAME", .letter = 'u', .help = "show only the tasks of this user"),
    [HISTORY_STATE] = OPTION("state", TEXT, "STATE", .letter = 's', .choices = states,
        .help = "show only the tasks that ended in this state; upper or lower case"),
    [HISTORY_SINCE] = OPTION("since", TEXT, "WHEN",
        .help = "show only the tasks that ended at this time or later: a date (2026-11-20, "
                "\"2026-11-20 16:00\"), a time of today (16:00), a time before now (2h, 7d), "
                "today or yesterday"),
    [HISTORY_UNTIL] = OPTION("until", TEXT, "WHEN",
        .help = "show only the tasks that ended before this time (as for --since)"),
    [HISTORY_LIMIT] = OPTION("limit", INTEGER, "N", .letter = 'n', .min = 1, .max = 1000000,
        .help = "largest number of tasks, the latest first; default: 20, or 10000 with "
                "--since or --until"),
    [HISTORY_OUTPUT] = OPTION("output", TEXT, "FIELDS", .letter = 'o', .help = TASK_COLUMNS_HELP),
    [HISTORY_CSV] = FLAG_OPTION(
        "csv", .help = "print CSV: a line of column names, then one line for each task"),
};

#define FIELDS_OF_TABLE                                                                            \
    "id,name,user,state,started,ended,wait,run,gpu,peak,smact,energy,exit,reason"
#define FIELDS_OF_CSV                                                                              \
    "id,name,user,state,submitted,started,ended,wait,run,total,gpus,gpu,attempts,oom,memory,peak," \
    "smact,energy,policy,sharing,exit,reason,command"

/* ---- the query ---- */

/* Moments are read here, in the user's time zone; the daemon gets seconds since 1970. */
static int add_moment(
    char *path, size_t size, const char *name, const struct option_value *value, int64_t now_s)
{
    char text[32];
    int64_t moment;
    if (!value->set)
        return EXIT_OK;
    if (moment_parse(value->text, now_s, &moment) < 0) {
        print_error("--%s=%.60s: invalid time: give 2026-11-20, \"2026-11-20 16:00\", 16:00, "
                    "2h (before now), today or yesterday",
            name, value->text);
        return EXIT_USAGE;
    }
    snprintf(text, sizeof text, "%lld", (long long)moment);
    query_add(path, size, name, text);
    return EXIT_OK;
}

static int check_state(const char *state)
{
    char all[128] = "";
    for (const char *const *one = states; *one; one++) {
        if (strcasecmp(*one, state) == 0)
            return EXIT_OK;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", *all ? ", " : "", *one);
    }
    print_error("--state=%.40s: not a final state: give one of %s (`colloc queue` shows waiting "
                "and running tasks)",
        state, all);
    return EXIT_USAGE;
}

/* The query for the daemon. A period has all of its tasks, up to LIMIT_OF_PERIOD. */
static int make_path(const struct option_value *values, char *path, size_t size)
{
    char limit[32];
    bool of_period = values[HISTORY_SINCE].set || values[HISTORY_UNTIL].set;
    const char *state = option_text_or(&values[HISTORY_STATE], NULL);
    int64_t now_s = time(NULL);
    if (state && check_state(state) != EXIT_OK)
        return EXIT_USAGE;
    query_add(path, size, "state", state ? state : "ended");
    int64_t most = of_period ? LIMIT_OF_PERIOD : LIMIT_DEFAULT;
    snprintf(
        limit, sizeof limit, "%lld", (long long)option_number_or(&values[HISTORY_LIMIT], most));
    query_add(path, size, "limit", limit);
    if (values[HISTORY_USER].set)
        query_add(path, size, "user", values[HISTORY_USER].text);
    int code = add_moment(path, size, "since", &values[HISTORY_SINCE], now_s);
    return code == EXIT_OK ? add_moment(path, size, "until", &values[HISTORY_UNTIL], now_s) : code;
}

/* --output names the fields of the table and of CSV; JSON always has all of them, under the keys of
 * docs/protocol.md. */
static int run(const struct invocation *invocation)
{
    char path[1024] = "/v1/tasks";
    const struct option_value *values = invocation->values;
    struct task_name names[TASK_NAMES_MAX];
    struct fault fault = {0};
    bool is_csv = values[HISTORY_CSV].number, is_json = invocation->common[COMMON_JSON].number,
         were_chosen = values[HISTORY_OUTPUT].set;
    json_t *reply;
    if (is_json && (is_csv || were_chosen)) {
        print_error("history: --json prints all fields: leave out --csv and --output");
        return EXIT_USAGE;
    }
    int count = task_table_columns(option_text_or(&values[HISTORY_OUTPUT], NULL),
        is_csv ? FIELDS_OF_CSV : FIELDS_OF_TABLE, &fault, names);
    if (count < 0) {
        print_error("--output: %s", fault.text);
        return EXIT_USAGE;
    }
    int code = make_path(values, path, sizeof path);
    if (code == EXIT_OK)
        code = session_get(invocation, path, &reply);
    if (code != EXIT_OK)
        return code;
    const json_t *tasks = json_object_get(reply, "tasks");
    if (values[HISTORY_USER].set && !json_array_size(tasks))
        warn_of_unknown_user(values[HISTORY_USER].text);
    if (is_json)
        print_json(reply);
    else if (is_csv)
        task_table_print_csv(names, count, tasks);
    else
        task_table_print(names, count, tasks, "No such task has ended.");
    if (member_text(reply, "warning", NULL))
        print_error("%s", member_text(reply, "warning", NULL));
    json_decref(reply);
    return EXIT_OK;
}

const struct command command_history = {
    .name = "history",
    .usage = "[OPTION...]",
    .summary = "show the tasks that have ended",
    .description = "The task that ended last comes first. STARTED is the start of the last "
                   "attempt, WAIT the time in the queue, RUN the run time of all attempts, GPU "
                   "the GPUs of the last attempt, PEAK the peak of its GPU memory, SMACT its "
                   "mean share of the GPUs' SM activity, ENERGY its share of the GPUs' energy, "
                   "EXIT the exit code and the signal of the last attempt, written as Slurm "
                   "does. REASON says why it ended; 2xOOM means that two attempts ran out of "
                   "GPU memory. A narrow terminal shows fewer columns; --output selects "
                   "them.\n\n"
                   "With --csv, memory is in MiB, durations in seconds, times in seconds since "
                   "1970, energy in joules.",
    COMMAND_OPTIONS(options),
    .run = run,
};
