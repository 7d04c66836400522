/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the options of a training in a row of radT's tables, and translates them for colloc's
 * train.py, which stands in for a script that is not there:
 *
 *     --model resnet26 --batch-size 128 --data-dir /data/cifar10
 *     train.py resnet26 --batch 128 --side 32 --classes 10
 */
#include "bench/radt_params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "bench/training_command.h"

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

static bool consists_of(const char *text, const char *characters)
{
    return text[strspn(text, characters)] == '\0';
}

void radt_params_parse(const char *text, struct radt_params *ret_params)
{
    char *folder = ret_params->folder;
    *ret_params = (struct radt_params){.text = text ? text : ""};
    text = ret_params->text;
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
    if (!consists_of(ret_params->model, WORKLOAD_NAME))
        *ret_params->model = '\0';
    ret_params->has_bad_batch = !consists_of(ret_params->batch, "0123456789");
    if (ret_params->has_bad_batch)
        *ret_params->batch = '\0';
}

char **radt_params_translate(
    const struct radt_params *params, const struct experiment_defaults *defaults)
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

char *radt_params_name(const struct radt_params *params, const char *script)
{
    if (!*params->model)
        return name_of_script(script);
    char *name;
    int r = asprintf(&name, "%s%s%s%s%s", our_name(params->model), *params->data_set ? " " : "",
        params->data_set, *params->batch ? " b" : "", params->batch);
    return r < 0 ? NULL : name;
}
