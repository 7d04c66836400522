/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measurements of a bench so far, in a folder:
 *
 *     groups.csv      a line per group and repeat
 *     tasks.csv       a line per training and epoch
 *     looks/N-R.csv   samples of the GPU for group N, repeat R, as `colloc record` prints them
 *     logs/N-R.I      stderr of task I; logs/N-R.I.out: its stdout
 *     profiles/N-R.I  what its profiler wrote, with the profiler's ending
 *
 * A line of groups.csv is written last: it says that the group's other lines and files are
 * complete. So a bench that was interrupted continues with the first group that has none. Only
 * groups with a result are in the journal: see enum bench_answer.
 */
#ifndef COLLOC_BENCH_JOURNAL_H
#define COLLOC_BENCH_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"
#include "bench/trainer_group.h"

struct journal {
    char *folder;
    char **done; /* "NAME\trepeat" of each group in the journal */
    size_t n_done, done_capacity;
};

/* Creates the folder, or reads the journal in it. Returns 0, or -errno with a fault. Ended by
 * journal_fini either way. */
int journal_open(struct journal *journal, const char *folder, struct fault *fault);
void journal_fini(struct journal *journal);

/*
 * Removes groups with failed trainings from the journal in the folder, so that they run again. Call
 * it before journal_open. A folder without a journal is left as it is.
 *
 * Returns 0, or -errno with a fault.
 */
int journal_drop_failed(const char *folder, struct fault *fault);

/* Is the repeat of the group in the journal? */
bool journal_has(const struct journal *journal, const struct bench_group *group, int repeat);

/*
 * Makes the path of a group's file without its ending: "FOLDER/looks/3-1".
 *
 * kind:   "looks", "logs" or "profiles"
 * number: the group's position in the table, from 1
 * path:   `size` bytes, PATH_MAX is enough
 */
void journal_path(const struct journal *journal, const char *kind, size_t number, int repeat,
    char *path, size_t size);

struct group_result {
    double began_unix_s, total_s; /* from the start of the first task to the end of the last */
    double energy_j;              /* of the group's GPUs in that time */
    const char *gpu_name;
    const char *way; /* "processes" or "daemon" */
    const struct training_result *tasks;
};

/* Adds a group. Returns 0 when its lines are durable, or -errno with a fault. */
int journal_add(struct journal *journal, const struct bench_group *group, size_t number, int repeat,
    const struct group_result *result, struct fault *fault);

#endif
