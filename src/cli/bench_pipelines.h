/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc bench` of pipelines: the command line of python/colloc_pipeline. */
#ifndef COLLOC_CLI_BENCH_PIPELINES_H
#define COLLOC_CLI_BENCH_PIPELINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the user gave; NULL or 0: the default. All are borrowed. */
struct pipeline_bench {
    const char *output, *sharing, *gpu, *python;
    int64_t repeats, requests, rate, matrix_us, limit_us;
    bool pretend, has_report;
    const char *const *files;
    size_t n_files;
};

/* Is it the file of a pipeline, by its name? */
bool bench_is_pipeline(const char *path);

/* Becomes the Python program that runs the pipelines. Returns an exit code only if that fails,
 * after printing why. */
int bench_run_pipelines(const struct pipeline_bench *bench);

#endif
