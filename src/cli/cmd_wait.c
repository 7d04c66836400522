/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc wait`: waits until tasks have ended. */
#include "base/clock.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/task_end.h"

enum { WAIT_TIMEOUT };

static const struct option_spec options[] = {
    [WAIT_TIMEOUT] = {.name = "timeout",
        .kind = OPTION_DURATION,
        .argument = "TIME",
        .max = 3650 * 86400 * SECOND_US,
        .help = "stop waiting after this time and exit with code 124; default: no limit"},
};

static int wait_for(const struct invocation *invocation, struct client *client, json_t *ended)
{
    const struct option_value *timeout = &invocation->values[WAIT_TIMEOUT];
    int64_t deadline_us = timeout->set ? clock_monotonic_us() + timeout->number : TIME_NEVER, id;
    int first = EXIT_OK;
    for (int i = 0; i < invocation->operand_count; i++) {
        json_t *reply;
        int code = parse_task_id(invocation->operands[i], &id);
        if (code == EXIT_OK)
            code = task_end_wait(client, id, deadline_us, &reply);
        if (code != EXIT_OK)
            return code;
        json_t *task = json_object_get(reply, "task");
        if (!invocation->common[COMMON_JSON].number)
            task_end_print(task);
        json_array_append(ended, task);
        first = first == EXIT_OK ? task_end_exit_code(task) : first;
        json_decref(reply);
    }
    return first;
}

static int run(const struct invocation *invocation)
{
    struct client *client;
    int code = session_open(invocation, &client);
    if (code != EXIT_OK)
        return code;
    json_t *ended = json_array();
    code = wait_for(invocation, client, ended);
    if (invocation->common[COMMON_JSON].number) {
        json_t *object = json_pack("{sO}", "tasks", ended);
        print_json(object);
        json_decref(object);
    }
    json_decref(ended);
    client_close(client);
    return code;
}

const struct command command_wait = {
    .name = "wait",
    .usage = "[OPTION...] ID...",
    .summary = "wait until tasks have ended",
    .description = "Prints how each task ended. The exit code is that of the first task, in the "
                   "given order, that did not complete; see EXIT STATUS in colloc(1).",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
