/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc run` and `colloc shell`: a task that the user waits for (interactive.h).
 *
 *     run           submits, prints the output as it comes, ends with the command's exit code
 *     run --pty     the same on a terminal that is connected to the user's
 *     run --step    in a task: runs the command as a step of it (srun in a script for Slurm)
 *     shell         run --pty of the user's shell
 *
 * To the daemon these are tasks as all others, with the current folder and environment. But one
 * with a terminal is not requeued: a rerun would find no terminal.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/beside.h"
#include "base/clock.h"
#include "cli/interactive.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/step.h"
#include "cli/submission.h"
#include "cli/terminal.h"

#define KEEP_DEFAULT_US (15 * 60 * SECOND_US)

/* Chosen: a terminal that is lost for longer has most likely been forgotten. */
#define KEEP_OPTION                                                                                \
    {                                                                                              \
        .name = "keep", .kind = OPTION_DURATION, .argument = "TIME", .max = 30 * DAY_US,           \
        .help = "after a lost connection, end the command unless a terminal attaches within this " \
                "time (0s: never); default: 15m"                                                   \
    }

enum { RUN_KEEP, RUN_PTY, RUN_STEP };

static const struct option_spec run_options[] = {
    [RUN_KEEP] = KEEP_OPTION,
    [RUN_PTY] = FLAG_OPTION("pty", .help = "give the command a terminal, connected to this one"),
    [RUN_STEP] = FLAG_OPTION("step",
        .help = "in the script of a task: run the command as a part of this task, with its GPUs, "
                "as srun does there; options of a new task have no effect"),
};

static const struct option_spec shell_options[] = {[RUN_KEEP] = KEEP_OPTION};

/* `srun -n 4 COMMAND` that is no step: the task is the step. */
static void start_tasks(const struct invocation *invocation, int tasks, json_t *request)
{
    char program[PATH_MAX], number[16];
    json_t *arguments = json_object_get(request, "arguments");
    const char *const words[] = {program, "run", "--step", "-n", number, "--"};
    if (tasks <= 1 || !beside_self(program))
        return;
    snprintf(number, sizeof number, "%d", tasks);
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        json_array_insert_new(arguments, i, json_string(words[i]));
}

/* A rerun would find no terminal. */
static int prepare_request(
    const struct invocation *invocation, bool with_terminal, json_t **ret_request)
{
    struct invocation command = *invocation;
    const struct option_value *keep = &invocation->values[RUN_KEEP];
    struct fault fault = {0};
    command.after_dashes = true;
    int tasks = step_count_tasks(invocation, &fault);
    if (!tasks) {
        print_error("%s", fault.text);
        return EXIT_USAGE;
    }
    int code = submission_request(&command, ret_request);
    if (code == EXIT_OK)
        start_tasks(invocation, tasks, *ret_request);
    if (code == EXIT_OK && with_terminal) {
        if (!json_object_get(*ret_request, "requeue"))
            json_object_set_new(*ret_request, "requeue", json_false());
        code = interactive_add_terminal(*ret_request, option_number_or(keep, KEEP_DEFAULT_US));
        if (code != EXIT_OK)
            json_decref(*ret_request);
    }
    return code;
}

/* The name of the terminal's socket is in the request's own arguments: before the daemon has
 * answered, nothing else knows it. */
static int run_task(const struct invocation *invocation, bool with_terminal)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    char link[LINK_NAME_SIZE];
    json_t *request;
    int64_t id;
    if (with_terminal && !terminal_is_there()) {
        print_error("standard input and output are no terminal: leave out --pty, or use "
                    "`colloc run`");
        return EXIT_USAGE;
    }
    int code = prepare_request(invocation, with_terminal, &request);
    if (code != EXIT_OK)
        return code;
    code = session_open(invocation, &client);
    if (code == EXIT_OK)
        code = interactive_submit(client, request, &id);
    if (code == EXIT_OK)
        code = with_terminal && interactive_link_of(request, link)
                   ? interactive_attach(client, id, link)
                   : interactive_follow(client, id);
    json_decref(request);
    return code;
}

static int run(const struct invocation *invocation)
{
    if (invocation->values[RUN_STEP].number)
        return step_run(invocation);
    return run_task(invocation, invocation->values[RUN_PTY].number);
}

static int run_shell(const struct invocation *invocation)
{
    const char *shell = getenv("SHELL");
    const char *words[] = {shell && *shell ? shell : "/bin/sh", NULL};
    struct invocation command = *invocation;
    command.operands = words;
    command.operand_count = 1;
    return run_task(&command, true);
}

const struct command command_run = {
    .name = "run",
    .usage = "[OPTION...] [--] COMMAND [ARGUMENT...]",
    .summary = "run a command as a task, here: wait for its turn and see its output",
    .description = "Submits the command, prints why it waits, then its output as it is written, "
                   "and exits with the command's exit status. Ctrl-C cancels the task; a second "
                   "Ctrl-C exits at once.\n\n"
                   "With --pty the command has a terminal: keys, Ctrl-C and the window's size "
                   "reach it, so that shells, debuggers and progress bars work. Ctrl-] d leaves "
                   "it running; `colloc attach ID` returns to it. Its output also goes to "
                   "the task's output file (`colloc logs ID`). It is run once: not again after a "
                   "crash, unless --requeue says so.\n\n"
                   "The exit status is the command's; see EXIT STATUS in colloc(1).",
    COMMAND_OPTIONS(run_options),
    .task_options = TASK_OPTIONS_ALL,
    .usual_options = TASK_OPTIONS_USUAL,
    .slurm = SLURM_SRUN,
    .operand = OPERAND_PROGRAM,
    .min_operands = 1,
    .max_operands = -1,
    .rest_is_operands = true,
    .common_without = WITHOUT_JSON,
    .run = run,
};

const struct command command_shell = {
    .name = "shell",
    .usage = "[OPTION...]",
    .summary = "open a shell on a GPU",
    .description = "Runs your shell ($SHELL) as a task in a terminal, as `colloc run --pty` does. "
                   "The GPU is yours, or shared, until the shell ends. Ctrl-] d leaves it "
                   "running; `colloc attach ID` returns to it.",
    COMMAND_OPTIONS(shell_options),
    .task_options = TASK_OPTIONS_ALL,
    .usual_options = TASK_OPTIONS_USUAL,
    .slurm = SLURM_SALLOC,
    .max_operands = 0,
    .common_without = WITHOUT_JSON,
    .run = run_shell,
};
