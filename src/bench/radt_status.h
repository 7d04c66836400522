/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the outcome of tasks into the Status and Run columns of their table, as radT does:
 *
 *     FINISHED resnet26 cifar10 b128 (0_A_MPS)      Status: how it ended, its name, its letter
 *     3-1.0                                         Run: the name of its log in the results, or
 *                                                   the id of its run of MLflow
 *
 * The letter is radT's: the task's devices; _A, _B, ... where several tasks of the workload have
 * the same; and the way of sharing, if any.
 */
#ifndef COLLOC_BENCH_RADT_STATUS_H
#define COLLOC_BENCH_RADT_STATUS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/fault.h"
#include "bench/trainer_group.h"

/* A table as it was last read or written. */
struct radt_table {
    char *path; /* without symbolic links */
    char *text;
    size_t size;
    mode_t mode;
};

/*
 * Opens the table for writing: call it before the experiment is read. ret_table: ended by
 * radt_table_fini, in any case.
 *
 * Returns 0; or -errno with a fault, when the table cannot be written back: it is standard input,
 * not comma-separated, without these columns, or not the caller's to write.
 */
int radt_table_open(const char *path, struct fault *fault, struct radt_table *ret_table);
void radt_table_fini(struct radt_table *table);

/*
 * Writes the outcome of a group's tasks. All other lines stay as they are, byte for byte.
 *
 * number, repeat: of the group, as in the names of its files
 * run_ids:        of each task, "" where it has none; NULL: none has one
 *
 * Returns 0; -ESTALE with a fault when another program has changed the table since (it stays as it
 * is), or another -errno with a fault.
 */
int radt_table_write(struct radt_table *table, const struct bench_group *group, size_t number,
    int repeat, const struct training_result *results, char (*run_ids)[BENCH_RUN_ID_SIZE],
    struct fault *fault);

/* Writes the letter of task `i`: "0", "0_B", "2_A_3g.20gb". */
void radt_letter(const struct bench_group *group, int i, char *buffer, size_t size);

#endif
