/*
 * What it costs to read a summary and ask Horus: median, and the middle nine tenths. Of the files named on the command
 * line, or of a network of 600 rows made up here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "bench.h"
#include "estimator/estimator.h"

enum { REPEATS = 3000, ROWS = 600 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void estimate(const char *text, size_t size)
{
    struct model *model;
    struct estimate e;
    struct fault fault = {""};
    if (model_parse(text, size, &fault, &model) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
    struct estimate_request request = {.model = model, .batch = 32};
    if (estimate_run("horus", &request, &fault, &e) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
    model_destroy(model);
}

static void measure(const char *name, const char *text, size_t size)
{
    static double took[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        double before = bench_now_us();
        estimate(text, size);
        took[i] = bench_now_us() - before;
    }
    qsort(took, REPEATS, sizeof *took, compare);
    char what[512];
    snprintf(what, sizeof what, "%s, %zu bytes: parse and horus, median", name, size);
    bench_row(what, took[REPEATS / 2], "us", "under 200");
    bench_row("the same, 5 of 100", took[REPEATS / 20], "us", "");
    bench_row("the same, 95 of 100", took[REPEATS - REPEATS / 20], "us", "");
}

static void measure_file(const char *path)
{
    char *text;
    size_t size;
    struct fault fault = {""};
    if (file_read(path, MODEL_SIZE_MAX, &fault, &text, &size) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
    const char *slash = strrchr(path, '/');
    measure(slash ? slash + 1 : path, text, size);
    free(text);
}

static void measure_made_up(void)
{
    static char text[ROWS * 80];
    size_t n = 0;
    for (int i = 1; i <= ROWS; i++) {
        const char *type = i % 3 == 0 ? "ReLU" : i % 3 == 1 ? "Conv2d" : "BatchNorm2d";
        n += (size_t)snprintf(text + n, sizeof text - n, "%20s-%-4d [32, 256, 14, 14] %15s\n", type, i, "590,080");
    }
    measure("torchsummary of 600 rows", text, n);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        measure_file(argv[i]);
    if (argc < 2)
        measure_made_up();
    return 0;
}
