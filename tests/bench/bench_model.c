/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to read a summary and ask for an estimate, in time and in memory. Of the files
 * named on the command line, or of two networks made up here, and of an export whose convolutions
 * cuDNN has answered about; and of the worst of the summaries
 * below COLLOC_EVAL_DATA, if that is set.
 */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "bench.h"
#include "estimator/estimator.h"
#include "estimator/physics/known_kernels.h"
#include "heap.h"

enum { REPEATS = 3000, REPEATS_OF_MANY = 200, ROWS = 600, TRANSFORMER_ROWS = 354 };

static const struct {
    const char *estimator, *goal;
} measured[] = {
    {"horus", "median < 200"},
    {"graph", "median < 1000"},
#if HAVE_GPUMEMNET
    {"gpumemnet-mlp", "median < 1000"},
    {"gpumemnet-transformer", "median < 1000"},
#endif
};
enum { MEASURED = ARRAY_SIZE(measured) };

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

/* Times in *ret_took, sorted; the answer is the most memory of them, in KiB. */
static double repeat(
    const char *estimator, const char *text, size_t size, double *ret_took, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        heap_forget();
        double before = bench_now_us();
        estimate(estimator, text, size);
        ret_took[i] = bench_now_us() - before;
        most = (double)heap_most() > most ? (double)heap_most() : most;
    }
    bench_sort(ret_took, n);
    return most / 1024;
}

static void measure(const char *name, const char *text, size_t size)
{
    static double took[REPEATS];
    char what[512];
    for (size_t m = 0; m < MEASURED; m++) {
        double most = repeat(measured[m].estimator, text, size, took, REPEATS);
        snprintf(
            what, sizeof what, "parse and %s: %s, %zu bytes", measured[m].estimator, name, size);
        bench_row(what, "us", measured[m].goal, took, REPEATS);
        snprintf(what, sizeof what, "memory for %s: %s", measured[m].estimator, name);
        bench_row(what, "KiB", "median < 1024", &most, 1);
    }
}

