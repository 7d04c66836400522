/* SPDX-License-Identifier: Apache-2.0 */
/* What `colloc bench` checks before it runs anything: PyTorch and the libraries that colloc's
 * trainings need, and the profilers that a table names. Without them every group would fail, one
 * after the other. */
#include "cli/bench_check.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/conda_environment.h"
#include "cli/print.h"
#include "cli/python.h"
#include "cli/support.h"
#include "gpu/program.h"

enum { TRAININGS_MAX = 64 }; /* whose libraries are checked; chosen: there are some twenty */
#define LIBRARIES_LIMIT_US (300 * SECOND_US) /* PyTorch from a cold network disk takes minutes */

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

/* The names of colloc's trainings, each once. Returns how many. */
static size_t list_trainings(
    const struct experiment *experiment, const char **ret_names, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < experiment->n_groups; i++)
        for (int at = 0; at < experiment->groups[i].n_tasks; at++) {
            const struct bench_task *task = &experiment->groups[i].tasks[at];
            bool is_listed = task->is_script || n == most;
            for (size_t k = 0; k < n && !is_listed; k++)
                is_listed = strcmp(ret_names[k], task->argv[2]) == 0;
            if (!is_listed)
                ret_names[n++] = task->argv[2];
        }
    return n;
}

/* models.py, which is beside train.py, says which libraries a training needs beside PyTorch. What
 * else goes wrong there, the run will show. */
static bool has_libraries(const struct experiment *experiment, const char *python)
{
    char path[PATH_MAX], folder[PATH_MAX], script[PATH_MAX + 16], said[256] = "";
    const char *argv[2 + TRAININGS_MAX + 1] = {python, script};
    int status = 0;
    size_t n = list_trainings(experiment, argv + 2, TRAININGS_MAX);
    if (n == 0 || support_find("workloads", folder, sizeof folder) < 0 ||
        !program_find(python, path, sizeof path))
        return true;
    snprintf(script, sizeof script, "%s/models.py", folder);
    const struct program run = {.path = path,
        .argv = (char *const *)(uintptr_t)argv,
        .envp = environ,
        .limit_us = LIBRARIES_LIMIT_US};
    if (program_run(&run, said, sizeof said, &status, NULL) < 0 || status != 1 || !*said ||
        strchr(said, '\n'))
        return true;
    print_error("%s lacks %s, which trainings of this experiment need: install it for that "
                "interpreter, or give another one with --python=PROGRAM",
        python, said);
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
           (has_workloads || !uses_own_trainings(experiment) ||
               (can_train(python) && has_libraries(experiment, python)));
}
