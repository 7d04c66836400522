/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader runs as the task's user: what it reads are the user's files, and only the task's own
 * processes wait for a file system that hangs. Event files do not name their task, so their folder
 * has a placeholder (taskfile/metric_source.h); a store of MLflow may be shared: its runs have a
 * tag. A reader that the machine starts late takes what the program has written since its start.
 *
 *     --metric-from=tensorboard:runs/%a    colloc metric --from=tensorboard:/home/ada/runs/7
 *     --metric-from=mlflow:mlruns          colloc metric --from=mlflow:/home/ada/mlruns --tagged
 */
#include "exec/metric_reader.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "base/clock.h"
#include "exec/companion.h"

#define OUTPUT "output:"

int metric_reader_find(char *program, size_t size)
{
    static const char *const places[] = {"../../bin", "../cli", "."};
    return beside_find(places, ARRAY_SIZE(places), "colloc", program, size);
}

/* The source with its folder made absolute and filled in. Returns whether other tasks have another
 * folder, in `ret_is_own`; 0 or -ENAMETOOLONG. */
static int fill_source(const struct attempt_spec *spec, char *source, size_t size, bool *ret_is_own)
{
    char folder[PATH_MAX];
    const char *place = strchr(spec->metric_from, ':');
    *ret_is_own = true;
    if (!place || strncmp(spec->metric_from, OUTPUT, strlen(OUTPUT)) == 0)
        return snprintf(source, size, "%s", spec->metric_from) < (int)size ? 0 : -ENAMETOOLONG;
    place++;
    int r = spec_output_path(spec, place, folder, sizeof folder);
    size_t size_given = strlen(place), size_filled = strlen(folder);
    *ret_is_own = r == 0 && (size_filled < size_given ||
                                strcmp(folder + size_filled - size_given, place) != 0);
    int n = snprintf(source, size, "%.*s%s", (int)(place - spec->metric_from), spec->metric_from,
        r == 0 ? folder : "");
    return r == 0 && n >= (int)size ? -ENAMETOOLONG : r;
}

void metric_reader_start(const char *program, const struct attempt_spec *spec)
{
    char source[PATH_MAX + 16], from[PATH_MAX + 32], rule[256], task[40], since[40], until[40];
    bool is_own;
    if (fill_source(spec, source, sizeof source, &is_own) < 0) {
        fprintf(stderr, "colloc: metric-from: the folder's path is too long\n");
        return;
    }
    snprintf(from, sizeof from, "--from=%s", source);
    snprintf(rule, sizeof rule, "--rule=%s", spec->metric_rule);
    snprintf(task, sizeof task, "--task=%lld", (long long)spec->task_id);
    snprintf(since, sizeof since, "--since=%lld", (long long)(clock_wall_us() / SECOND_US));
    snprintf(until, sizeof until, "--until=%d", (int)getpid());
    const char *const argv[] = {
        program, "metric", from, rule, task, since, until, is_own ? NULL : "--tagged", NULL};
    const struct companion reader = {"reading its metric", argv, {0}};
    companion_start(&reader, spec);
}

void step_reader_start(const char *program, const struct attempt_spec *spec)
{
    char pattern[PATH_MAX], task[40], until[40];
    if (snprintf(pattern, sizeof pattern, "--pattern=%s", spec->step_pattern) >=
        (int)sizeof pattern) {
        fprintf(stderr, "colloc: step-pattern: it is too long\n");
        return;
    }
    snprintf(task, sizeof task, "--task=%lld", (long long)spec->task_id);
    snprintf(until, sizeof until, "--until=%d", (int)getpid());
    const char *const argv[] = {program, "step", pattern, task, until, NULL};
    const struct companion reader = {"reading its steps", argv, {0}};
    companion_start(&reader, spec);
}
