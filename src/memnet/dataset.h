/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training tasks whose memory was measured: what the networks learn from and are held against. A
 * folder holds
 *
 *     runs.csv       a line per run: id, kind (mlp, cnn, transformer: drawn at random; real:
 * somebody's network), family, model_key, batch, optimizer, precision, status (ok, oom, ...),
 * driver_mib (as nvidia-smi shows it for the process); other columns are not looked at layers.jsonl
 * their networks (networks.h)
 *
 * either of them packed as .xz. A run that failed says nothing of what it would have taken and is
 * left out.
 */
#ifndef COLLOC_MEMNET_DATASET_H
#define COLLOC_MEMNET_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "estimator/gpumemnet/gpumemnet_features.h"

/* Of a real network, which none is trained on, the part says nothing. */
enum dataset_part { PART_TRAINING, PART_VALIDATION, PART_TEST, PARTS };

struct task_row {
    char id[48], family[48], network[64];
    enum optimizer optimizer;
    enum precision precision;
    bool real;
    enum dataset_part part;
    int64_t batch;
    double bytes;
    struct gpumemnet_features features; /* its family is the set that the row belongs to */
};

struct dataset {
    struct task_row *rows;
    size_t n;
    size_t n_failed;  /* left out: the run failed */
    size_t n_strange; /* left out: nothing can be said of such a network, or its layers are not
                         known */
};

/* 0, or a fault that names the file and the line. Ended by dataset_fini either way. */
int dataset_read(const char *folder, struct fault *fault, struct dataset *ret_dataset);

/* The same from texts in memory (runs ends in NUL). */
int dataset_parse(const char *runs, const char *layers, size_t layers_size, struct fault *fault,
    struct dataset *ret_dataset);
void dataset_fini(struct dataset *dataset);

#endif
