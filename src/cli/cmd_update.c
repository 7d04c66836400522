/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc update`: changes the requests of tasks that have not ended.
 *
 *     colloc update 12 --time=2h --priority=5      {"time_limit_s": 7200, "priority": 5}
 *
 * Which of these options can still be changed depends on whether the task has started: the daemon
 * refuses the others.
 */
#include "cli/change.h"
#include "cli/print.h"
#include "cli/request.h"

static int run(const struct invocation *invocation)
{
    json_t *changes = json_object();
    request_add_options(changes, invocation->task_values);
    int code = EXIT_USAGE;
    if (json_object_size(changes) == 0)
        print_error("update: give what to change, such as --time=2h");
    else
        code = change_tasks_with(invocation, "update", changes);
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
