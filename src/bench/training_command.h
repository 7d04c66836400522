/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of trainings. */
#ifndef COLLOC_BENCH_TRAINING_COMMAND_H
#define COLLOC_BENCH_TRAINING_COMMAND_H

#include <stdint.h>

#include "bench/experiment.h"

#define WORKLOAD_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/"

struct training_options { /* 0: train.py's default */
    int64_t epochs, steps, batch, side, classes;
};

/* Makes "python3 .../train.py NAME --epochs ...". Returns an argv that training_command_free frees,
 * or NULL without memory. */
char **training_command_make(const struct experiment_defaults *defaults, const char *name,
    const struct training_options *options);

/* Makes an argv of `first`, `second` and the words of `text`, separated by blanks. Returns NULL
 * without memory. */
char **training_command_split(const char *first, const char *second, const char *text);

/* Takes NULL. */
void training_command_free(char **argv);

#endif
