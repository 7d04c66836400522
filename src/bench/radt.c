/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads radT's tables. A row is a task; consecutive rows of one workload are a group. Without a
 * base folder each training is translated into one of colloc's train.py:
 *
 *     --model resnet26 --batch-size 128 --data-dir /data/cifar10
 *     train.py resnet26 --batch 128 --side 32 --classes 10
 */
#include "bench/radt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "bench/group.h"
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

/* radT's recorders whose values are in colloc bench's samples of the GPU, too. */
static const char *const listeners[] = {"smi", "dcgmi"};

struct reader {
    struct columns *columns;
    int column[COLUMNS];
    const struct experiment_defaults *defaults;
    struct fault *fault;
    char key[64];     /* of the workload that is being read */
    bool is_finished; /* all its lines up to here are FINISHED */
};

/* train.py's names of timm's models, and the image sizes and classes of data sets. */
static const char *const models[][2] = {
    {"efficientnetv2_s", "efficientnet"}, {"cait_xxs24_224", "cait"}};
static const struct {
    const char *folder;
    int64_t side, classes;
} data_sets[] = {{"cifar10", 32, 10}, {"imagenet64_images", 64, 1000}, {"imagenet", 224, 1000}};

/* The value of an option in "--model resnet26 --batch-size=128", or "". */
static void option_of(const char *params, const char *name, char *buffer, size_t size)
{
    size_t length = strlen(name);
    *buffer = '\0';
    for (const char *at = params + strspn(params, " "); *at;
         at += strcspn(at, " "), at += strspn(at, " ")) {
        if (strncmp(at, name, length) != 0 || !strchr(" =", at[length]))
            continue;
        const char *value = at + length + strspn(at + length, " =");
        size_t n = strcspn(value, " ");
        if (n < size)
            sprintf(buffer, "%.*s", (int)n, value);
        return;
    }
}

static const char *our_name(const char *model)
{
    for (size_t i = 0; i < ARRAY_SIZE(models); i++)
        if (strcmp(model, models[i][0]) == 0)
            return models[i][1];
    return model;
}

/* The options in Params. */
struct params {
    const char *text;
    char model[64], folder[1024], batch[16];
    const char *data_set; /* the last folder of a path, in `folder` */
};

static void read_params(const char *text, struct params *ret_params)
{
    char *folder = ret_params->folder;
    ret_params->text = text;
    option_of(text, "--model", ret_params->model, sizeof ret_params->model);
    option_of(text, "--batch-size", ret_params->batch, sizeof ret_params->batch);
    option_of(text, "--data-dir", folder, sizeof ret_params->folder);
    for (size_t n = strlen(folder); n > 0 && folder[n - 1] == '/'; n--)
        folder[n - 1] = '\0';
    char *slash = strrchr(folder, '/');
    ret_params->data_set = slash ? slash + 1 : folder;
    for (char *at = folder; (at = strpbrk(at, ",\"'#\r\n"));) /* a character that the journal uses
                                                               * itself */
        *at = '_';
}

/* The command of train.py for the training that radT's script would run. */
static char **translate_command(
    const struct experiment_defaults *defaults, const struct params *params)
{
    struct training_options options = {.epochs = defaults->epochs, .steps = defaults->steps};
    parse_int64(params->batch, 1, 1000000, &options.batch);
    for (size_t i = 0; i < ARRAY_SIZE(data_sets); i++)
        if (strcmp(params->data_set, data_sets[i].folder) == 0) {
            options.side = data_sets[i].side;
            options.classes = data_sets[i].classes;
        }
    return training_command_make(defaults, our_name(params->model), &options);
}

static char **make_command(
    const struct experiment_defaults *defaults, const char *script, const struct params *params)
{
    char path[4096];
    if (!defaults->base)
        return translate_command(defaults, params);
    snprintf(path, sizeof path, "%s/%s", defaults->base, script);
    return training_command_split(defaults->python, path, params->text);
}

/* "examples/train.py" is "train". */
static char *name_of_script(const char *script)
{
    const char *slash = strrchr(script, '/');
    char *name = strdup(slash ? slash + 1 : script);
    if (!name)
        return NULL;
    char *dot = strrchr(name, '.');
    if (dot && dot > name)
        *dot = '\0';
    for (char *at = name; *at; at++)
        if (!strchr(WORKLOAD_NAME, *at))
            *at = '_';
    return name;
}

/* "resnet26 cifar10 b128"; the file's name for a script without --model. */
static char *name_of(const struct params *params, const char *script)
{
    if (!*params->model)
        return name_of_script(script);
    char *name;
    int r = asprintf(&name, "%s%s%s%s%s", our_name(params->model), *params->data_set ? " " : "",
        params->data_set, *params->batch ? " b" : "", params->batch);
    return r < 0 ? NULL : name;
}

/* train.py needs a --model; a user's script is run as it is. */
static int read_task(
    const struct reader *reader, const char *script, const char *text, struct params *ret_params)
{
    bool own = reader->defaults->base != NULL;
    if (!script || (!text && !own))
        return columns_wrong(reader->columns, reader->fault, "no %s", script ? "Params" : "File");
    if (script[strlen(script) - 1] == '/')
        return columns_wrong(reader->columns, reader->fault, "File is a folder: '%.60s'", script);
    read_params(text ? text : "", ret_params);
    bool is_name = *ret_params->model &&
                   ret_params->model[strspn(ret_params->model, WORKLOAD_NAME)] == '\0';
    if (!own && !is_name)
        return columns_wrong(reader->columns, reader->fault,
            "no --model in Params: --base=FOLDER runs the script that File names");
    if (!is_name)
        *ret_params->model = '\0';
    bool is_number = ret_params->batch[strspn(ret_params->batch, "0123456789")] == '\0';
    if (!own && !is_number)
        return columns_wrong(
            reader->columns, reader->fault, "--batch-size in Params is no whole number");
    if (!is_number)
        *ret_params->batch = '\0';
    return 0;
}

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
    const char *text = columns_get(reader->columns, reader->column[DEVICES]);
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
    if (group->sharing == BENCH_MIG && strchr(task->gpus, ','))
        return columns_wrong(reader->columns, reader->fault,
            "Devices is '%.40s': a task on MIG instances of several GPUs is not supported", given);
    return 0;
}

