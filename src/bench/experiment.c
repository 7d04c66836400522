/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads tables of experiments. A line "resnet26:400*2+small" of `mix` is a group of three tasks:
 * two of resnet26 with 400 steps per epoch, and one of small. Groups are named by mix and sharing;
 * the name is the key of a group's results in the journal, so it must not change between two calls
 * of bench.
 */
#include "bench/experiment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/units.h"
#include "bench/group.h"
#include "bench/radt.h"
#include "bench/radt_sweep.h"
#include "bench/training_command.h"

/* Chosen: larger values are mistakes. */
enum { EPOCHS_MAX = 10000, STEPS_MAX = 10000000, BATCH_MAX = 1000000 };

enum column { MIX, SHARING, GPU, EPOCHS, STEPS, BATCH, THREADS, COLUMNS };
static const char *const names[COLUMNS][2] = {
    {"mix"}, {"sharing"}, {"gpu"}, {"epochs"}, {"steps"}, {"batch"}, {"threads"}};

/* The table being read. */
struct reader {
    struct columns *columns;
    int column[COLUMNS];
    const struct experiment_defaults *defaults;
    struct fault *fault;
};

/* ---- a line of colloc's form ---- */

static int read_integer(const struct reader *reader, enum column column, int64_t max,
    int64_t otherwise, int64_t *ret_value)
{
    double value = (double)otherwise;
    int r = columns_number(
        reader->columns, reader->column[column], 1, (double)max, reader->fault, &value);
    *ret_value = (int64_t)value;
    if (r == 1 && value != (double)*ret_value)
        r = columns_wrong(reader->columns, reader->fault, "%s is %g: it must be a whole number",
            names[column][0], value);
    return r < 0 ? r : 0;
}

/* One way of sharing for all tasks, or one for each: "4g.40gb/1g.10gb". */
static int read_sharing(const struct reader *reader, struct bench_group *group)
{
    const char *text = columns_get(reader->columns, reader->column[SHARING]);
    if (!text)
        return columns_wrong(
            reader->columns, reader->fault, "no sharing: serial, streams, mps or a MIG profile");
    int parts = 0;
    for (const char *at = text, *end = at; *end; at = end + 1, parts++) {
        char part[sizeof group->tasks->profile];
        end = at + strcspn(at, "/");
        struct bench_task read, *task = parts < group->n_tasks ? &group->tasks[parts] : &read;
        snprintf(part, sizeof part, "%.*s", (int)(end - at), at);
        if ((size_t)(end - at) >= sizeof part || bench_sharing_parse(part, task) < 0)
            return columns_wrong(reader->columns, reader->fault,
                "sharing is serial, streams, mps or a MIG profile such as 2g.20gb, not '%.80s'",
                text);
    }
    if ((parts != 1 && parts != group->n_tasks) || (parts > 1 && bench_group_is_serial(group)))
        return columns_wrong(reader->columns, reader->fault,
            "'%.80s': one way of sharing, or one for each of %d tasks (not serial)", text,
            group->n_tasks);
    for (int i = parts; i < group->n_tasks; i++) {
        group->tasks[i].sharing = group->tasks[0].sharing;
        strcpy(group->tasks[i].profile, group->tasks[0].profile);
    }
    return 0;
}

/* "resnet26:400*2": cuts the steps and the count off the name. */
static int read_part(
    const struct reader *reader, char *part, int64_t *ret_steps, int64_t *ret_count)
{
    char *star = strchr(part, '*'), *colon;
    *ret_count = 1;
    if (star) {
        *star = '\0';
        if (parse_int64(star + 1, 1, BENCH_TASKS_MAX, ret_count) < 0)
            return columns_wrong(reader->columns, reader->fault,
                "'%s*%s': a task's count is 1 to %d", part, star + 1, BENCH_TASKS_MAX);
    }
    if ((colon = strchr(part, ':'))) {
        *colon = '\0';
        if (parse_int64(colon + 1, 1, STEPS_MAX, ret_steps) < 0)
            return columns_wrong(reader->columns, reader->fault,
                "'%s:%s': steps must be a whole number, at least 1", part, colon + 1);
    }
    if (*part == '\0' || part[strspn(part, WORKLOAD_NAME)] != '\0')
        return columns_wrong(
            reader->columns, reader->fault, "'%s' is not the name of a training", part);
    return 0;
}

