/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc wait`: waits until tasks have ended.
 *
 * The tasks are waited for one after the other, in the order of the command line. That takes no
 * longer than all at once would, and the exit code is that of the first task in this order that did
 * not complete, however early a later one ended.
 */
#include "base/clock.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/task_end.h"
#include "cli/task_words.h"

enum { WAIT_TIMEOUT };

static const struct option_spec options[] = {
    [WAIT_TIMEOUT] = OPTION("timeout", DURATION, "TIME", .max = 3650 * DAY_US,
        .help = "stop waiting after this time and exit with code 124; default: no limit"),
};

struct wait {
    const struct invocation *invocation;
    json_t *ended;
};

static void on_ended(void *context, const json_t *task)
{
    struct wait *wait = context;
    if (!wait->invocation->common[COMMON_JSON].number)
        task_end_print(task);
    json_array_append(wait->ended, (json_t *)(uintptr_t)task);
}

/* One after the other: all have to end, so their order does not change how long that takes. */
static int wait_for(const struct invocation *invocation, struct client *client, json_t *ended)
{
    const struct option_value *timeout = &invocation->values[WAIT_TIMEOUT];
    int64_t deadline_us = timeout->set ? clock_monotonic_us() + timeout->number : TIME_NEVER, id;
    struct wait wait = {invocation, ended};
    const struct task_end_visitor visitor = {&wait, on_ended};
    int first = EXIT_OK;
    for (int i = 0; i < invocation->operand_count; i++) {
        int code = task_word_find(client, invocation->operands[i], &id);
        if (code == EXIT_OK)
            code = task_end_wait_for_all(client, id, deadline_us, &visitor, &first);
        if (code != EXIT_OK)
            return code;
    }
    return first;
}

static int run(const struct invocation *invocation)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
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
    return code;
}

const struct command command_wait = {
    .name = "wait",
    .usage = "[OPTION...] ID...",
    .summary = "wait until tasks have ended",
    .description =
        "ID is a task (12), a task of an array (12_7), or an array: then it waits for all "
        "its tasks. Prints how each task ended. The exit code is that of the first task, in the "
        "given order, that did not complete; see EXIT STATUS in colloc(1).",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_ANY_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
