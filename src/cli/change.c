/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc cancel`, `hold` and `release`: one POST to /v1/tasks/ID/VERB for each task. All tasks are
 * tried; the exit code is that of the first error.
 */
#include "cli/change.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/print.h"
#include "cli/session.h"
#include "cli/task_view.h"
#include "cli/task_words.h"

static int change_one(struct client *client, const char *verb, const char *id, json_t *changed)
{
    char path[160];
    json_t *reply;
    snprintf(path, sizeof path, "/v1/tasks/%s/%s", id, verb);
    int code = session_call(client, "POST", path, NULL, &reply);
    if (code != EXIT_OK)
        return code;
    json_t *array = json_object_get(reply, "array");
    if (array)
        json_object_set(array, "changed", json_object_get(reply, "changed"));
    json_array_append(changed, array ? array : json_object_get(reply, "task"));
    const char *note = member_text(reply, "note", NULL);
    if (note)
        print_error("%s", note);
    json_decref(reply);
    return EXIT_OK;
}

static void print_one(const json_t *task, const char *verb)
{
    const char *state = member_text(task, "state", "?"), *note = "";
    char id[CELL_SIZE];
    if (json_object_get(task, "changed")) {
        printf("Array %.0f: %s for %.0f of %.0f tasks\n", member_number(task, "id", 0), verb,
            member_number(task, "changed", 0), member_number(task, "count", 0));
        return;
    }
    if (strcmp(member_text(task, "reason", ""), "JobHeldUser") == 0)
        note = " (JobHeldUser)";
    else if (strcmp(state, "COMPLETING") == 0)
        note = " (its processes are being ended)";
    printf("Task %s %s%s\n", task_id_text(task, id, sizeof id), state, note);
}

static void print_changed(
    const struct invocation *invocation, const char *verb, const json_t *changed)
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
        print_one(task, verb);
    }
}

int change_tasks(const struct invocation *invocation, const char *verb)
{
    struct client *client;
    json_t *ids, *id;
    size_t i;
    if (task_words_expand(invocation->operands, invocation->operand_count, &ids) != EXIT_OK)
        return EXIT_USAGE;
    int first = session_open(invocation, &client);
    if (first != EXIT_OK) {
        json_decref(ids);
        return first;
    }
    json_t *changed = json_array();
    json_array_foreach(ids, i, id) {
        int code = change_one(client, verb, json_string_value(id), changed);
        first = first == EXIT_OK ? code : first;
        if (code == EXIT_UNREACHABLE)
            break;
    }
    print_changed(invocation, verb, changed);
    json_decref(changed);
    json_decref(ids);
    client_close(client);
    return first;
}