static int add_tasks(const struct reader *reader, struct bench_group *group, const char *name,
    int64_t count, const struct training_options *options)
{
    if (group->n_tasks + count > BENCH_TASKS_MAX)
        return columns_wrong(
            reader->columns, reader->fault, "more than %d tasks together", BENCH_TASKS_MAX);
    for (int64_t i = 0; i < count; i++) {
        struct bench_task *task = bench_group_add(group);
        if (!task || !(task->name = strdup(name)) ||
            !(task->argv = training_command_make(reader->defaults, name, options)))
            return fault_set(reader->fault, ENOMEM, "out of memory");
    }
    return 0;
}

static int read_mix(const struct reader *reader, struct bench_group *group)
{
    const char *text = columns_get(reader->columns, reader->column[MIX]);
    struct training_options options = {0};
    int64_t epochs, steps, count;
    int r = read_integer(reader, EPOCHS, EPOCHS_MAX, reader->defaults->epochs, &epochs);
    if (r == 0)
        r = read_integer(reader, STEPS, STEPS_MAX, reader->defaults->steps, &steps);
    if (r == 0)
        r = read_integer(reader, BATCH, BATCH_MAX, 0, &options.batch);
    if (r < 0)
        return r;
    if (!text)
        return columns_wrong(reader->columns, reader->fault, "no mix");
    char *copy = strdup(text), *rest = copy;
    group->mix = strdup(text);
    if (!copy || !group->mix) {
        free(copy);
        return fault_set(reader->fault, ENOMEM, "out of memory");
    }
    options.epochs = epochs;
    for (char *part; r == 0 && (part = strsep(&rest, "+"));) {
        options.steps = steps;
        r = read_part(reader, part, &options.steps, &count);
        if (r == 0)
            r = add_tasks(reader, group, part, count, &options);
    }
    free(copy);
    return r;
}

/* One percentage for all, or one for each task: "30/70". */
static int read_threads(const struct reader *reader, struct bench_group *group)
{
    const char *text = columns_get(reader->columns, reader->column[THREADS]);
    if (!text)
        return 0;
    if (!bench_group_has(group, BENCH_MPS))
        return columns_wrong(reader->columns, reader->fault, "threads are for clients of MPS only");
    const char *at = text;
    int n = 0;
    for (bool more = true; more && n < group->n_tasks; n++) {
        char *end;
        long share = strtol(at, &end, 10);
        more = *end == '/';
        if (end == at || (*end && !more) || share < 1 || share > 100)
            return columns_wrong(
                reader->columns, reader->fault, "threads are per cent, 1 to 100, not '%s'", text);
        group->tasks[n].threads = (int)share;
        at = end + 1;
    }
    if ((n != 1 && n != group->n_tasks) || (at <= text + strlen(text) && *(at - 1) == '/'))
        return columns_wrong(reader->columns, reader->fault,
            "'%s': one share of threads, or one for each of %d tasks", text, group->n_tasks);
    for (int i = n; i < group->n_tasks; i++)
        group->tasks[i].threads = group->tasks[0].threads;
    return 0;
}

static int read_gpu(const struct reader *reader, struct bench_group *group)
{
    const char *text = columns_get(reader->columns, reader->column[GPU]);
    text = reader->defaults->gpu ? reader->defaults->gpu : text ? text : "0";
    if (strlen(text) >= sizeof group->gpu)
        return columns_wrong(
            reader->columns, reader->fault, "'%s' is not the index of a GPU", text);
    strcpy(group->gpu, text);
    return 0;
}

