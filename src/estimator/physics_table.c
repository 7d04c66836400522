/*
 * For scripts/fit-estimators: what physics says of many tasks at once, before anything learned. A task per line of
 * standard input, tab-separated: FILE, batch, optimizer, precision, sequence, kind of GPU ("-": not said). Answers a
 * line for each: context, reserved, live in bytes, step in us, SMACT, DRAM activity, evidence, features; or "-" with
 * the reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "estimator/residual.h"
#include "model/network.h"

enum { FIELDS = 6, LINE_MAX_BYTES = 4096 };

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

/* The same roofline at other rates. */
static void use_rates(const struct estimate_request *request, const struct activity_rates *rates,
                      struct physics *physics)
{
    struct tape tape;
    const char *why;
    const struct optimizer *optimizer = request->optimizer ? optimizer_find(request->optimizer) : NULL;
    if (tape_build(request, NULL, &tape, &why) != 0)
        return;
    physics->activity =
        activity_estimate(&tape, optimizer ? optimizer : optimizer_usual(), gpu_traits_find(request->gpu_kind), rates);
    tape_fini(&tape);
}

static void answer(char *fields[FIELDS], const struct activity_rates *rates)
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
    if (r == 0)
        r = physics_run(&request, &fault, &estimate, &physics);
    if (r == 0 && rates)
        use_rates(&request, rates, &physics);
    if (r == 0)
        print_physics(&physics, &estimate);
    else
        printf("-\t%s\n", r < 0 ? fault.text : estimate.note);
    network_fini(&network);
    free(text);
}

/* Three arguments are other rates for the roofline: launch in us, share of the matrix and of the memory rates. */
int main(int argc, char **argv)
{
    struct activity_rates rates = {0};
    if (argc == 4)
        rates = (struct activity_rates){atof(argv[1]), atof(argv[2]), atof(argv[3])};
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
        answer(fields, argc == 4 ? &rates : NULL);
    }
    return 0;
}
