/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A catalogue is a table whose columns have several possible names, as published tables have them.
 * What a table lacks (activity, time, memory) is taken from the built-in tasks of
 * data/traces/tasks.txt: from the task of the same name, or else from the task with the same
 * dataset and batch whose model's name begins alike. Example: "ResNet50 / ImageNet / 64" finds
 * "resnet50-imagenet-64" by its traits (model resnet50, dataset imagenet, batch 64).
 */
#include "sim/catalogue.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/columns.h"
#include "base/units.h"
#include "sim/built_in_tasks.h"

/* Figures beyond these are mistakes of a table (chosen: far above any task). */
#define SOLO_S_MAX     1e9
#define MEMORY_MIB_MAX 1e8
#define CPUS_MAX       10000
#define REQUEST_MS_MAX 1e7

/* What a row may have. Which column it is in is found once for a table. */
enum row_field {
    ROW_TASK,
    ROW_MODEL,
    ROW_DATASET,
    ROW_BATCH,
    ROW_GPUS,
    ROW_EPOCHS,
    ROW_SOLO_S,
    ROW_MINUTES,
    ROW_MINUTES_NEWER,
    ROW_MEMORY,
    ROW_MEMORY_OTHERWISE,
    ROW_SMACT,
    ROW_SMOCC,
    ROW_GRACT,
    ROW_DRAM,
    ROW_POWER,
    ROW_CPUS,
    ROW_HOST_MEMORY,
    ROW_GPU_KIND,
    ROW_CLASS,
    ROW_RATE,
    ROW_REQUEST,
    ROW_P99,
    ROW_FIELDS
};

static const char *const field_names[ROW_FIELDS][3] = {
    [ROW_TASK] = {"task", "name"},
    [ROW_MODEL] = {"model"},
    [ROW_DATASET] = {"dataset"},
    [ROW_BATCH] = {"batch_size", "batch"},
    [ROW_GPUS] = {"gpus"},
    [ROW_EPOCHS] = {"epochs"},
    [ROW_SOLO_S] = {"solo_s"},
    [ROW_MINUTES] = {"epoch_minutes"},
    [ROW_MINUTES_NEWER] = {"epoch_minutes_2025"},
    [ROW_MEMORY] = {"memory_mb_2025", "memory_mib"},
    [ROW_MEMORY_OTHERWISE] = {"memory_mb_thesis", "rerun_mib"},
    [ROW_SMACT] = {"smact"},
    [ROW_SMOCC] = {"smocc"},
    [ROW_GRACT] = {"gract"},
    [ROW_DRAM] = {"dram"},
    [ROW_POWER] = {"power_w"},
    [ROW_CPUS] = {"cpus"},
    [ROW_HOST_MEMORY] = {"host_memory_mib"},
    [ROW_GPU_KIND] = {"gpu_kind"},
    [ROW_CLASS] = {"class"},
    [ROW_RATE] = {"rate"},
    [ROW_REQUEST] = {"request_ms"},
    [ROW_P99] = {"p99_ms"},
};

/* The traits by which a task is found in a catalogue that names it differently. */
struct traits {
    char model[64]; /* lower-case letters and digits only, without the dataset's name */
    char dataset[32];
    char batch[16];
};

struct reader {
    struct columns columns;
    int numbers[ROW_FIELDS]; /* of their columns; -1: the table has none */
    const struct catalogue_settings *settings;
    enum need_kind need_kind;    /* that the estimator gives */
    int estimate;                /* the column of the estimator's figures, or -1 */
    struct catalogue known;      /* data/traces/tasks.txt */
    struct traits *known_traits; /* of each */
    size_t n_known_traits, known_traits_capacity;
};

static void find_columns(struct reader *reader)
{
    for (int i = 0; i < ROW_FIELDS; i++)
        reader->numbers[i] = columns_find(&reader->columns, field_names[i]);
}

/* ---- tasks that two catalogues name differently ---- */

static void keep_letters(const char *text, char *buffer, size_t size)
{
    size_t n = 0;
    for (; text && *text && n + 1 < size; text++)
        if (isalnum((unsigned char)*text))
            buffer[n++] = (char)tolower((unsigned char)*text);
    buffer[n] = '\0';
}

static struct traits traits_of(const struct reader *reader)
{
    struct traits traits;
    keep_letters(columns_get(&reader->columns, reader->numbers[ROW_MODEL]), traits.model,
        sizeof traits.model);
    keep_letters(columns_get(&reader->columns, reader->numbers[ROW_DATASET]), traits.dataset,
        sizeof traits.dataset);
    keep_letters(columns_get(&reader->columns, reader->numbers[ROW_BATCH]), traits.batch,
        sizeof traits.batch);
    char *dataset = *traits.dataset ? strstr(traits.model, traits.dataset) : NULL;
    if (dataset)
        *dataset = '\0';
    return traits;
}

