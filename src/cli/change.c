/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc cancel`, `hold` and `release`: one POST to /v1/tasks/ID/VERB for each task. All tasks are
 * tried; the exit code is that of the first error.
 */
#include "cli/change.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/print.h"
#include "cli/session.h"
#include "cli/task_view.h"

static int change_one(struct client *client, const char *verb, int64_t id, json_t *changed)
{
    char path[96];
    json_t *reply;
    snprintf(path, sizeof path, "/v1/tasks/%" PRId64 "/%s", id, verb);
    int code = session_call(client, "POST", path, NULL, &reply);
    if (code != EXIT_OK)
        return code;
    json_array_append(changed, json_object_get(reply, "task"));
    const char *note = member_text(reply, "note", NULL);
    if (note)
        print_error("%s", note);
    json_decref(reply);
    return EXIT_OK;
}

static void print_changed(const struct invocation *invocation, const json_t *changed)
{
    size_t i;
    json_t *task;
    if (invocation->common[COMMON_JSON].number) {
        json_t *object = json_pack("{sO}", "tasks", changed);
        print_json(object);
        json_decref(object);
        return;
    }
    json_array_foreach(changed, i, task) {
        const char *state = member_text(task, "state", "?"), *note = "";
        if (strcmp(member_text(task, "reason", ""), "JobHeldUser") == 0)
            note = " (JobHeldUser)";
        else if (strcmp(state, "COMPLETING") == 0)
            note = " (its processes are being ended)";
        printf("Task %.0f %s%s\n", member_number(task, "id", 0), state, note);
    }
}

int change_tasks(const struct invocation *invocation, const char *verb)
{
    struct client *client;
    int64_t id;
    for (int i = 0; i < invocation->operand_count; i++)
        if (parse_task_id(invocation->operands[i], &id) != EXIT_OK)
            return EXIT_USAGE;
    int first = session_open(invocation, &client);
    if (first != EXIT_OK)
        return first;
    json_t *changed = json_array();
    for (int i = 0; i < invocation->operand_count && first != EXIT_UNREACHABLE; i++) {
        parse_task_id(invocation->operands[i], &id);
        int code = change_one(client, verb, id, changed);
        first = first == EXIT_OK ? code : first;
    }
    print_changed(invocation, changed);
    json_decref(changed);
    client_close(client);
    return first;
}
