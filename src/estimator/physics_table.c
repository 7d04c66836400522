/*
 * For scripts/fit-estimators: what physics says of many tasks at once, before anything learned. A task per line of
 * standard input, tab-separated: FILE, batch, optimizer, precision, sequence, kind of GPU ("-": not said). Answers a
 * line for each: context, reserved, live in bytes, step in us, SMACT, DRAM activity, evidence, features; or "-" with
 * the reason. Six arguments are constants to use instead: launch in us, share of the matrix and of the memory rate,
 * workspace shares forward, backward and pointwise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "estimator/residual.h"
#include "model/network.h"

enum { FIELDS = 6, CONSTANTS = 6, LINE_MAX_BYTES = 4096 };

static const char *said(const char *field)
{
    return strcmp(field, "-") == 0 ? NULL : field;
}

static void print_physics(const struct physics *physics, const struct estimate *estimate)
{
    double features[RESIDUAL_FEATURES];
    residual_features(physics, features);
    printf("%.0f\t%.0f\t%.0f\t%.3f\t%.4f\t%.4f\t%s", physics->context_bytes, physics->footprint.reserved,
           physics->footprint.live, physics->activity.step_us, physics->activity.smact, physics->activity.dram,
           evidence_name(estimate->evidence));
    for (int i = 0; i < RESIDUAL_FEATURES; i++)
        printf("\t%.9g", features[i]);
    putchar('\n');
}

static void use(char **arguments, struct physics_constants *constants)
{
    double *const places[CONSTANTS] = {&constants->rates.launch_us,       &constants->rates.matrix_share,
                                       &constants->rates.bandwidth_share, &constants->shares.forward,
                                       &constants->shares.backward,       &constants->shares.pointwise};
    for (int i = 0; i < CONSTANTS; i++)
        *places[i] = atof(arguments[i]);
}

static void answer(char *fields[FIELDS], char **other)
{
    struct network network = {0};
    struct fault fault = {""};
    struct physics physics;
    struct estimate estimate = {.note = ""};
    char *text = NULL;
    size_t size;
    int r = file_read(fields[0], EXPORT_SIZE_MAX, &fault, &text, &size);
    if (r == 0)
        r = network_parse(text, size, &fault, &network);
    struct estimate_request request = {.model = network.model,
                                       .export = network.export,
                                       .batch = strtoll(fields[1], NULL, 10),
                                       .optimizer = said(fields[2]),
                                       .precision = said(fields[3]),
                                       .sequence_length = strtoll(fields[4], NULL, 10),
                                       .gpu_kind = said(fields[5])};
    struct physics_constants constants = physics_constants_of(request.gpu_kind);
    if (other)
        use(other, &constants);
    if (r == 0)
        r = physics_run_with(&constants, &request, &fault, &estimate, &physics);
    if (r == 0)
        print_physics(&physics, &estimate);
    else
        printf("-\t%s\n", r < 0 ? fault.text : estimate.note);
    network_fini(&network);
    free(text);
}

int main(int argc, char **argv)
{
    char **other = argc == 1 + CONSTANTS ? argv + 1 : NULL;
    char line[LINE_MAX_BYTES], *fields[FIELDS];
    while (fgets(line, sizeof line, stdin)) {
        char *rest = line;
        line[strcspn(line, "\n")] = '\0';
        for (int i = 0; i < FIELDS; i++)
            fields[i] = strsep(&rest, "\t");
        if (!fields[FIELDS - 1]) {
            fprintf(stderr, "a line of fewer than %d fields\n", FIELDS);
            return 1;
        }
        answer(fields, other);
    }
    return 0;
}