static bool begins_as(const char *a, const char *b)
{
    size_t a_size = strlen(a), b_size = strlen(b);
    return *a && *b && strncmp(a, b, a_size < b_size ? a_size : b_size) == 0;
}

/* Returns the task with the same dataset and batch whose model's name has the same beginning; else
 * the only task of the dataset; else NULL. */
static const struct sim_task *find_alike(const struct reader *reader, const struct traits *traits)
{
    const struct sim_task *of_dataset = NULL;
    int n = 0;
    for (size_t i = 0; i < reader->known.n; i++) {
        const struct traits *other = &reader->known_traits[i];
        if (!*traits->dataset || strcmp(other->dataset, traits->dataset) != 0)
            continue;
        of_dataset = &reader->known.tasks[i];
        n++;
        if (strcmp(other->batch, traits->batch) == 0 && begins_as(other->model, traits->model))
            return of_dataset;
    }
    return n == 1 ? of_dataset : NULL;
}

static const struct sim_task *find_known(const struct reader *reader, const char *name)
{
    for (size_t i = 0; i < reader->known.n; i++)
        if (strcmp(reader->known.tasks[i].name, name) == 0)
            return &reader->known.tasks[i];
    struct traits traits = traits_of(reader);
    return find_alike(reader, &traits);
}

/* ---- a row ---- */

static int read_number(const struct reader *reader, enum row_field field, double min, double max,
    struct fault *fault, double *ret_value)
{
    return columns_number(&reader->columns, reader->numbers[field], min, max, fault, ret_value);
}

static int read_time(const struct reader *reader, const struct sim_task *known, struct fault *fault,
    struct sim_task *task)
{
    double minutes = NAN;
    int r = read_number(reader, ROW_SOLO_S, 0, SOLO_S_MAX, fault, &task->solo_s);
    if (r < 0)
        return r;
    bool has_time = r == 1;
    task->epochs = known ? known->epochs : 0;
    r = read_number(reader, ROW_EPOCHS, 1, 1e6, fault, &task->epochs);
    if (r < 0 || has_time)
        return r;
    double epochs = r == 1 ? task->epochs : 1;
    if (r >= 0)
        r = read_number(reader, ROW_MINUTES, 0, SOLO_S_MAX / 60, fault, &minutes);
    if (r == 0)
        r = read_number(reader, ROW_MINUTES_NEWER, 0, SOLO_S_MAX / 60, fault, &minutes);
    if (r < 0)
        return r;
    if (isnan(minutes) && task->service) {
        task->solo_s = INFINITY;
        return 0;
    }
    if (isnan(minutes) && !known)
        return columns_wrong(&reader->columns, fault,
            "the time of \"%.60s\" is missing: solo_s, or epochs and epoch_minutes", task->name);
    task->solo_s = isnan(minutes) ? known->solo_s : fmin(SOLO_S_MAX, epochs * minutes * 60);
    return 0;
}

static int read_memory(const struct reader *reader, const struct sim_task *known,
    struct fault *fault, struct sim_task *task)
{
    double mib = 0;
    int r = read_number(reader, ROW_MEMORY, 0, MEMORY_MIB_MAX, fault, &mib);
    if (r == 0)
        r = read_number(reader, ROW_MEMORY_OTHERWISE, 0, MEMORY_MIB_MAX, fault, &mib);
    if (r < 0)
        return r;
    if (r == 0 && !known)
        return columns_wrong(
            &reader->columns, fault, "the memory of \"%.60s\" is missing: memory_mib", task->name);
    task->memory_bytes = r == 0 ? known->memory_bytes : (int64_t)(mib * (double)MIB);
    return 0;
}

static int read_need(const struct reader *reader, struct fault *fault, struct sim_task *task)
{
    double mib;
    task->need = (struct need){NEED_UNKNOWN, 0};
    if (reader->need_kind == NEED_DECLARED)
        task->need = (struct need){NEED_DECLARED, task->memory_bytes};
    int r = columns_number(&reader->columns, reader->estimate, 0, MEMORY_MIB_MAX, fault, &mib);
    if (r == 1)
        task->need = (struct need){NEED_ESTIMATED, (int64_t)(mib * (double)MIB)};
    return r < 0 ? r : 0;
}

static int read_demand(
    struct reader *reader, const struct sim_task *known, struct fault *fault, struct sim_task *task)
{
    const struct {
        enum row_field field;
        double max, *value;
    } numbers[] = {{ROW_SMACT, 1, &task->demand.smact}, {ROW_GRACT, 1, &task->demand.gract},
        {ROW_SMOCC, 1, &task->demand.smocc}, {ROW_DRAM, 1, &task->demand.dram},
        {ROW_POWER, 1e5, &task->demand.power_w}};
    bool says_smact = columns_get(&reader->columns, reader->numbers[ROW_SMACT]) != NULL;
    struct demand defaults = {NAN, reader->settings->smact, NAN, NAN, NAN};
    task->demand = known && !says_smact ? known->demand : defaults;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        int r = read_number(reader, numbers[i].field, 0, numbers[i].max, fault, numbers[i].value);
        if (r < 0)
            return r;
    }
    return !says_smact && !known;
}