static int read_group(const struct reader *reader, struct experiment *experiment)
{
    struct bench_group *group = experiment_add(experiment);
    if (!group)
        return fault_set(reader->fault, ENOMEM, "out of memory");
    group->line = (int)reader->columns->number;
    int r = read_gpu(reader, group);
    if (r == 0)
        r = read_mix(reader, group);
    if (r == 0)
        r = read_sharing(reader, group);
    if (r == 0)
        r = read_threads(reader, group);
    return r;
}

static int read_own_form(struct columns *columns, const struct experiment_defaults *defaults,
    struct fault *fault, struct experiment *experiment)
{
    struct reader reader = {.columns = columns, .defaults = defaults, .fault = fault};
    int r;
    for (int i = 0; i < COLUMNS; i++)
        reader.column[i] = columns_find(columns, (const char *const[]){names[i][0], NULL});
    while ((r = columns_next(columns, fault)) > 0)
        if ((r = read_group(&reader, experiment)) < 0)
            return r;
    return r;
}

/* ---- names ---- */

static bool is_taken(const struct experiment *experiment, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(experiment->groups[i].name, name) == 0)
            return true;
    return false;
}

/* A table may have the same mix and sharing twice, with other steps or threads. */
static int name_group(const struct experiment *experiment, size_t i)
{
    struct bench_group *group = &experiment->groups[i];
    if (bench_group_name_sharing(group) < 0 ||
        asprintf(&group->name, "%s %s", group->mix, group->sharing) < 0)
        return -ENOMEM;
    if (!is_taken(experiment, i, group->name))
        return 0;
    char *name;
    if (asprintf(&name, "%s (line %d)", group->name, group->line) < 0)
        return -ENOMEM;
    free(group->name);
    group->name = name;
    return 0;
}

static int read_table(struct columns *columns, const struct experiment_defaults *defaults,
    struct fault *fault, struct experiment *experiment)
{
    bool is_own_form = columns_find(columns, (const char *const[]){"mix", NULL}) >= 0;
    if (!is_own_form && columns_find(columns, (const char *const[]){"Workload", NULL}) < 0)
        return fault_set(fault, EINVAL,
            "%s: neither a column 'mix' (colloc's form) nor 'Workload' (radT's)", columns->name);
    experiment->is_radt = !is_own_form;
    if (is_own_form && defaults->conda)
        return fault_set(fault, EINVAL,
            "%s: --conda is for the scripts of radT's tables: --python names the interpreter of "
            "colloc's trainings",
            columns->name);
    int r = (is_own_form ? read_own_form : radt_read)(columns, defaults, fault, experiment);
    if (r == 0 && experiment->n_groups == 0)
        return fault_set(fault, EINVAL, "%s: the table has no experiments", columns->name);
    for (size_t i = 0; r == 0 && i < experiment->n_groups; i++)
        if (name_group(experiment, i) < 0)
            r = fault_set(fault, ENOMEM, "out of memory");
    return r;
}

/* Opens the table, or the table of a specification, whose text the caller frees. */
static int open_table(
    const char *path, struct fault *fault, struct columns *ret_columns, char **ret_text)
{
    *ret_text = NULL;
    if (!radt_sweep_is(path))
        return columns_open(ret_columns, path, fault);
    *ret_columns = (struct columns){0};
    int r = radt_sweep_table(path, fault, ret_text);
    return r < 0 ? r : columns_open_text(ret_columns, *ret_text, path, fault);
}

int experiment_read(const char *path, const struct experiment_defaults *defaults,
    struct fault *fault, struct experiment *ret_experiment)
{
    struct columns columns;
    char *text;
    *ret_experiment = (struct experiment){0};
    int r = open_table(path, fault, &columns, &text);
    if (r == 0)
        r = read_table(&columns, defaults, fault, ret_experiment);
    columns_close(&columns);
    free(text);
    if (r < 0)
        experiment_fini(ret_experiment);
    return r;
}
