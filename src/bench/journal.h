/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a bench has measured so far, in a folder: groups.csv (a line per group and repeat, written
 * last: it says that the rest is there), tasks.csv (a line per training), looks/N-R.csv (the GPU
 * over time, as `colloc record` has it), logs/N-R.I (what trainings said on stderr). Taken up again
 * where it was broken off. Only groups that have a result are in it: see enum bench_answer.
 */
#ifndef COLLOC_BENCH_JOURNAL_H
#define COLLOC_BENCH_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"
#include "bench/crew.h"

struct journal {
    char *folder;
    char **done; /* "NAME\trepeat" of each group that is there */
    size_t n_done;
};

/* Makes the folder, or reads what is in it. 0 or a fault. Ended by journal_fini either way. */
int journal_open(struct journal *journal, const char *folder, struct fault *fault);
void journal_fini(struct journal *journal);

/*
 * Takes the groups whose trainings failed out of the journal in the folder, so that they are run
 * again: before it is opened. Nothing happens where there is none. 0 or a fault.
 */
int journal_drop_failed(const char *folder, struct fault *fault);

bool journal_has(const struct journal *journal, const struct bench_group *group, int repeat);

/* The names of files of a group, without an ending: "FOLDER/looks/3-1". `size` of PATH_MAX will do.
 */
void journal_path(const struct journal *journal, const char *kind, size_t number, int repeat,
    char *path, size_t size);

struct group_result {
    double began_unix_s, total_s,
        energy_j; /* from the start of the first to the end of the last; energy of the GPU */
    const char *gpu_name;
    const char *way; /* "processes" or "daemon" */
    const struct crew_result *tasks;
};

/* Durable when it returns 0; or a fault. `number` is the group's place in the table, from 1. */
int journal_add(struct journal *journal, const struct bench_group *group, size_t number, int repeat,
    const struct group_result *result, struct fault *fault);

#endif
