/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc step`: a task's script reports that it has done a step. The preloaded library, which is
 * in this process as in all of the task, has the function that reports it.
 *
 *     for i in $(seq 100); do ./one-step && colloc step; done
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"

/* As the daemon takes them (daemon/preload/task_steps.c). */
#define STEPS_MAX 1000000

typedef int report_steps(long steps);

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
    if (report && report((long)steps) == 0)
        return EXIT_OK;
    print_error("%s: the step is not counted (docs/steps.md)",
        report ? "the daemon does not answer" : "this task runs without the preloaded library");
    return EXIT_REFUSED;
}

const struct command command_step = {
    .name = "step",
    .usage = "[N]",
    .summary = "report, in a task's script, that it has done a step",
    .description = "Its speed is then shown in steps a second. Without an operand it is one step. "
                   "A Python script calls colloc.step() instead, which starts no process. Most "
                   "trainings need neither: their steps are found in their calls of CUDA.",
    .max_operands = 1,
    .common_without = WITHOUT_SOCKET | WITHOUT_JSON,
    .run = run,
};
