/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of trainings, and building experiments: what both forms of the table share. */
#ifndef COLLOC_BENCH_WORDS_H
#define COLLOC_BENCH_WORDS_H

#include <stdint.h>

#include "bench/experiment.h"

#define WORKLOAD_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/"

struct training_options { /* 0: what train.py takes by itself */
    int64_t epochs, steps, batch, side, classes;
};

/* "python3 .../train.py NAME --epochs ...". NULL when out of memory. */
char **words_of_training(const struct experiment_defaults *defaults, const char *name,
    const struct training_options *options);

/* `first` and `second` and then the words of `text`, parted by blanks. NULL when out of memory. */
char **words_of_text(const char *first, const char *second, const char *text);

void words_free(char **words);

/* Fills in sharing and profile. 0 or -EINVAL. */
int bench_sharing_parse(const char *text, struct bench_group *group);

void bench_group_fini(struct bench_group *group);

/* One more; NULL when out of memory. What was returned before may have moved. */
struct bench_group *experiment_add(struct experiment *experiment);
struct bench_task *bench_group_add(struct bench_group *group);

#endif
