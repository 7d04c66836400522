/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc move`: moves a running task to other GPUs.
 *
 * The task is suspended, its memory copied to the host and from there to the other GPUs, and it
 * continues (docs/suspend.md). The daemon answers when that is done or has failed, so this command
 * may take a minute.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/client.h"
#include "base/text.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/task_view.h"
#include "cli/task_words.h"

enum { MOVE_GPU };

static const struct option_spec options[] = {
    [MOVE_GPU] = OPTION("gpu", TEXT, "LIST",
        .help = "where to: comma-separated indices or UUIDs, as many as the task has; the same as "
                "a second argument"),
};

/* "1,3" as {"gpus": ["1", "3"]}. */
static json_t *gpus_json(const char *list)
{
    json_t *gpus = json_array();
    while (*list) {
        size_t size = strcspn(list, ",");
        json_array_append_new(gpus, json_stringn(list, size));
        list += size + (list[size] == ',');
    }
    return json_pack("{s:o}", "gpus", gpus);
}

/* The daemon checks whether these GPUs can take the task, and answers with the task. */
static int move_task(
    const struct invocation *invocation, struct client *client, const char *word, const char *gpus)
{
    char path[96], shown[CELL_SIZE];
    int64_t id;
    json_t *reply, *body;
    int code = task_word_find(client, word, &id);
    if (code != EXIT_OK)
        return code;
    snprintf(path, sizeof path, "/v1/tasks/%" PRId64 "/move", id);
    body = gpus_json(gpus);
    code = session_call(client, "POST", path, body, &reply);
    json_decref(body);
    if (code != EXIT_OK)
        return code;
    const json_t *task = json_object_get(reply, "task");
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    else
        printf("Task %s %s\n", task_id_text(task, shown, sizeof shown),
            member_text(task, "state", "?"));
    json_decref(reply);
    return EXIT_OK;
}

static int run(const struct invocation *invocation)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    const char *gpus = invocation->values[MOVE_GPU].text, *second = invocation->operands[1];
    if (!gpus == !second) {
        print_error("move: give the GPUs to move to%s: colloc move %s 3", second ? " once" : "",
            invocation->operands[0]);
        return EXIT_USAGE;
    }
    int code = session_open(invocation, &client);
    return code == EXIT_OK
               ? move_task(invocation, client, invocation->operands[0], gpus ? gpus : second)
               : code;
}

const struct command command_move = {
    .name = "move",
    .usage = "ID [LIST] [--gpu=LIST]",
    .summary = "move a running task to other GPUs",
    .description = "The task is suspended and resumed on the given GPUs of the same model, and "
                   "continues where it was. It keeps its own GPUs until that is done. A move "
                   "that fails leaves it running, or suspended until a GPU has enough free memory.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
