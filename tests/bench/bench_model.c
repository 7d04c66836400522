/*
 * What it costs to read a summary and ask for an estimate. Of the files named on the command line, or of a network of
 * 600 rows made up here; and of the largest below COLLOC_EVAL_DATA, if that is set.
 */
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "bench.h"
#include "estimator/estimator.h"

enum { REPEATS = 3000, ROWS = 600 };

static void estimate(const char *estimator, const char *text, size_t size)
{
    struct model *model;
    struct estimate e;
    struct fault fault = {""};
    if (model_parse(text, size, &fault, &model) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
    struct estimate_request request = {.model = model, .batch = 32, .sequence_length = 512};
    if (estimate_run(estimator, &request, &fault, &e) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
    model_destroy(model);
}

static void measure_one(const char *estimator, const char *goal, const char *name, const char *text, size_t size)
{
    static double took[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        double before = bench_now_us();
        estimate(estimator, text, size);
        took[i] = bench_now_us() - before;
    }
    char what[512];
    snprintf(what, sizeof what, "parse and %s: %s, %zu bytes", estimator, name, size);
    bench_row(what, "us", goal, took, REPEATS);
}

static void measure(const char *name, const char *text, size_t size)
{
    measure_one("horus", "median < 200", name, text, size);
    measure_one("graph", "median < 1000", name, text, size);
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

/* The reference's own summaries, where somebody has them. */
static void measure_largest(const char *folder)
{
    char pattern[4096];
    glob_t found;
    const char *largest = NULL;
    off_t size = 0;
    snprintf(pattern, sizeof pattern, "%s/carma/models/*", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat status;
        if (stat(found.gl_pathv[i], &status) == 0 && status.st_size > size) {
            largest = found.gl_pathv[i];
            size = status.st_size;
        }
    }
    if (largest)
        measure_file(largest);
    globfree(&found);
}

int main(int argc, char **argv)
{
    const char *evaluation = getenv("COLLOC_EVAL_DATA");
    for (int i = 1; i < argc; i++)
        measure_file(argv[i]);
    if (argc < 2)
        measure_made_up();
    if (argc < 2 && evaluation)
        measure_largest(evaluation);
    return 0;
}
