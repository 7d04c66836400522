/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-physics: the estimates of the physical model for many tasks at once, without the learned
 * corrections. The fits (python/colloc_fit/physics.py) ask it thousands of times with other
 * constants.
 *
 *     colloc-physics TASKS < CONSTANTS
 *
 * TASKS is a file with a task on each line, tab-separated: FILE, batch, optimizer, precision,
 * sequence, kind of GPU ("-": not known). FILE is a model summary or an export; all are parsed once.
 *
 * The first line of the output names its columns. Then each line of standard input is a set of
 * constants, as NAME=VALUE words that replace the built-in ones:
 *
 *     forward_us=20 half_share=0.6 bandwidth_share=0.7
 *
 * and is answered by a line for each task: context, reserved, active and live memory in bytes; the
 * step, and in it the time of the GPU, of the host, and of the host's three phases, in us; SM and
 * DRAM activity; evidence, the kind of network and the scale of its quantiles (quantile.h),
 * features; or "-" and the reason. An empty line means the built-in constants.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "estimator/physics/quantile.h"
#include "estimator/physics/residual.h"
#include "model/network.h"

enum { FIELDS = 6, LINE_MAX_BYTES = 4096 };

struct task {
    char line[LINE_MAX_BYTES], *fields[FIELDS];
    struct network network;
    char *text;
    struct fault fault;
    int error;
};

static const char *field_or_null(const char *field)
{
    return strcmp(field, "-") == 0 ? NULL : field;
}

static void print_physics(const struct physics *physics, const struct estimate *estimate)
{
    const struct footprint *f = &physics->footprint;
    double features[RESIDUAL_FEATURES];
    residual_features(physics, features);
    const struct activity *a = &physics->activity;
    printf("%.0f\t%.0f\t%.0f\t%.0f\t%.3f\t%.3f\t%.3f\t", physics->context_bytes, f->reserved,
        f->active, f->live, a->step_us, a->gpu_us, a->host_us);
    for (int i = 0; i < STEP_PHASES; i++)
        printf("%.3f\t", a->phase_us[i]);
    printf("%.4f\t%.4f\t%s\t%s\t%.6f", a->smact, a->dram, evidence_name(estimate->evidence),
        network_kind_name(network_kind_of(physics)), quantile_scale(physics, estimate->evidence));
    for (int i = 0; i < RESIDUAL_FEATURES; i++)
        printf("\t%.9g", features[i]);
    putchar('\n');
}

static void print_head(void)
{
    printf(
        "context\treserved\tactive\tlive\tstep_us\tgpu_us\thost_us\tforward_us\tbackward_us\tupdate_us\tsmact\tdram\tevidence\tnetwork\tscale");
    for (int i = 0; i < RESIDUAL_FEATURES; i++)
        printf("\t%s", residual_feature_name((enum residual_feature)i));
    putchar('\n');
    fflush(stdout);
}

/* The constant of this name. NULL: there is none. */
static double *find_constant(struct physics_constants *constants, const char *name)
{
    struct activity_rates *rates = &constants->rates;
#define X(constant)                                                                                \
    if (strcmp(name, #constant) == 0)                                                              \
        return &rates->constant;
    ACTIVITY_RATES(X)
#undef X
    return NULL;
}

/* Returns whether every word of the line is a constant. */
static bool read_constants(char *line, struct physics_constants *constants)
{
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
        char *value = strchr(word, '=');
        if (!value)
            return false;
        *value++ = '\0';
        double *constant = find_constant(constants, word);
        if (!constant)
            return false;
        *constant = atof(value);
    }
    return true;
}

static void answer_task(struct task *task, const char *constants_line)
{
    struct physics physics;
    struct estimate estimate = {.note = ""};
    struct estimate_request request = {.model = task->network.model,
        .export = task->network.export,
        .batch = strtoll(task->fields[1], NULL, 10),
        .optimizer = optimizer_parse(field_or_null(task->fields[2])),
        .sequence_length = strtoll(task->fields[4], NULL, 10),
        .gpu_kind = field_or_null(task->fields[5])};
    struct physics_constants constants = physics_constants_of(request.gpu_kind);
    char line[LINE_MAX_BYTES];
    strcpy(line, constants_line);
    if (!read_constants(line, &constants)) {
        fprintf(stderr, "colloc-physics: not NAME=VALUE of a known constant: %s", constants_line);
        exit(1);
    }
    int r = task->error;
    if (r == 0)
        r = precision_parse(
            "precision", field_or_null(task->fields[3]), &task->fault, &request.precision);
    if (r == 0)
        r = physics_run_with(&constants, &request, &task->fault, &estimate, &physics);
    if (r == 0)
        print_physics(&physics, &estimate);
    else
        printf("-\t%s\n", r < 0 ? task->fault.text : estimate.note);
}

/* A model that cannot be read has a row with the reason, so that rows stay in step with TASKS. */
static void open_task(struct task *task)
{
    size_t size;
    char *rest = task->line;
    task->line[strcspn(task->line, "\n")] = '\0';
    for (int i = 0; i < FIELDS; i++)
        task->fields[i] = strsep(&rest, "\t");
    if (!task->fields[FIELDS - 1]) {
        fprintf(stderr, "colloc-physics: a task of fewer than %d fields\n", FIELDS);
        exit(1);
    }
    task->error = file_read(task->fields[0], EXPORT_SIZE_MAX, &task->fault, &task->text, &size);
    if (task->error == 0)
        task->error = network_parse(task->text, size, &task->fault, &task->network);
}

/* Reads and parses the tasks of the file. Returns false when it cannot be read. */
static bool open_tasks(const char *path, struct task **ret_tasks, size_t *ret_n)
{
    FILE *file = fopen(path, "r");
    struct task *tasks = NULL;
    size_t n = 0, capacity = 0;
    char line[LINE_MAX_BYTES];
    if (!file)
        return false;
    while (fgets(line, sizeof line, file)) {
        if (n == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            tasks = realloc(tasks, capacity * sizeof *tasks);
            if (!tasks)
                abort();
        }
        memset(&tasks[n], 0, sizeof tasks[n]);
        strcpy(tasks[n++].line, line);
    }
    fclose(file);
    for (size_t i = 0; i < n; i++) /* their place is settled now */
        open_task(&tasks[i]);
    *ret_tasks = tasks;
    *ret_n = n;
    return true;
}

int main(int argc, char **argv)
{
    char constants[LINE_MAX_BYTES];
    struct task *tasks = NULL;
    size_t n = 0;
    if (argc != 2 || !open_tasks(argv[1], &tasks, &n)) {
        fprintf(stderr, "usage: colloc-physics TASKS < CONSTANTS\n");
        return 1;
    }
    print_head();
    while (fgets(constants, sizeof constants, stdin)) {
        for (size_t i = 0; i < n; i++)
            answer_task(&tasks[i], constants);
        fflush(stdout);
    }
    for (size_t i = 0; i < n; i++) {
        network_fini(&tasks[i].network);
        free(tasks[i].text);
    }
    free(tasks);
    return 0;
}
