/* SPDX-License-Identifier: Apache-2.0 */
/* What `colloc bench` checks before it runs anything: PyTorch for colloc's trainings, and the
 * profilers that a table names. Without them every group would fail, one after the other. */
#include "cli/bench_check.h"

#include <limits.h>
#include <string.h>

#include "bench/conda_environment.h"
#include "cli/print.h"
#include "cli/python.h"
#include "gpu/program.h"

static bool uses_own_trainings(const struct experiment *experiment)
{
    for (size_t i = 0; i < experiment->n_groups; i++)
        for (int n = 0; n < experiment->groups[i].n_tasks; n++)
            if (!experiment->groups[i].tasks[n].is_script)
                return true;
    return false;
}

/* colloc's trainings need PyTorch. If it is missing, one message before the first run says so. */
static bool can_train(const char *python)
{
    struct fault fault = {0};
    if (python_imports(python, "torch", &fault) == 0)
        return true;
    print_error("%s cannot import torch (%s): colloc's trainings need PyTorch; give another "
                "interpreter with --python=PROGRAM or other trainings with --workloads=FOLDER",
        python, fault.text);
    return false;
}

/* Are the profilers here that the table's Listeners name? */
static bool can_profile(const struct experiment *experiment, bool by_daemon)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < experiment->n_groups; i++)
        for (int n = 0; n < experiment->groups[i].n_tasks; n++) {
            const struct bench_task *task = &experiment->groups[i].tasks[n];
            const char *program = profiler_program(task->profiler);
            if (!program || (!by_daemon && program_find(program, path, sizeof path)))
                continue;
            print_error(by_daemon ? "line %d of the table: the listener %s is not supported with "
                                    "--daemon"
                                  : "line %d of the table: the listener %s: there is no such "
                                    "program on PATH",
                task->line, program);
            return false;
        }
    return true;
}

/* Are the environments here that the scripts' conda.yaml name? */
static bool can_activate(const struct experiment *experiment, const char *conda)
{
    struct fault fault = {0};
    const char *last = "";
    for (size_t i = 0; i < experiment->n_groups; i++)
        for (int n = 0; n < experiment->groups[i].n_tasks; n++) {
            const char *name = experiment->groups[i].tasks[n].environment;
            if (!name || strcmp(name, last) == 0)
                continue;
            if (conda_environment_check(conda, name, &fault) < 0) {
                print_error(
                    "line %d of the table: %s", experiment->groups[i].tasks[n].line, fault.text);
                return false;
            }
            last = name;
        }
    return true;
}

bool bench_can_run(
    const struct experiment *experiment, const char *python, bool has_workloads, bool by_daemon)
{
    return can_profile(experiment, by_daemon) && can_activate(experiment, conda_find()) &&
           (has_workloads || !uses_own_trainings(experiment) || can_train(python));
}
