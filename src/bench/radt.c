#include "bench/radt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/words.h"

enum column { EXPERIMENT, WORKLOAD, DEVICES, COLLOCATION, SCRIPT, PARAMS, COLUMNS };
static const char *const names[COLUMNS] = {
    "Experiment", "Workload", "Devices", "Collocation", "File", "Params"};

struct reader {
    struct columns *columns;
    int column[COLUMNS];
    const struct experiment_defaults *defaults;
    struct fault *fault;
    char key[64]; /* of the workload that is being read */
};

/* What our train.py calls the models of timm's script, and the images that a data set has. */
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
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(model, models[i][0]) == 0)
            return models[i][1];
    return model;
}

/* What Params says of a training. */
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
    for (char *at = folder; (at = strpbrk(at, ",\"'#\r\n"));) /* the journal's own */
        *at = '_';
}

/* The training that radT's script would do, done by ours. */
static char **translate(const struct experiment_defaults *defaults, const struct params *params)
{
    struct training_options options = {.epochs = defaults->epochs, .steps = defaults->steps};
    parse_int64(params->batch, 1, 1000000, &options.batch);
    for (size_t i = 0; i < sizeof data_sets / sizeof *data_sets; i++)
        if (strcmp(params->data_set, data_sets[i].folder) == 0) {
            options.side = data_sets[i].side;
            options.classes = data_sets[i].classes;
        }
    return words_of_training(defaults, our_name(params->model), &options);
}

static char **words_of(
    const struct experiment_defaults *defaults, const char *script, const struct params *params)
{
    char path[4096];
    if (!defaults->base)
        return translate(defaults, params);
    snprintf(path, sizeof path, "%s/%s", defaults->base, script);
    return words_of_text(defaults->python, path, params->text);
}

/* "resnet26 cifar10 b128": model, data and batch tell the trainings of a table apart. */
static char *name_of(const struct params *params)
{
    char *name;
    int r = asprintf(&name, "%s%s%s%s%s", our_name(params->model), *params->data_set ? " " : "",
        params->data_set, *params->batch ? " b" : "", params->batch);
    return r < 0 ? NULL : name;
}

static int add_task(const struct reader *reader, struct bench_group *group)
{
    const char *script = columns_get(reader->columns, reader->column[SCRIPT]);
    const char *text = columns_get(reader->columns, reader->column[PARAMS]);
    struct params params;
    if (!script || !text)
        return columns_wrong(reader->columns, reader->fault, "no %s", script ? "Params" : "File");
    read_params(text, &params);
    if (!*params.model || params.model[strspn(params.model, WORKLOAD_NAME)] != '\0')
        return columns_wrong(reader->columns, reader->fault, "no --model in Params");
    if (params.batch[strspn(params.batch, "0123456789")] != '\0')
        return columns_wrong(
            reader->columns, reader->fault, "--batch-size in Params is no whole number");
    if (group->n_tasks == BENCH_TASKS_MAX)
        return columns_wrong(
            reader->columns, reader->fault, "more than %d tasks together", BENCH_TASKS_MAX);
    struct bench_task *task = bench_group_add(group);
    if (!task || !(task->name = name_of(&params)) ||
        !(task->words = words_of(reader->defaults, script, &params)))
        return fault_set(reader->fault, ENOMEM, "out of memory");
    return 0;
}

static int begin_group(struct reader *reader, struct experiment *experiment)
{
    const char *how = columns_get(reader->columns, reader->column[COLLOCATION]);
    const char *gpu = columns_get(reader->columns, reader->column[DEVICES]);
    struct bench_group *group = experiment_add(experiment);
    if (!group)
        return fault_set(reader->fault, ENOMEM, "out of memory");
    group->line = (int)reader->columns->number;
    group->sharing = BENCH_STREAMS;
    if (how && bench_sharing_parse(how, group) < 0)
        return columns_wrong(reader->columns, reader->fault,
            "Collocation is -, MPS or a MIG profile, not '%s'", how);
    snprintf(group->gpu, sizeof group->gpu, "%s",
        reader->defaults->gpu ? reader->defaults->gpu
        : gpu                 ? gpu
                              : "0");
    return 0;
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
    if (strcmp(key, reader->key) != 0)
        r = begin_group(reader, experiment);
    strcpy(reader->key, key);
    return r < 0 ? r : add_task(reader, &experiment->groups[experiment->n_groups - 1]);
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
    for (int i = 0; i < COLUMNS; i++)
        if ((reader.column[i] = columns_find(columns, (const char *const[]){names[i], NULL})) < 0)
            return fault_set(fault, EINVAL, "%s: no column '%s'", columns->name, names[i]);
    while ((r = columns_next(columns, fault)) > 0)
        if ((r = read_row(&reader, experiment)) < 0)
            return r;
    for (size_t i = 0; r == 0 && i < experiment->n_groups; i++)
        if (!(experiment->groups[i].mix = mix_of(&experiment->groups[i])))
            r = fault_set(fault, ENOMEM, "out of memory");
    return r;
}
