/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc step`: a task's script reports that it has done a step. The preloaded library, which is
 * in this process as in all of the task, has the function that reports it.
 *
 *     for i in $(seq 100); do ./one-step && colloc step; done
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/step_follow.h"
#include "cli/values.h"
#include "taskfile/metric_pattern.h"

/* As the daemon takes them (daemon/preload/task_steps.c). */
#define STEPS_MAX 1000000

typedef int report_steps(long steps);

enum { STEP_PATTERN, STEP_TASK, STEP_UNTIL };

static const struct option_spec options[] = {
    [STEP_PATTERN] = OPTION("pattern", TEXT, "PATTERN",
        .help = "count the lines of the task's output that match, as --step-pattern of `colloc "
                "submit`, which starts this beside the task"),
    [STEP_TASK] = OPTION("task", TEXT, "ID",
        .help = "with --pattern: the task; default: the one in which the command runs "
                "(COLLOC_TASK_ID)"),
    [STEP_UNTIL] = OPTION("until", INTEGER, "PID", .min = 1, .max = INT_MAX,
        .help = "with --pattern: until this process has ended; default: the one that started this"),
};

static int print_refusal(bool has_library)
{
    print_error("%s: the step is not counted (docs/steps.md)",
        has_library ? "the daemon does not answer"
                    : "this task runs without the preloaded library");
    return EXIT_REFUSED;
}

static int follow_output(const struct invocation *invocation, report_steps *report)
{
    const struct option_value *values = invocation->values;
    struct fault fault = {0};
    struct step_follow follow = {.pattern = values[STEP_PATTERN].text,
        .until = values[STEP_UNTIL].set ? (pid_t)values[STEP_UNTIL].number : getppid(),
        .report = report};
    if (invocation->operand_count > 0 || step_pattern_check(follow.pattern, &fault) < 0) {
        print_error("%s", *fault.text ? fault.text : "step: --pattern needs no number of steps");
        return EXIT_USAGE;
    }
    if (parse_task_id(option_text_or(&values[STEP_TASK], getenv("COLLOC_TASK_ID")), &follow.task) !=
        EXIT_OK)
        return EXIT_USAGE;
    return report ? step_follow_run(&follow) : print_refusal(false);
}

static int run(const struct invocation *invocation)
{
    int64_t steps = 1;
    const char *text = invocation->operand_count > 0 ? invocation->operands[0] : NULL;
    if (text && parse_int64(text, 1, STEPS_MAX, &steps) < 0) {
        print_error("'%s' is no number of steps: give one from 1 to %d", text, STEPS_MAX);
        return EXIT_USAGE;
    }
    if (!getenv("COLLOC_TASK_ID")) {
        print_error("this is no task of colloc: `colloc step` is for a task's script");
        return EXIT_USAGE;
    }
    report_steps *report = (report_steps *)(uintptr_t)dlsym(RTLD_DEFAULT, "colloc_step");
    if (invocation->values[STEP_PATTERN].set)
        return follow_output(invocation, report);
    return report && report((long)steps) == 0 ? EXIT_OK : print_refusal(report);
}

const struct command command_step = {
    .name = "step",
    .usage = "[N] | --pattern=PATTERN",
    .summary = "report, in a task's script, that it has done a step",
    .description = "Its speed is then shown in steps a second. Without an operand it is one step. "
                   "A Python script calls colloc.step() instead, which starts no process. Most "
                   "trainings need neither: their steps are found in their calls of CUDA.",
    COMMAND_OPTIONS(options),
    .max_operands = 1,
    .common_without = WITHOUT_SOCKET | WITHOUT_JSON,
    .run = run,
};
