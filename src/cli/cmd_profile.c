/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc profile`: PyTorch's profiler records some steps of a task that runs. change.c sends the
 * requests.
 *
 *     colloc submit --profile=torch train.sh     Submitted task 12
 *     colloc profile 12 --steps=5                colloc-12.torch_4711.json, some seconds later
 */
#include "base/clock.h"
#include "cli/change.h"
#include "cli/print.h"
#include "taskfile/torch_steps.h"

enum { PROFILE_STEPS, PROFILE_FOR };

static const struct option_spec options[] = {
    [PROFILE_STEPS] = OPTION("steps", INTEGER, "N", .min = 1, .max = TORCH_STEPS_MAX,
        .help = "record the next N steps of the optimizer"),
    [PROFILE_FOR] = OPTION("for", DURATION, "TIME", .min = 10 * MS_US, .max = 600 * SECOND_US,
        .help = "record for this long: for programs without an optimizer"),
};

static int run(const struct invocation *invocation)
{
    const struct option_value *values = invocation->values;
    if (values[PROFILE_STEPS].set == values[PROFILE_FOR].set) {
        print_error("profile: give --steps=N or --for=TIME");
        return EXIT_USAGE;
    }
    json_t *body = values[PROFILE_STEPS].set
                       ? json_pack("{s:I}", "steps", (json_int_t)values[PROFILE_STEPS].number)
                       : json_pack("{s:f}", "for_s", (double)values[PROFILE_FOR].number / 1e6);
    int code = change_tasks_with(invocation, "profile", body, "");
    json_decref(body);
    return code;
}

const struct command command_profile = {
    .name = "profile",
    .usage = "--steps=N|--for=TIME ID...",
    .summary = "record steps of running PyTorch tasks",
    .description =
        "For tasks that were submitted with --profile=torch. Each of their processes writes a "
        "trace, colloc-ID.torch_PID.json (the second one colloc-ID.torch-2_PID.json), to the "
        "folder that the task was submitted in. The profiler asks for orders every five seconds, "
        "so it begins up to five seconds later.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
