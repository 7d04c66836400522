/* SPDX-License-Identifier: Apache-2.0 */
/* The `File` and `Params` of a row of radT's tables: names, and commands of trainings. */
#ifndef COLLOC_BENCH_RADT_PARAMS_H
#define COLLOC_BENCH_RADT_PARAMS_H

#include <stdbool.h>

#include "bench/experiment.h"

/* The options in Params that names and translations use. */
struct radt_params {
    const char *text; /* borrowed */
    char model[64], folder[1024], batch[16];
    const char *data_set; /* the last folder of the path in `folder` */
    bool has_bad_batch;   /* --batch-size is no whole number; `batch` is "" */
};

/* Parses the options; text: NULL counts as "". A --model that is no name is not kept. */
void radt_params_parse(const char *text, struct radt_params *ret_params);

/* Returns "resnet26 cifar10 b128", or the script's name when there is no --model; the caller frees
 * it. NULL without memory. */
char *radt_params_name(const struct radt_params *params, const char *script);

/* Makes the command of colloc's train.py for the training that the row's script would run. Returns
 * an argv that training_command_free frees, or NULL without memory. */
char **radt_params_translate(
    const struct radt_params *params, const struct experiment_defaults *defaults);

#endif
