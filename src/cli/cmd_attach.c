/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc attach`: returns to the terminal of a task.
 *
 * The terminal belongs to a relay process beside the task (src/terminal), which listens at an
 * address with a random name. The owner's view of the task has this name; no other user can find
 * it. If the task still waits for GPUs, so does the command.
 */
#include <inttypes.h>

#include "cli/interactive.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/terminal.h"

/* The daemon shows the name of the terminal's socket to the owner only. So another user gets the
 * same answer as for a task without a terminal. */
static int find_link(struct client *client, int64_t id, char link[LINK_NAME_SIZE])
{
    json_t *reply;
    int code = session_get_task(client, id, &reply);
    if (code != EXIT_OK)
        return code;
    bool has_link = interactive_link_of(json_object_get(reply, "task"), link);
    json_decref(reply);
    if (has_link)
        return EXIT_OK;
    print_error("task %" PRId64 " has no terminal of yours: only tasks of `colloc run --pty` and "
                "`colloc shell` have one; `colloc logs -f %" PRId64 "` shows its output",
        id, id);
    return EXIT_REFUSED;
}

static int run(const struct invocation *invocation)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    char link[LINK_NAME_SIZE];
    int64_t id;
    int code = parse_task_id(invocation->operands[0], &id);
    if (code == EXIT_OK && !terminal_is_there()) {
        print_error("standard input and output are no terminal");
        code = EXIT_USAGE;
    }
    if (code == EXIT_OK)
        code = session_open(invocation, &client);
    if (code == EXIT_OK)
        code = find_link(client, id, link);
    if (code == EXIT_OK)
        code = interactive_wait_start(client, id);
    if (code == EXIT_OK)
        code = interactive_attach(client, id, link);
    return code;
}

const struct command command_attach = {
    .name = "attach",
    .usage = "[OPTION...] ID",
    .summary = "connect this terminal to a task's",
    .description = "For your tasks of `colloc run --pty` and `colloc shell`. Shows the last 64 KiB "
                   "of output first, and detaches another attached terminal. Ctrl-] d leaves "
                   "the task running; Ctrl-] twice sends one Ctrl-].\n\n"
                   "The exit status is that of the task's command.",
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = 1,
    .common_without = WITHOUT_JSON,
    .run = run,
};
