/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads radT's tables. A row is a task; the rows of one workload are a group, wherever they stand
 * in the table. Three kinds of rows:
 *
 *     File is in the current folder, or --base is given:  the script runs in its own folder
 *     File is not there, Params has a --model:            colloc's train.py runs that model
 *     neither:                                            refused
 *
 * As in radT, Params are separated by blanks and never seen by a shell, and "nan" is what pandas
 * writes for an empty field.
 */
#include "bench/radt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/units.h"
#include "bench/conda_environment.h"
#include "bench/group.h"
#include "bench/radt_listeners.h"
#include "bench/radt_params.h"
#include "bench/training_command.h"

enum column {
    EXPERIMENT,
    WORKLOAD,
    DEVICES,
    COLLOCATION,
    SCRIPT,
    PARAMS,
    REQUIRED,
    STATUS = REQUIRED,
    LISTENERS,
    COLUMNS
};
static const char *const names[COLUMNS] = {
    "Experiment", "Workload", "Devices", "Collocation", "File", "Params", "Status", "Listeners"};

struct reader {
    struct columns *columns;
    int column[COLUMNS];
    const struct experiment_defaults *defaults;
    struct fault *fault;
};

/* Returns the row's value, or NULL for none. */
static const char *value_of(const struct reader *reader, enum column column)
{
    const char *text = columns_get(reader->columns, reader->column[column]);
    return text && strcmp(text, "nan") == 0 ? NULL : text;
}

static int out_of_memory(const struct reader *reader)
{
    return fault_set(reader->fault, ENOMEM, "out of memory");
}

/* ---- the command ---- */

/* Returns the path of the row's script, absolute if the current folder is known. */
static char *path_of(const struct experiment_defaults *defaults, const char *script)
{
    const char *current = defaults->current, *base = defaults->base;
    bool needs_base = base && *script != '/';
    bool needs_current = current && *script != '/' && !(base && *base == '/');
    char *path;
    int r = asprintf(&path, "%s%s%s%s%s", needs_current ? current : "", needs_current ? "/" : "",
        needs_base ? base : "", needs_base ? "/" : "", script);
    return r < 0 ? NULL : path;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == path ? strdup("/") : slash ? strndup(path, (size_t)(slash - path)) : NULL;
}

/* The user's script, with the arguments as given. */
static int set_script(const struct reader *reader, struct bench_task *task, const char *path,
    const struct radt_params *params)
{
    task->is_script = true;
    task->argv = training_command_split(reader->defaults->python, path, params->text);
    task->folder = folder_of(path);
    return task->argv && (task->folder || !strchr(path, '/')) ? 0 : out_of_memory(reader);
}

/* The script runs in the environment of the conda.yaml beside it. */
static int set_environment(const struct reader *reader, struct bench_task *task)
{
    struct fault fault = {0};
    if (!reader->defaults->conda)
        return 0;
    if (conda_environment_name(task->folder, &fault, &task->environment) < 0)
        return columns_wrong(reader->columns, reader->fault, "%s", fault.text);
    char **argv = conda_command(reader->defaults->conda, task->environment, task->argv);
    if (!argv)
        return out_of_memory(reader);
    task->argv = argv;
    return 0;
}

/* colloc's train.py in place of a script that is not there. */
static int set_translation(const struct reader *reader, struct bench_task *task, const char *script,
    const struct radt_params *params)
{
    if (!*params->model)
        return columns_wrong(reader->columns, reader->fault,
            "'%.80s' is not in this folder, and Params has no --model that colloc could train: "
            "--base=FOLDER runs the script that File names",
            script);
    if (params->has_bad_batch)
        return columns_wrong(
            reader->columns, reader->fault, "--batch-size in Params is no whole number");
    task->argv = radt_params_translate(params, reader->defaults);
    return task->argv ? 0 : out_of_memory(reader);
}

static int read_command(const struct reader *reader, struct bench_task *task)
{
    const char *script = value_of(reader, SCRIPT);
    struct radt_params params;
    if (!script)
        return columns_wrong(reader->columns, reader->fault, "no File");
    if (script[strlen(script) - 1] == '/')
        return columns_wrong(reader->columns, reader->fault, "File is a folder: '%.60s'", script);
    radt_params_parse(value_of(reader, PARAMS), &params);
    char *path = path_of(reader->defaults, script);
    task->name = radt_params_name(&params, script);
    int r = path && task->name ? 0 : out_of_memory(reader);
    if (r == 0 && (reader->defaults->base || access(path, F_OK) == 0)) {
        r = set_script(reader, task, path, &params);
        r = r < 0 ? r : set_environment(reader, task);
    } else if (r == 0)
        r = set_translation(reader, task, script, &params);
    free(path);
    return r;
}

/* ---- where and how it shares ---- */

/* Adds a GPU to a comma-separated list, unless it is there already. Returns false when the list is
 * full. */
static bool add_gpu(char *list, const char *index, size_t size)
{
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ",");
        if (n == size && memcmp(at, index, n) == 0)
            return true;
        at += n + (at[n] == ',');
    }
    size_t used = strlen(list);
    if (used + 1 + size >= BENCH_GPUS_SIZE)
        return false;
    sprintf(list + used, "%s%.*s", used ? "," : "", (int)size, index);
    return true;
}

