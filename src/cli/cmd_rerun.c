/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc rerun`: submits a task again, with the script, the environment and the options that it
 * had. It is a new task with another id.
 *
 *     colloc rerun 12                  Submitted task 40
 *     colloc rerun 14                  Submitted array 41 (100 tasks)
 *     colloc rerun 14_7                Submitted array 142 (1 tasks), with the index 7
 *
 * What was about that one submission is left out: its dependencies, its begin, its hold.
 */
#include <stdio.h>

#include "base/array.h"
#include "cli/interactive.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/task_words.h"

static void print_submitted(const struct invocation *invocation, const json_t *reply)
{
    size_t i;
    json_t *warning;
    json_array_foreach(json_object_get(reply, "warnings"), i, warning) {
        print_error("warning: %s", json_string_value(warning));
    }
    json_int_t id = json_integer_value(json_object_get(reply, "id"));
    const json_t *tasks = json_object_get(reply, "tasks");
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    else if (tasks)
        printf("Submitted array %" JSON_INTEGER_FORMAT " (%" JSON_INTEGER_FORMAT " tasks)\n", id,
            json_integer_value(tasks));
    else
        printf("Submitted task %" JSON_INTEGER_FORMAT "\n", id);
}

static int rerun_one(const struct invocation *invocation, struct client *client, const char *id)
{
    static const char *const of_that_time[] = {"after", "begin", "hold"};
    char path[160], link[LINK_NAME_SIZE];
    json_auto_t *reply = NULL, *accepted = NULL;
    snprintf(path, sizeof path, "/v1/tasks/%s/request", id);
    int code = session_call(client, "GET", path, NULL, &reply);
    if (code != EXIT_OK)
        return code;
    json_t *request = json_object_get(reply, "request");
    if (interactive_link_of(request, link)) {
        print_error(
            "task %s had a terminal: start it with `colloc shell` or `colloc run --pty`", id);
        return EXIT_REFUSED;
    }
    for (size_t i = 0; i < ARRAY_SIZE(of_that_time); i++)
        json_object_del(request, of_that_time[i]);
    code = session_call(client, "POST", "/v1/tasks", request, &accepted);
    if (code == EXIT_OK)
        print_submitted(invocation, accepted);
    return code;
}

static int run(const struct invocation *invocation)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    json_t *ids, *id;
    size_t i;
    int first = task_words_expand(invocation->operands, invocation->operand_count, &ids);
    if (first != EXIT_OK)
        return first;
    first = session_open(invocation, &client);
    if (first == EXIT_OK) {
        json_array_foreach(ids, i, id) {
            int code = rerun_one(invocation, client, json_string_value(id));
            first = first == EXIT_OK || code == EXIT_UNREACHABLE ? code : first;
            if (code == EXIT_UNREACHABLE)
                break;
        }
    }
    json_decref(ids);
    return first;
}

const struct command command_rerun = {
    .name = "rerun",
    .usage = "[OPTION...] ID...",
    .summary = "submit a task again",
    .description =
        "Submits a new task with the script, the arguments, the folder, the environment "
        "and the options of an earlier one of yours, whether that has ended or not. ID is "
        "a task (12), a task of an array (12_7), several of them (12_[3-9]) or a whole "
        "array. Its dependencies, --begin and --hold are left out.",
    .operand = OPERAND_ANY_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
