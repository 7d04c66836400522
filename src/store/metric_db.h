/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of GPUs and tasks over time, in an SQLite file beside the event log: as sampled for
 * recent times, thinned to the minimum, mean and maximum of longer and longer buckets for older
 * ones.
 *
 * Contract:
 * 1. A batch, a thinned block and a removal are one transaction each: after a crash the file has
 *    all of it or nothing. A power failure may cost the last seconds.
 * 2. Values are floats; NaN means unknown, and a bucket without a known value stays unknown.
 * 3. Nothing older than its level's `keep_ms` remains, and the file's data stays below the limit
 *    of metric_db_prune.
 * 4. A database is used by one thread at a time.
 */
#ifndef COLLOC_STORE_METRIC_DB_H
#define COLLOC_STORE_METRIC_DB_H

#include "base/fault.h"
#include "store/metric_value.h"

struct metric_db;

enum { METRIC_LEVELS_MAX = 4 };

/* One resolution. Level 0 has the samples themselves: its steps are not used. */
struct metric_level {
    int64_t bucket_ms; /* length of a bucket */
    int64_t block_ms;  /* buckets stored in one row; a multiple of bucket_ms */
    int64_t keep_ms;   /* older ones are removed */
};

/*
 * Opens a database or creates it. A damaged one, or one of another version, is renamed to
 * PATH.damaged and a new one is begun: its loss must not stop the caller.
 *
 * levels: `n_levels` of them, the finest first; copied. Each bucket_ms and block_ms is a multiple
 *         of the level before.
 * ret_db: for metric_db_close.
 *
 * Returns 0, METRIC_DB_REPLACED (a fault says what was wrong with the old one), or -errno with a
 * fault.
 */
enum { METRIC_DB_REPLACED = 1 };
int metric_db_open(const char *path, const struct metric_level *levels, size_t n_levels,
    struct fault *fault, struct metric_db **ret_db);

/* NULL is allowed. */
void metric_db_close(struct metric_db *db);

/* Stores samples of several series. Returns 0, or -errno with a fault: nothing was stored. */
int metric_db_write(struct metric_db *db, const struct metric_samples *samples, size_t n_series,
    struct fault *fault);

/*
 * Thins one block of one level that is complete.
 *
 * now_ms: wall clock.
 *
 * Returns 0: there was none; METRIC_DB_MORE: one is done, there may be more; or -errno with a
 * fault.
 */
enum { METRIC_DB_MORE = 1 };
int metric_db_thin(struct metric_db *db, int64_t now_ms, struct fault *fault);

/*
 * Removes rows older than the time of their level and, while the data is larger than `bytes_max`,
 * the oldest block of the coarsest level that has any.
 *
 * Returns 0, or -errno with a fault.
 */
int metric_db_prune(struct metric_db *db, int64_t now_ms, int64_t bytes_max, struct fault *fault);

/* Bytes of the data in the file, without free pages; or -errno with a fault. */
int64_t metric_db_used_bytes(struct metric_db *db, struct fault *fault);

/* ---- reading ---- */

/*
 * Begins a read transaction: all reads until metric_db_end_read see the same state. Without one,
 * each query locks the file by itself, which for many series takes longer than reading them.
 *
 * Returns 0, or -errno with a fault: then there is none to end.
 */
int metric_db_begin_read(struct metric_db *db, struct fault *fault);
void metric_db_end_read(struct metric_db *db);

struct metric_series {
    int64_t id;
    struct metric_key key;
    char label[METRIC_LABEL_SIZE]; /* as it was stored first; "": by the task's id */
    int64_t first_ms, last_ms;     /* of its samples */
};

/*
 * Lists the series of a task (`task` not 0) or, with task 0, all that concern a GPU, which have
 * samples between two times.
 *
 * ret_list: for the caller to free; NULL when there are none.
 *
 * Returns how many, or -errno with a fault.
 */
int metric_db_list(struct metric_db *db, uint64_t task, const char *gpu, int64_t since_ms,
    int64_t until_ms, struct fault *fault, struct metric_series **ret_list);

/* Receives a bucket of length `step_ms` that begins at `at_ms`, in order. Values that the series
 * did not have are unknown. */
typedef void metric_on_bucket(
    void *context, int64_t at_ms, const struct metric_value values[METRIC_VALUES_MAX]);

/*
 * Reads a series between two times. Each time comes from the finest level that has it, where the
 * level's buckets are not needlessly fine for the step. Buckets without samples are left out.
 *
 * step_ms: length of a bucket, at least 1. Samples further apart than it stay alone in theirs.
 *
 * Returns 0, or -errno with a fault.
 */
int metric_db_read(struct metric_db *db, const struct metric_series *series, int64_t since_ms,
    int64_t until_ms, int64_t step_ms, metric_on_bucket *on_bucket, void *context,
    struct fault *fault);

#endif
