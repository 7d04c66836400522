/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc update`: changes the requests of tasks that have not ended.
 *
 *     colloc update 12 --time=2h --priority=low      {"time_limit_s": 7200, "priority": "low"}
 *     Task 12 RUNNING: time 2:00:00, priority low
 *
 * Which of these options can still be changed depends on whether the task has started: the daemon
 * refuses the others.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/change.h"
#include "cli/print.h"
#include "cli/request.h"
#include "cli/task_view.h"

/* `value`: as in the request (cli/request.c), whose units follow from the option's kind. */
static const char *value_text(
    const struct option_spec *spec, const json_t *value, char cell[CELL_SIZE])
{
    switch (spec->kind) {
    case OPTION_SIZE:
        return mib_text(value, cell);
    case OPTION_DURATION:
        return seconds_text(value, cell);
    case OPTION_MOMENT:
        return moment_text(value, cell);
    default:
        return scalar_text(value, cell);
    }
}

/* "time 2:00:00, priority low", for the caller to free; NULL when memory is out. */
static char *describe_changes(const json_t *changes)
{
    char *text = NULL, cell[CELL_SIZE];
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const char *comma = "";
    for (size_t i = 0; out && i < task_option_count; i++) {
        const struct option_spec *spec = &task_options[i];
        const json_t *value = spec->field ? json_object_get(changes, spec->field) : NULL;
        if (!value)
            continue;
        fprintf(out, "%s%s %s", comma, spec->name, value_text(spec, value, cell));
        comma = ", ";
    }
    if (out)
        fclose(out);
    return text;
}

static int run_changes(const struct invocation *invocation, const json_t *changes)
{
    char *details = describe_changes(changes);
    int code = change_tasks_with(invocation, "update", changes, details ? details : "");
    free(details);
    return code;
}

static int run(const struct invocation *invocation)
{
    json_t *changes = json_object();
    request_add_options(changes, invocation->task_values);
    int code = EXIT_USAGE;
    if (json_object_size(changes) == 0)
        print_error("update: give what to change, such as --time=2h");
    else
        code = run_changes(invocation, changes);
    json_decref(changes);
    return code;
}

const struct command command_update = {
    .name = "update",
    .usage = "OPTION... ID...",
    .summary = "change what was requested for tasks",
    .description =
        "All of these can be changed until a task starts. Then its time limit can be shortened, and "
        "its priority and name changed; root and operators can also raise the time limit, and "
        "change the CPUs and the main memory. The new name is shown in tables: output files keep "
        "theirs."
        "\n\n"
        "ID is a task (12), several (12-40), a task of an array (12_7), several of them "
        "(12_[3-9]) or a whole array.",
    .task_options = TASK_OPTION_BIT(TASK_TIME) | TASK_OPTION_BIT(TASK_PRIORITY) |
                    TASK_OPTION_BIT(TASK_NAME) | TASK_OPTION_BIT(TASK_MEMORY) |
                    TASK_OPTION_BIT(TASK_BEGIN) | TASK_OPTION_BIT(TASK_AFTER) |
                    TASK_OPTION_BIT(TASK_CPUS) | TASK_OPTION_BIT(TASK_HOST_MEMORY),
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