static int add_task(const struct reader *reader, struct bench_group *group)
{
    const char *script = columns_get(reader->columns, reader->column[SCRIPT]);
    const char *text = columns_get(reader->columns, reader->column[PARAMS]);
    struct params params;
    int r = read_task(reader, script, text, &params);
    if (r < 0)
        return r;
    if (group->n_tasks == BENCH_TASKS_MAX)
        return columns_wrong(
            reader->columns, reader->fault, "more than %d tasks together", BENCH_TASKS_MAX);
    struct bench_task *task = bench_group_add(group);
    if (!task || !(task->name = name_of(&params, script)) ||
        !(task->argv = make_command(reader->defaults, script, &params)))
        return fault_set(reader->fault, ENOMEM, "out of memory");
    return read_devices(reader, group, task);
}

static int begin_group(struct reader *reader, struct experiment *experiment)
{
    struct bench_group *group = experiment_add(experiment);
    if (!group)
        return fault_set(reader->fault, ENOMEM, "out of memory");
    group->line = (int)reader->columns->number;
    reader->is_finished = true;
    return 0;
}

static int read_collocation(const struct reader *reader, struct bench_group *group)
{
    const char *how = columns_get(reader->columns, reader->column[COLLOCATION]);
    struct bench_group row = {.sharing = BENCH_STREAMS};
    if (how && bench_sharing_parse(how, &row) < 0)
        return columns_wrong(reader->columns, reader->fault,
            "Collocation is -, MPS or a MIG profile, not '%s'", how);
    if (group->n_tasks > 0 &&
        (row.sharing != group->sharing || strcmp(row.profile, group->profile) != 0))
        return columns_wrong(reader->columns, reader->fault,
            "Collocation '%s' is not that of the rows above: different ways of sharing in one "
            "workload are not supported",
            how ? how : "-");
    group->sharing = row.sharing;
    strcpy(group->profile, row.profile);
    return 0;
}

static bool is_listener(const char *name, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(listeners); i++)
        if (strlen(listeners[i]) == size && memcmp(listeners[i], name, size) == 0)
            return true;
    return false;
}

static int check_listeners(const struct reader *reader)
{
    const char *text = columns_get(reader->columns, reader->column[LISTENERS]);
    for (const char *at = text; at && *at;) {
        size_t n = strcspn(at, "+");
        if (!is_listener(at, n))
            return columns_wrong(reader->columns, reader->fault,
                "the listener '%.*s' is not supported: what smi and dcgmi record is in the samples",
                (int)n, at);
        at += n + (at[n] == '+');
    }
    return 0;
}

static void note_status(struct reader *reader)
{
    const char *status = columns_get(reader->columns, reader->column[STATUS]);
    reader->is_finished &= status && strcmp(status, "FINISHED") == 0;
}

/* Removes the last workload when all its lines are FINISHED. */
static void drop_finished(const struct reader *reader, struct experiment *experiment)
{
    if (experiment->n_groups > 0 && reader->is_finished)
        bench_group_fini(&experiment->groups[--experiment->n_groups]);
}

static int read_row(struct reader *reader, struct experiment *experiment)
{
    const char *first = columns_get(reader->columns, reader->column[EXPERIMENT]);
    const char *second = columns_get(reader->columns, reader->column[WORKLOAD]);
    char key[sizeof reader->key];
    int r = 0;
    if (!second)
        return columns_wrong(reader->columns, reader->fault, "no Workload");
    snprintf(key, sizeof key, "%.24s/%.24s", first ? first : "", second);
    if (strcmp(key, reader->key) != 0) {
        drop_finished(reader, experiment);
        r = begin_group(reader, experiment);
    }
    strcpy(reader->key, key);
    if (r < 0)
        return r;
    struct bench_group *group = &experiment->groups[experiment->n_groups - 1];
    note_status(reader);
    r = read_collocation(reader, group);
    if (r == 0)
        r = check_listeners(reader);
    return r < 0 ? r : add_task(reader, group);
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
    bool has_rows = false;
    int r;
    for (int i = 0; i < COLUMNS; i++) {
        reader.column[i] = columns_find(columns, (const char *const[]){names[i], NULL});
        if (reader.column[i] < 0 && i < REQUIRED)
            return fault_set(fault, EINVAL, "%s: no column '%s'", columns->name, names[i]);
    }
    for (; (r = columns_next(columns, fault)) > 0; has_rows = true)
        if ((r = read_row(&reader, experiment)) < 0)
            return r;
    drop_finished(&reader, experiment);
    if (r == 0 && has_rows && experiment->n_groups == 0)
        return fault_set(
            fault, EINVAL, "%s: the Status of every workload is FINISHED", columns->name);
    for (size_t i = 0; r == 0 && i < experiment->n_groups; i++)
        if (!(experiment->groups[i].mix = mix_of(&experiment->groups[i])))
            r = fault_set(fault, ENOMEM, "out of memory");
    return r;
}