/* "0+1" is both GPUs for this task. --gpu replaces all. */
static int read_devices(
    const struct reader *reader, struct bench_group *group, struct bench_task *task)
{
    const char *text = value_of(reader, DEVICES);
    const char *given = reader->defaults->gpu ? reader->defaults->gpu : text ? text : "0";
    for (const char *at = given;; at++) {
        size_t n = strcspn(at, "+");
        if (n == 0 || strspn(at, "0123456789") != n)
            return columns_wrong(reader->columns, reader->fault,
                "Devices is the index of a GPU, or several as in 0+1, not '%.40s'", given);
        if (!add_gpu(task->gpus, at, n) || !add_gpu(group->gpu, at, n))
            return columns_wrong(reader->columns, reader->fault, "too many GPUs");
        at += n;
        if (*at == '\0')
            break;
    }
    if (task->sharing == BENCH_MIG && strchr(task->gpus, ','))
        return columns_wrong(reader->columns, reader->fault,
            "Devices is '%.40s': a task on MIG instances of several GPUs is not supported", given);
    return 0;
}

static int read_collocation(const struct reader *reader, struct bench_task *task)
{
    const char *how = value_of(reader, COLLOCATION);
    if (how && (bench_sharing_parse(how, task) < 0 || task->sharing == BENCH_SERIAL))
        return columns_wrong(reader->columns, reader->fault,
            "Collocation is -, MPS or a MIG profile, not '%.40s'", how);
    return 0;
}

static int read_listeners(const struct reader *reader, struct bench_task *task)
{
    const char *text = value_of(reader, LISTENERS), *name;
    struct listeners listeners = {.profiler = PROFILER_NONE};
    int size, r = text ? listeners_parse(text, &listeners, &name, &size) : 0;
    task->profiler = listeners.profiler;
    task->lists_host_memory = listeners.host_memory;
    return r ? columns_wrong(reader->columns, reader->fault, "the listener '%.*s' %s",
                   size < 40 ? size : 40, name, listener_answer_text(r))
             : 0;
}

/* ---- rows into groups ---- */

static struct bench_group *find_group(struct experiment *experiment, const char *key)
{
    for (size_t i = experiment->n_groups; i-- > 0;) /* most often it is the last one */
        if (strcmp(experiment->groups[i].key, key) == 0)
            return &experiment->groups[i];
    return NULL;
}

/* Takes over the key. */
static struct bench_group *add_group(
    const struct reader *reader, struct experiment *experiment, char *key)
{
    struct bench_group *group = experiment_add(experiment);
    if (!group) {
        free(key);
        return NULL;
    }
    group->key = key;
    group->line = (int)reader->columns->number;
    group->is_finished = true;
    return group;
}

/* Finds or adds the group of the row's workload; the two numbers are its key. */
static int group_of_row(
    const struct reader *reader, struct experiment *experiment, struct bench_group **ret_group)
{
    const char *number = value_of(reader, EXPERIMENT), *workload = value_of(reader, WORKLOAD);
    char *key;
    if (!workload)
        return columns_wrong(reader->columns, reader->fault, "no Workload");
    if (asprintf(&key, "%s\n%s", number ? number : "", workload) < 0)
        return out_of_memory(reader);
    *ret_group = find_group(experiment, key);
    if (*ret_group)
        free(key);
    else
        *ret_group = add_group(reader, experiment, key);
    return *ret_group ? 0 : out_of_memory(reader);
}

static int read_row(const struct reader *reader, struct experiment *experiment)
{
    struct bench_group *group;
    int r = group_of_row(reader, experiment, &group);
    if (r < 0)
        return r;
    const char *status = value_of(reader, STATUS);
    group->is_finished &= status && strstr(status, "FINISHED");
    if (group->n_tasks == BENCH_TASKS_MAX)
        return columns_wrong(
            reader->columns, reader->fault, "more than %d tasks together", BENCH_TASKS_MAX);
    struct bench_task *task = bench_group_add(group);
    if (!task)
        return out_of_memory(reader);
    task->line = (int)reader->columns->number;
    r = read_collocation(reader, task);
    if (r == 0)
        r = read_listeners(reader, task);
    if (r == 0)
        r = read_command(reader, task);
    return r < 0 ? r : read_devices(reader, group, task);
}

/* "resnet26*2+resnet50" */
static char *mix_of(const struct bench_group *group)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (int i = 0, same; i < group->n_tasks; i += same) {
        for (same = 1; i + same < group->n_tasks; same++)
            if (strcmp(group->tasks[i].name, group->tasks[i + same].name) != 0)
                break;
        fprintf(out, same > 1 ? "%s%s*%d" : "%s%s", i ? "+" : "", group->tasks[i].name, same);
    }
    fclose(out);
    return text;
}

int radt_read(struct columns *columns, const struct experiment_defaults *defaults,
    struct fault *fault, struct experiment *experiment)
{
    struct reader reader = {.columns = columns, .defaults = defaults, .fault = fault};
    int r;
    for (int i = 0; i < COLUMNS; i++) {
        reader.column[i] = columns_find(columns, (const char *const[]){names[i], NULL});
        if (reader.column[i] < 0 && i < REQUIRED)
            return fault_set(fault, EINVAL, "%s: no column '%s'", columns->name, names[i]);
    }
    while ((r = columns_next(columns, fault)) > 0)
        if ((r = read_row(&reader, experiment)) < 0)
            return r;
    for (size_t i = 0; r == 0 && i < experiment->n_groups; i++)
        if (!(experiment->groups[i].mix = mix_of(&experiment->groups[i])))
            r = fault_set(fault, ENOMEM, "out of memory");
    return r;
}
