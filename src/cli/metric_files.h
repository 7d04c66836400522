/* SPDX-License-Identifier: Apache-2.0 */
/* Files that grow while a training runs: TensorBoard's event files and MLflow's file store. */
#ifndef COLLOC_CLI_METRIC_FILES_H
#define COLLOC_CLI_METRIC_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "taskfile/metric_source.h"

/* A value that was found. */
struct metric_point {
    int64_t step;
    double value;
};

struct metric_file {
    char *path;
    off_t offset;  /* read so far */
    bool is_other; /* of another task, or no such file: it is not read */
};

/* Start with the first members and else zero. */
struct metric_files {
    const char *folder, *metric;
    enum metric_source_kind kind; /* METRIC_TENSORBOARD or METRIC_MLFLOW */
    double since_s;               /* values from before count for an earlier attempt */
    const char *tag; /* of MLflow: only runs with this text as their tag colloc.task; NULL: also
                        runs without that tag */
    void *context;
    void (*on_point)(void *context, const struct metric_point *point);
    struct metric_file *files;
    size_t n, capacity;
};

/* Finds new files, and reports what was added to each since the last call, in the order of the
 * file. What cannot be read is left out, and tried again. */
void metric_files_poll(struct metric_files *files);

void metric_files_fini(struct metric_files *files);

#endif
