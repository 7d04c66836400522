/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training tasks with measured memory: the data that the networks are trained on and compared with.
 * A folder holds two files, plain or packed as .xz:
 *
 *     runs.csv       a line per run: id, kind (mlp, cnn, transformer: a random network; real: a
 *                    published one), family, split, model, batch, optimizer, precision, status (ok,
 *                    oom, ...), driver_mib (nvidia-smi's memory of the process); other columns are
 *                    ignored
 *     layers.jsonl   the networks (networks.h)
 *
 * Failed runs are left out: their memory requirement is unknown.
 */
#ifndef COLLOC_MEMNET_DATASET_H
#define COLLOC_MEMNET_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "estimator/gpumemnet/gpumemnet_features.h"

/* No network is trained on rows of real (published) networks, whatever their part. */
enum dataset_part { PART_TRAINING, PART_VALIDATION, PART_TEST, PARTS };

struct task_row {
    char id[48], family[48], network[64];
    enum optimizer optimizer;
    enum precision precision;
    bool real;
    enum dataset_part part;
    int64_t batch;
    double bytes;
    struct gpumemnet_features features; /* its `family` decides which networks train on the row */
};

struct dataset {
    struct task_row *rows;
    size_t n, capacity;
    size_t n_failed;      /* left out: the run failed */
    size_t n_unsupported; /* left out: the features of such a network cannot be computed, or its
                           * layers are not in the file */
};

/* Reads a data set. Returns 0, or -errno with a fault that names file and line. Ended by
 * dataset_fini either way. */
int dataset_read(const char *folder, struct fault *fault, struct dataset *ret_dataset);

/* The same from texts in memory; `runs` ends in NUL. */
int dataset_parse(const char *runs, const char *layers, size_t layers_size, struct fault *fault,
    struct dataset *ret_dataset);
void dataset_fini(struct dataset *dataset);

#endif
