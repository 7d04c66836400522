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
#include <string.h>

#include "base/array.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/session_once.h"
#include "cli/table.h"
#include "cli/task_table.h"

enum { QUEUE_USER, QUEUE_STATE, QUEUE_LIMIT, QUEUE_LONG, QUEUE_START, QUEUE_OUTPUT };

static const char *const states[] = {
    "live", "all", "PENDING", "RUNNING", "SUSPENDED", "PAUSED", "COMPLETING", NULL};

static const struct option_spec options[] = {
    [QUEUE_USER] = OPTION(
        "user", TEXT, "NAME", .letter = 'u', .help = "show only the tasks of this user"),
    [QUEUE_STATE] = OPTION("state", TEXT, "STATE", .letter = 's', .choices = states,
        .help = "show only the tasks in this state (upper or lower case), all, or live "
                "(not ended); default: live"),
    [QUEUE_LIMIT] = OPTION("limit", INTEGER, "N", .letter = 'n', .min = 1, .max = 1000000,
        .help = "largest number of tasks; default: no limit"),
    [QUEUE_LONG] = FLAG_OPTION("long", .letter = 'l',
        .help = "show the command lines instead of the full reasons; of your own tasks, "
                "and for root of all"),
    [QUEUE_START] = FLAG_OPTION("start",
        .help = "show when the first 64 waiting tasks are expected to start, by expected times "
                "and time limits; \"after\" a moment: only the moment of --begin is known; -: "
                "unknown; with --json instead of the tasks"),
    [QUEUE_OUTPUT] = OPTION("output", TEXT, "FIELDS", .letter = 'o', .help = TASK_COLUMNS_HELP),
};

#define COLUMNS       "id,name,user,state,time,gpus,memory,place"
#define LONG_COLUMNS  "id,name,user,state,time,gpus,memory,short-place,command"
#define START_COLUMNS "id,name,user,state,time,gpus,memory,start,place"

/* Gives each task its entry in an answer of GET /v1/starts, if it has one. */
static void add_starts(json_t *tasks, const json_t *starts)
{
    size_t i, k;
    json_t *task, *start;
    json_array_foreach(starts, i, start) {
        json_array_foreach(tasks, k, task) {
            if (json_equal(json_object_get(start, "id"), json_object_get(task, "id")))
                json_object_set(task, START_MEMBER, start);
        }
    }
}

/* The command line has the room of GPUs and memory on a narrow terminal. */
static void make_room(struct task_name *names, int count)
{
    static const char *const wide[] = {"gpus", "memory"};
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < ARRAY_SIZE(wide); k++)
            if (strcmp(names[i].name, wide[k]) == 0)
                names[i].flags |= TABLE_WIDE;
}

/* Returns how many; or -EINVAL with a fault. */
static int find_columns(const struct option_value *values, struct fault *fault,
    struct task_name ret_names[TASK_NAMES_MAX])
{
    bool is_start = values[QUEUE_START].number, is_long = values[QUEUE_LONG].number && !is_start;
    const char *chosen = option_text_or(&values[QUEUE_OUTPUT], NULL);
    const char *usual = is_long ? LONG_COLUMNS : COLUMNS;
    int count = task_table_columns(chosen, is_start ? START_COLUMNS : usual, fault, ret_names);
    if (is_long && !chosen)
        make_room(ret_names, count);
    return count;
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
        if (!values[QUEUE_OUTPUT].set) /* the usual columns are in the reduced tasks */
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
    struct task_name names[TASK_NAMES_MAX];
    struct fault fault = {0};
    json_t *reply;
    int count = find_columns(values, &fault, names);
    if (count < 0) {
        print_error("--output: %s", fault.text);
        return EXIT_USAGE;
    }
    list_query(invocation, path, sizeof path);
    int code = session_get(invocation, path, &reply);
    if (code != EXIT_OK)
        return code;
    if (values[QUEUE_LIMIT].set)
        cut_tasks(json_object_get(reply, "tasks"), (size_t)values[QUEUE_LIMIT].number);
    if (values[QUEUE_USER].set && !json_array_size(json_object_get(reply, "tasks")))
        warn_of_unknown_user(values[QUEUE_USER].text);
    json_t *tasks = json_object_get(reply, "tasks");
    add_starts(tasks, json_object_get(starts, "starts"));
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    else
        task_table_print(names, count, tasks, "No tasks.");
    if (member_text(reply, "warning", NULL))
        print_error("%s", member_text(reply, "warning", NULL));
    json_decref(reply);
    return EXIT_OK;
}

static int run(const struct invocation *invocation)
{
    json_t *starts = NULL;
    int code = EXIT_OK;
    if (invocation->common[COMMON_JSON].number && invocation->values[QUEUE_OUTPUT].set) {
        print_error("queue: --json prints all fields: leave out --output");
        return EXIT_USAGE;
    }
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
        "out of GPU memory and waits to run alone). On a narrow terminal the text goes on "
        "below its task, for a few lines; `colloc show ID` prints all of it.",
    COMMAND_OPTIONS(options),
    .run = run,
};