static char *read_whole(const char *path, size_t *ret_size)
{
    char *text;
    struct fault fault = {""};
    if (file_read(path, MODEL_SIZE_MAX, &fault, &text, ret_size) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
    return text;
}

static const char *leaf_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void measure_file(const char *path)
{
    size_t size;
    char *text = read_whole(path, &size);
    measure(leaf_of(path), text, size);
    free(text);
}

static void measure_made_up(void)
{
    static char text[ROWS * 80];
    size_t n = 0;
    for (int i = 1; i <= ROWS; i++) {
        const char *type = i % 3 == 0 ? "ReLU" : i % 3 == 1 ? "Conv2d" : "BatchNorm2d";
        n += (size_t)snprintf(
            text + n, sizeof text - n, "%20s-%-4d [32, 256, 14, 14] %15s\n", type, i, "590,080");
    }
    measure("torchsummary of 600 rows", text, n);
}

/* As many layers as the longest Transformer of data/memory has. */
static void measure_transformer(void)
{
    static char text[TRANSFORMER_ROWS * 80];
    static const char *const rows[] = {"LayerNorm-%d [-1, 128, 64] 128\n",
        "Linear-%d [-1, 128, 256] 16,640\n", "Linear-%d [-1, 128, 64] 16,448\n"};
    size_t n = (size_t)snprintf(text, sizeof text, "Embedding-1 [-1, 128, 64] 640,000\n");
    for (int i = 2; i <= TRANSFORMER_ROWS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, rows[i % 3], i);
    measure("transformer of 354 layers", text, n);
}

/* ---- an export with kept answers ---- */

/* As many convolutions as ResNet-50 has, of HEIGHTS shapes. */
enum { CONVS = 53, HEIGHTS = 20, EXPORT_SIZE = 128 << 10, QUESTIONS_MAX = 512 };
enum { BACKWARD = CONVS + 2, TICKS = BACKWARD + 3 * CONVS + 4 };

static int height_of(int conv)
{
    return 56 - conv % HEIGHTS;
}

/* Returns the tick at which the backward pass of a convolution begins: the last comes first. */
static int backward_of(int conv)
{
    return BACKWARD + 3 * (CONVS - 1 - conv);
}

static size_t write_conv(char *text, size_t size, int conv, const char *phase, int tick)
{
    return (size_t)snprintf(text, size,
        "%s{\"tick\":%d,\"phase\":\"%s\",\"batch\":[0,1],\"input\":[64,%d,56],"
        "\"weight\":[64,64,3,3],\"output\":[64,%d,56],\"stride\":[1,1],\"padding\":[1,1],"
        "\"dilation\":[1,1],\"groups\":1,\"dtype\":\"float32\"}",
        tick == 1 ? "" : ",", tick, phase, height_of(conv), height_of(conv));
}

/* A chain: each map is kept for the backward pass, each gradient until the next one is there. */
static size_t write_export(char text[EXPORT_SIZE])
{
    size_t n = (size_t)snprintf(text, EXPORT_SIZE,
        "{\"colloc_export\":1,\"batch\":32,\"method\":\"script\","
        "\"optimizer\":{\"name\":\"sgd\"},"
        "\"precision\":\"fp32\",\"layers\":[{\"type\":\"Conv2d\",\"depth\":0,\"leaf\":true,"
        "\"parameters\":1953792,\"shape\":[64,56,56],\"calls\":1}],\"ticks\":%d,"
        "\"tensors\":[[7815168,0,0,-1,0]",
        TICKS);
    for (int i = 0; i < CONVS; i++)
        n += (size_t)snprintf(text + n, EXPORT_SIZE - n, ",[0,%d,%d,%d,2]",
            64 * height_of(i) * 56 * 4, 1 + i, backward_of(i) + 2);
    for (int i = CONVS - 1; i >= 0; i--)
        n += (size_t)snprintf(text + n, EXPORT_SIZE - n, ",[0,%d,%d,%d,3]",
            64 * height_of(i) * 56 * 4, backward_of(i), backward_of(i) + 4);
    n += (size_t)snprintf(text + n, EXPORT_SIZE - n, "],\"convs\":[");
    for (int i = 0; i < CONVS; i++)
        n += write_conv(text + n, EXPORT_SIZE - n, i, "forward", 1 + i);
    for (int i = CONVS - 1; i >= 0; i--)
        n += write_conv(text + n, EXPORT_SIZE - n, i, "backward", backward_of(i));
    return n + (size_t)snprintf(text + n, EXPORT_SIZE - n, "]}");
}

static void answer_all(const struct estimate_request *request, struct kernel_answers *answers)
{
    static struct conv_question questions[QUESTIONS_MAX];
    size_t n = known_kernels_missing(request, QUESTIONS_MAX, questions);
    for (size_t i = 0; i < n; i++)
        if (kernel_answers_put(answers, &questions[i], (int64_t)(i + 1) << 20) < 0)
            exit(1);
}

static void estimate_or_exit(const struct estimate_request *request)
{
    struct estimate e;
    struct fault fault = {""};
    if (estimate_run("graph", request, &fault, &e) == 0 && e.evidence == EVIDENCE_KERNELS)
        return;
    fprintf(stderr, "not estimated by kept answers: %s\n", fault.text);
    exit(1);
}

static void measure_kept_answers(void)
{
    static char text[EXPORT_SIZE];
    static double took[REPEATS_OF_MANY];
    struct kernel_answers answers = {.origin = {"NVIDIA H200", "580.1", 91900}};
    struct export *export;
    struct fault fault = {""};
    if (export_parse(text, write_export(text), &fault, &export) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
    struct estimate_request request = {.model = export->model,
        .export = export,
        .batch = 32,
        .gpu_kind = "NVIDIA H200",
        .kernels = &answers};
    answer_all(&request, &answers);
    for (size_t i = 0; i < REPEATS_OF_MANY; i++) {
        double before = bench_now_us();
        estimate_or_exit(&request);
        took[i] = bench_now_us() - before;
    }
    bench_sort(took, REPEATS_OF_MANY);
    bench_row("estimate with cuDNN's kept answers: export of 53 convolutions", "us",
        "median < 1000", took, REPEATS_OF_MANY);
    kernel_answers_clear(&answers);
    export_destroy(export);
}

/* The slowest of them, and the one that takes most memory. */
static void measure_worst(char *const *paths, size_t n, size_t m)
{
    static double took[REPEATS_OF_MANY], slowest[REPEATS_OF_MANY];
    double most = 0;
    char what[512];
    slowest[REPEATS_OF_MANY / 2] = 0;
    for (size_t i = 0; i < n; i++) {
        size_t size;
        char *text = read_whole(paths[i], &size);
        double memory = repeat(measured[m].estimator, text, size, took, REPEATS_OF_MANY);
        if (took[REPEATS_OF_MANY / 2] > slowest[REPEATS_OF_MANY / 2])
            memcpy(slowest, took, sizeof took);
        most = memory > most ? memory : most;
        free(text);
    }
    snprintf(what, sizeof what, "parse and %s: slowest of %zu summaries", measured[m].estimator, n);
    bench_row(what, "us", measured[m].goal, slowest, REPEATS_OF_MANY);
    snprintf(what, sizeof what, "memory for %s: most of %zu summaries", measured[m].estimator, n);
    bench_row(what, "KiB", "median < 1024", &most, 1);
}

/* The reference's own summaries, when COLLOC_EVAL_DATA has them. */
static void measure_folder(const char *folder)
{
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/carma/models/*", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t m = 0; m < MEASURED; m++)
        measure_worst(found.gl_pathv, found.gl_pathc, m);
    globfree(&found);
}

int main(int argc, char **argv)
{
    const char *evaluation = getenv("COLLOC_EVAL_DATA");
    for (int i = 1; i < argc; i++)
        measure_file(argv[i]);
    if (argc < 2) {
        measure_kept_answers();
        measure_made_up();
        measure_transformer();
    }
    if (argc < 2 && evaluation)
        measure_folder(evaluation);
    return 0;
}
