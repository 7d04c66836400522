/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For scripts/fit-estimators: what physics says of many tasks at once, before anything learned.
 *
 *     colloc-physics TASKS < CONSTANTS
 *
 * A task per line of the file TASKS, tab-separated: FILE, batch, optimizer, precision, sequence,
 * kind of GPU ("-": not said). A line of standard input is constants to use instead of the built-in
 * ones: launch in us, share of the matrix and of the memory rate, then the workspace shares in the
 * order of struct workspace_shares; an empty line is the built-in ones. It is answered by a line
 * for each task: context, reserved, active, live in bytes, step in us, SMACT, DRAM activity,
 * evidence, features; or "-" with the reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "estimator/physics/residual.h"
#include "model/network.h"

enum { FIELDS = 6, RATES = 3, LINE_MAX_BYTES = 4096 };

struct task {
    char line[LINE_MAX_BYTES], *fields[FIELDS];
    struct network network;
    char *text;
    struct fault fault;
    int error;
};

static const char *said(const char *field)
{
    return strcmp(field, "-") == 0 ? NULL : field;
}

static void print_physics(const struct physics *physics, const struct estimate *estimate)
{
    const struct footprint *f = &physics->footprint;
    double features[RESIDUAL_FEATURES];
    residual_features(physics, features);
    printf("%.0f\t%.0f\t%.0f\t%.0f\t%.3f\t%.4f\t%.4f\t%s", physics->context_bytes, f->reserved,
        f->active, f->live, physics->activity.step_us, physics->activity.smact,
        physics->activity.dram, evidence_name(estimate->evidence));
    for (int i = 0; i < RESIDUAL_FEATURES; i++)
        printf("\t%.9g", features[i]);
    putchar('\n');
}

/* Whether the line has all of them, or none. */
static bool use(char *line, struct physics_constants *constants)
{
    double *places[RATES] = {&constants->rates.launch_us, &constants->rates.matrix_share,
        &constants->rates.bandwidth_share};
    double *shares = &constants->shares.at[0][0][0].input;
    size_t n = RATES + sizeof constants->shares / sizeof *shares;
    char *word = strtok(line, " \n");
    for (size_t i = 0; word && i < n; i++, word = strtok(NULL, " \n")) {
        *(i < RATES ? places[i] : &shares[i - RATES]) = atof(word);
        if (i + 1 == n)
            return true;
    }
    return line[strspn(line, " \n")] == '\0';
}

static void answer(struct task *task, const char *constants_line)
{
    struct physics physics;
    struct estimate estimate = {.note = ""};
    struct estimate_request request = {.model = task->network.model,
        .export = task->network.export,
        .batch = strtoll(task->fields[1], NULL, 10),
        .optimizer = optimizer_parse(said(task->fields[2])),
        .sequence_length = strtoll(task->fields[4], NULL, 10),
        .gpu_kind = said(task->fields[5])};
    struct physics_constants constants = physics_constants_of(request.gpu_kind);
    char line[LINE_MAX_BYTES];
    strcpy(line, constants_line);
    if (!use(line, &constants)) {
        fprintf(stderr, "a line of too few constants\n");
        exit(1);
    }
    int r = task->error;
    if (r == 0)
        r = precision_parse("precision", said(task->fields[3]), &task->fault, &request.precision);
    if (r == 0)
        r = physics_run_with(&constants, &request, &task->fault, &estimate, &physics);
    if (r == 0)
        print_physics(&physics, &estimate);
    else
        printf("-\t%s\n", r < 0 ? task->fault.text : estimate.note);
}

static void open_task(struct task *task)
{
    size_t size;
    char *rest = task->line;
    task->line[strcspn(task->line, "\n")] = '\0';
    for (int i = 0; i < FIELDS; i++)
        task->fields[i] = strsep(&rest, "\t");
    if (!task->fields[FIELDS - 1]) {
        fprintf(stderr, "a line of fewer than %d fields\n", FIELDS);
        exit(1);
    }
    task->error = file_read(task->fields[0], EXPORT_SIZE_MAX, &task->fault, &task->text, &size);
    if (task->error == 0)
        task->error = network_parse(task->text, size, &task->fault, &task->network);
}

/* All of them, parsed once. NULL: they cannot be read. */
static struct task *open_tasks(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "r");
    struct task *tasks = NULL;
    size_t n = 0, capacity = 0;
    char line[LINE_MAX_BYTES];
    while (file && fgets(line, sizeof line, file)) {
        if (n == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            tasks = realloc(tasks, capacity * sizeof *tasks);
            if (!tasks)
                abort();
        }
        memset(&tasks[n], 0, sizeof tasks[n]);
        strcpy(tasks[n++].line, line);
    }
    if (file)
        fclose(file);
    for (size_t i = 0; i < n; i++) /* their place is settled now */
        open_task(&tasks[i]);
    *ret_n = n;
    return file ? tasks : NULL;
}

int main(int argc, char **argv)
{
    char constants[LINE_MAX_BYTES];
    size_t n = 0;
    struct task *tasks = argc == 2 ? open_tasks(argv[1], &n) : NULL;
    if (!tasks) {
        fprintf(stderr, "usage: colloc-physics TASKS < CONSTANTS\n");
        return 1;
    }
    while (fgets(constants, sizeof constants, stdin)) {
        for (size_t i = 0; i < n; i++)
            answer(&tasks[i], constants);
        fflush(stdout);
    }
    for (size_t i = 0; i < n; i++) {
        network_fini(&tasks[i].network);
        free(tasks[i].text);
    }
    free(tasks);
    return 0;
}