/* What it needs of the server beside GPUs, and on which kinds of GPUs it runs. */
static int read_restrictions(
    const struct reader *reader, struct fault *fault, struct sim_task *task)
{
    double cpus = 0, mib = 0;
    const char *kind = columns_get(&reader->columns, reader->numbers[ROW_GPU_KIND]);
    int r = read_number(reader, ROW_CPUS, 0, CPUS_MAX, fault, &cpus);
    if (r >= 0 && cpus != floor(cpus))
        r = columns_wrong(&reader->columns, fault, "cpus is %g: it must be a whole number", cpus);
    if (r >= 0)
        r = read_number(reader, ROW_HOST_MEMORY, 0, MEMORY_MIB_MAX, fault, &mib);
    if (r >= 0 && kind && !span_copy(span_of(kind), task->gpu_kind, sizeof task->gpu_kind))
        r = columns_wrong(&reader->columns, fault, "the gpu_kind \"%.40s...\" is too long", kind);
    task->host = (struct host_resources){(int)cpus, (int64_t)(mib * (double)MIB)};
    return r;
}

static int read_service(const struct reader *reader, struct fault *fault, struct sim_task *task)
{
    const struct columns *columns = &reader->columns;
    const char *rate = columns_get(columns, reader->numbers[ROW_RATE]);
    double request_ms = 0, p99_ms = 0;
    struct sim_service *service = task->service = calloc(1, sizeof *service);
    if (!service)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = read_number(reader, ROW_REQUEST, 0, REQUEST_MS_MAX, fault, &request_ms);
    if (r >= 0)
        r = read_number(reader, ROW_P99, 0, REQUEST_MS_MAX, fault, &p99_ms);
    if (r < 0)
        return r;
    if (!rate || !(request_ms > 0))
        return columns_wrong(columns, fault,
            "the service \"%.60s\" needs rate (requests per second) and request_ms (above 0)",
            task->name);
    if (request_rate_parse(rate, &service->rate) < 0)
        return columns_wrong(columns, fault,
            "invalid rate \"%.60s\": give requests per second, as in 20, or with the seconds from "
            "which on they hold, as in 20;3600:80;7200:5 (at most %d steps)",
            rate, REQUEST_RATE_STEPS);
    service->request_s = request_ms / 1000;
    service->p99_us = llround(p99_ms * 1000);
    return 0;
}

static int read_class(const struct reader *reader, struct fault *fault, struct sim_task *task)
{
    static const enum row_field of_services[] = {ROW_RATE, ROW_REQUEST, ROW_P99};
    const char *name = columns_get(&reader->columns, reader->numbers[ROW_CLASS]);
    if (name && strcmp(name, "service") == 0)
        return read_service(reader, fault, task);
    if (name && strcmp(name, "training") != 0)
        return columns_wrong(
            &reader->columns, fault, "the class \"%.40s\" is neither training nor service", name);
    for (size_t i = 0; i < ARRAY_SIZE(of_services); i++)
        if (columns_get(&reader->columns, reader->numbers[of_services[i]]))
            return columns_wrong(&reader->columns, fault,
                "%s is of services only: write \"service\" in the column class",
                field_names[of_services[i]][0]);
    return 0;
}

static int read_task(struct reader *reader, struct fault *fault, struct sim_task *task)
{
    const struct sim_task *known = find_known(reader, task->name);
    double gpus = known ? known->gpus : 1;
    int r = read_number(reader, ROW_GPUS, 1, 100000, fault, &gpus);
    if (r >= 0 && gpus != floor(gpus))
        r = columns_wrong(&reader->columns, fault, "gpus is %g: it must be a whole number", gpus);
    task->gpus = (int)gpus;
    if (r >= 0)
        r = read_class(reader, fault, task);
    if (r >= 0)
        r = read_time(reader, known, fault, task);
    if (r >= 0)
        r = read_memory(reader, known, fault, task);
    if (r >= 0)
        r = read_need(reader, fault, task);
    if (r >= 0)
        r = read_restrictions(reader, fault, task);
    return r < 0 ? r : read_demand(reader, known, fault, task);
}

/* ---- the catalogue ---- */

static int add_task(struct reader *reader, struct fault *fault, struct catalogue *catalogue)
{
    const char *name = columns_get(&reader->columns, reader->numbers[ROW_TASK]);
    if (!name)
        return columns_wrong(&reader->columns, fault, "the task has no name");
    if (ARRAY_RESERVE(catalogue->tasks, catalogue->capacity, catalogue->n + 1) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    struct sim_task *task = &catalogue->tasks[catalogue->n];
    *task = (struct sim_task){.name = strdup(name)};
    if (!task->name)
        return fault_set(fault, ENOMEM, "out of memory");
    catalogue->n++;
    int r = read_task(reader, fault, task);
    catalogue->n_smact_assumed += r > 0;
    return r < 0 ? r : 0;
}

static int find_estimate(struct reader *reader, struct fault *fault)
{
    const char *name = reader->settings->estimator;
    char reported[64], own[64];
    const char *const names[] = {reported, own, NULL};
    reader->need_kind = need_kind_of_estimator(name);
    reader->estimate = -1;
    if (reader->need_kind != NEED_ESTIMATED)
        return 0;
    snprintf(reported, sizeof reported, "%.40s_mb_reported", name);
    snprintf(own, sizeof own, "%.40s_mib", name);
    reader->estimate = columns_find(&reader->columns, names);
    if (reader->estimate >= 0)
        return 0;
    return fault_set(fault, EINVAL,
        "estimator \"%.40s\": the tasks have no column %s or %s; without such columns there are none "
        "and declared",
        name, reported, own);
}

static int read_rows(struct reader *reader, struct fault *fault, struct catalogue *catalogue)
{
    int r = find_estimate(reader, fault), more = 0;
    while (r == 0 && (more = columns_next(&reader->columns, fault)) == 1)
        r = add_task(reader, fault, catalogue);
    return r < 0 ? r : more;
}

/* The built-in tasks and their traits, in the order of the text. */
static int read_known(struct reader *reader, struct fault *fault)
{
    static const struct catalogue_settings plain = {"none", 0.5};
    struct reader known = {.settings = &plain, .estimate = -1};
    int r = columns_open_text(&known.columns, built_in_tasks, "data/traces/tasks.txt", fault),
        more = 0;
    if (r == 0)
        find_columns(&known);
    while (r == 0 && (more = columns_next(&known.columns, fault)) == 1) {
        r = ARRAY_APPEND(reader->known_traits, reader->n_known_traits,
            reader->known_traits_capacity, traits_of(&known));
        r = r < 0 ? fault_set(fault, ENOMEM, "out of memory")
                  : add_task(&known, fault, &reader->known);
    }
    columns_close(&known.columns);
    return r < 0 ? r : more;
}

static int compare_tasks(const void *a, const void *b)
{
    return strcmp(((const struct sim_task *)a)->name, ((const struct sim_task *)b)->name);
}

static int check_names(const struct catalogue *catalogue, const char *path, struct fault *fault)
{
    for (size_t i = 1; i < catalogue->n; i++)
        if (strcmp(catalogue->tasks[i - 1].name, catalogue->tasks[i].name) == 0)
            return fault_set(
                fault, EINVAL, "%s: \"%.80s\" is listed twice", path, catalogue->tasks[i].name);
    return catalogue->n ? 0 : fault_set(fault, EINVAL, "%s: no tasks", path);
}

int catalogue_read(const char *path, const struct catalogue_settings *settings, struct fault *fault,
    struct catalogue *ret_catalogue)
{
    static const char built_in_name[] = "data/traces/tasks.txt";
    struct reader reader = {.settings = settings};
    *ret_catalogue = (struct catalogue){0};
    int r = read_known(&reader, fault);
    if (r == 0)
        r = path ? columns_open(&reader.columns, path, fault)
                 : columns_open_text(&reader.columns, built_in_tasks, built_in_name, fault);
    if (r == 0)
        find_columns(&reader);
    if (r == 0 && reader.numbers[ROW_TASK] < 0)
        r = fault_set(fault, EINVAL, "%s: its first line names no column \"task\"", path);
    if (r == 0)
        r = read_rows(&reader, fault, ret_catalogue);
    if (r == 0 && ret_catalogue->n)
        qsort(ret_catalogue->tasks, ret_catalogue->n, sizeof *ret_catalogue->tasks, compare_tasks);
    if (r == 0)
        r = check_names(ret_catalogue, path ? path : built_in_name, fault);
    columns_close(&reader.columns);
    catalogue_fini(&reader.known);
    free(reader.known_traits);
    return r;
}

void catalogue_fini(struct catalogue *catalogue)
{
    for (size_t i = 0; i < catalogue->n; i++) {
        free(catalogue->tasks[i].name);
        free(catalogue->tasks[i].service);
    }
    free(catalogue->tasks);
    *catalogue = (struct catalogue){0};
}

const struct sim_task *catalogue_find(const struct catalogue *catalogue, const char *name)
{
    struct sim_task key = {.name = (char *)name};
    return bsearch(&key, catalogue->tasks, catalogue->n, sizeof key, compare_tasks);
}
