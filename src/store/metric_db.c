/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database of metrics over time. One table holds all levels. A row of level 0 has the samples
 * that one series took in one batch, a row of a coarser level a block of buckets; all are keyed by
 * level, start and series, so that what is written, thinned and removed together lies together. All
 * rows of a batch have the same start, so the reader of one series tries one row of each batch,
 * however many series there are:
 *
 *     level 0   start 12:00:05   series 1, 2, 3 ...     a few seconds of samples
 *     level 1   start 12:00:00   series 1, 2, 3 ...     10 minutes in buckets of 10 s
 *     level 2   start 12:00:00   series 1, 2, 3 ...     an hour in buckets of 1 min
 *
 * When a block is complete, it is made from the rows of the finer level, for all series in one
 * transaction that also notes how far that level is (table `done`). So nothing has to be rebuilt
 * after a crash: thinning goes on from there, and rows of the finer level stay until they are older
 * than that keeps.
 *
 * The file is not the event log: a damaged one is put aside, and commits do not wait for the disk
 * (synchronous = NORMAL).
 */
#include "store/metric_db.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "store/metric_bucket.h"
#include "store/private_file.h"
#include "store/store_private.h"

#define VERSION 1
#define LEVEL_EMPTY                                                                                \
    INT64_MAX /* a start after any time that is read: nothing comes from the level */
#define LATE_MS                                                                                    \
    15000 /* chosen: batches come every few seconds; a block waits so long for the last */

static const char schema[] =
    "CREATE TABLE series(id INTEGER PRIMARY KEY, task INTEGER NOT NULL, gpu TEXT NOT NULL,"
    "  first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL, label TEXT,"
    "  UNIQUE(task, gpu));"
    "CREATE INDEX series_of_gpu ON series(gpu, last_ms);"
    "CREATE TABLE rows(level INTEGER NOT NULL, start_ms INTEGER NOT NULL, series INTEGER NOT NULL,"
    "  data BLOB NOT NULL);"
    "CREATE UNIQUE INDEX row_at ON rows(level, start_ms, series);"
    "CREATE TABLE done(level INTEGER PRIMARY KEY, until_ms INTEGER NOT NULL);"
    "PRAGMA user_version = 1;";

/* Files of 0.3.0 and before lack the column. Those versions ignore it, so it is no new version. */
static const char add_label[] = "ALTER TABLE series ADD COLUMN label TEXT;";

enum query {
    FIND_SERIES,
    ADD_SERIES,
    EXTEND_SERIES,
    PUT_ROW,
    GET_ROW,
    NEXT_START,
    ROWS_OF_BLOCK,
    GET_DONE,
    SET_DONE,
    REMOVE_ROWS,
    REMOVE_SERIES,
    SERIES_OF_TASK,
    SERIES_OF_GPU,
    COARSEST,
    BEGIN_READ,
    END_READ,
    QUERIES
};

static const char *const queries[QUERIES] = {
    [FIND_SERIES] = "SELECT id FROM series WHERE task = ? AND gpu = ?",
    [ADD_SERIES] = "INSERT INTO series(task, gpu, first_ms, last_ms, label)"
                   "  VALUES(?, ?, ?, ?, ?)",
    [EXTEND_SERIES] = "UPDATE series SET first_ms = min(first_ms, ?2),"
                      "  last_ms = max(last_ms, ?3) WHERE id = ?1",
    [PUT_ROW] = "INSERT OR REPLACE INTO rows VALUES(?, ?, ?, ?)",
    [GET_ROW] = "SELECT data FROM rows WHERE level = ? AND start_ms = ? AND series = ?",
    [NEXT_START] =
        "SELECT start_ms FROM rows WHERE level = ? AND start_ms >= ? ORDER BY start_ms LIMIT 1",
    [ROWS_OF_BLOCK] = "SELECT start_ms, series FROM rows"
                      "  WHERE level = ? AND start_ms >= ? AND start_ms < ?"
                      "  ORDER BY series, start_ms",
    [GET_DONE] = "SELECT until_ms FROM done WHERE level = ?",
    [SET_DONE] = "INSERT OR REPLACE INTO done VALUES(?, ?)",
    [REMOVE_ROWS] = "DELETE FROM rows WHERE level = ? AND start_ms < ?",
    [REMOVE_SERIES] = "DELETE FROM series WHERE last_ms < ?",
    [SERIES_OF_TASK] = "SELECT id, task, gpu, first_ms, last_ms, label FROM series"
                       "  WHERE task = ?1 AND last_ms >= ?3 AND first_ms < ?4 AND ?2 IS NOT NULL"
                       "  ORDER BY id",
    [SERIES_OF_GPU] =
        "SELECT id, task, gpu, first_ms, last_ms, label FROM series"
        "  WHERE gpu = ?2 AND last_ms >= ?3 AND first_ms < ?4 AND ?1 = 0 ORDER BY task",
    [COARSEST] = "SELECT level, start_ms FROM rows"
                 "  WHERE level = (SELECT max(level) FROM rows) ORDER BY start_ms LIMIT 1",
    [BEGIN_READ] = "BEGIN",
    [END_READ] = "ROLLBACK", /* nothing was written; unlike COMMIT it ends every transaction */
};

struct metric_db {
    sqlite3 *sqlite;
    sqlite3_stmt *statements[QUERIES];
    struct metric_level levels[METRIC_LEVELS_MAX];
    size_t n_levels;
    char path[PATH_MAX];
};

/* ---- statements ---- */

static int set_fault(const struct metric_db *db, struct fault *fault)
{
    return fault_set(
        fault, statement_errno(db->sqlite), "%s: %s", db->path, sqlite3_errmsg(db->sqlite));
}

/* Returns 1 with a row, 0 without one, or -errno with a fault. */
static int step_statement(const struct metric_db *db, sqlite3_stmt *statement, struct fault *fault)
{
    int r = sqlite3_step(statement);
    return r == SQLITE_ROW ? 1 : r == SQLITE_DONE ? 0 : set_fault(db, fault);
}

/* Binds, for statement_bind's `types`, and steps once; the statement is not reset. */
static int start_query(
    struct metric_db *db, enum query query, struct fault *fault, int64_t a, int64_t b, int64_t c)
{
    sqlite3_stmt *statement = db->statements[query];
    int n = sqlite3_bind_parameter_count(statement);
    const int64_t values[] = {a, b, c};
    statement_reset(statement);
    for (int i = 0; i < n && i < 3; i++)
        sqlite3_bind_int64(statement, i + 1, values[i]);
    return step_statement(db, statement, fault);
}

/* A query of one number. Returns 1 with it, 0 without one, or -errno. */
static int get_number(struct metric_db *db, enum query query, int64_t a, int64_t b,
    struct fault *fault, int64_t *ret_number)
{
    int r = start_query(db, query, fault, a, b, 0);
    if (r > 0)
        *ret_number = sqlite3_column_int64(db->statements[query], 0);
    statement_reset(db->statements[query]);
    return r;
}

static int run_query(
    struct metric_db *db, enum query query, int64_t a, int64_t b, int64_t c, struct fault *fault)
{
    int r = start_query(db, query, fault, a, b, c);
    statement_reset(db->statements[query]);
    return r < 0 ? r : 0;
}

static int execute_sql(struct metric_db *db, const char *sql, struct fault *fault)
{
    return sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : set_fault(db, fault);
}

/* Commits, or rolls back what failed. Returns `r`, or what the commit met. */
static int end_transaction(struct metric_db *db, int r, struct fault *fault)
{
    if (r >= 0) {
        int committed = execute_sql(db, "COMMIT", fault);
        if (committed == 0)
            return r;
        r = committed;
    }
    sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
    return r;
}

/* ---- opening ---- */

static void close_file(struct metric_db *db)
{
    for (int i = 0; i < QUERIES; i++) {
        sqlite3_finalize(db->statements[i]);
        db->statements[i] = NULL;
    }
    sqlite3_close(db->sqlite);
    db->sqlite = NULL;
}

static int check_version(struct metric_db *db, struct fault *fault)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db->sqlite,
            "SELECT (SELECT user_version FROM pragma_user_version),"
            "  (SELECT count(*) FROM sqlite_master),"
            "  (SELECT count(*) FROM pragma_table_info('series') WHERE name = 'label')",
            -1, &statement, NULL) != SQLITE_OK)
        return set_fault(db, fault);
    int r = step_statement(db, statement, fault);
    int64_t version = r > 0 ? sqlite3_column_int64(statement, 0) : 0;
    int64_t tables = r > 0 ? sqlite3_column_int64(statement, 1) : 0;
    bool has_label = r > 0 && sqlite3_column_int64(statement, 2) > 0;
    sqlite3_finalize(statement);
    if (r < 0)
        return r;
    if (version == 0 && tables == 0)
        return execute_sql(db, schema, fault);
    if (version != VERSION)
        return fault_set(fault, EUCLEAN, "%s: version %d of the metrics, not %d", db->path,
            (int)version, VERSION);
    return has_label ? 0 : execute_sql(db, add_label, fault);
}

static int open_file(struct metric_db *db, struct fault *fault)
{
    int r = private_file_make(db->path, fault);
    if (r < 0)
        return r;
    if (sqlite3_open_v2(db->path, &db->sqlite,
            SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return set_fault(db, fault);
    r = execute_sql(db,
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -2048;"
        "PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 4194304",
        fault);
    if (r == 0)
        r = check_version(db, fault);
    for (int i = 0; i < QUERIES && r == 0; i++)
        if (sqlite3_prepare_v3(db->sqlite, queries[i], -1, SQLITE_PREPARE_PERSISTENT,
                &db->statements[i], NULL) != SQLITE_OK)
            r = set_fault(db, fault);
    return r;
}

/* Also the files beside it, which would otherwise be used with the new one. */
static int put_aside(const struct metric_db *db)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char from[PATH_MAX + 8], to[PATH_MAX + 24];
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        snprintf(from, sizeof from, "%s%s", db->path, suffixes[i]);
        snprintf(to, sizeof to, "%s.damaged%s", db->path, suffixes[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            return -errno;
    }
    return 0;
}

int metric_db_open(const char *path, const struct metric_level *levels, size_t n_levels,
    struct fault *fault, struct metric_db **ret_db)
{
    struct metric_db *db = calloc(1, sizeof *db);
    *ret_db = NULL;
    if (!db)
        return fault_set(fault, ENOMEM, "out of memory");
    snprintf(db->path, sizeof db->path, "%s", path);
    memcpy(db->levels, levels, n_levels * sizeof *levels);
    db->n_levels = n_levels;
    int r = open_file(db, fault);
    bool is_damaged = r == -EUCLEAN;
    if (is_damaged) {
        struct fault again;
        close_file(db);
        int moved = put_aside(db);
        r = moved < 0 ? moved : open_file(db, &again);
    }
    if (r < 0) {
        metric_db_close(db);
        return r;
    }
    *ret_db = db;
    return is_damaged ? METRIC_DB_REPLACED : 0;
}

void metric_db_close(struct metric_db *db)
{
    if (!db)
        return;
    close_file(db);
    free(db);
}

/* ---- writing ---- */

/* Finds the series or adds it. Returns 0, or -errno with a fault. */
static int find_series(struct metric_db *db, const struct metric_samples *samples,
    struct fault *fault, int64_t *ret_id)
{
    const struct metric_key *key = &samples->key;
    int64_t first_ms = samples->at_ms[0], last_ms = samples->at_ms[samples->count - 1];
    sqlite3_stmt *find = db->statements[FIND_SERIES], *add = db->statements[ADD_SERIES];
    statement_reset(find);
    statement_bind(find, "it", (int64_t)key->task, key->gpu);
    int r = step_statement(db, find, fault);
    *ret_id = r > 0 ? sqlite3_column_int64(find, 0) : 0;
    statement_reset(find);
    if (r != 0)
        return r < 0 ? r : run_query(db, EXTEND_SERIES, *ret_id, first_ms, last_ms, fault);
    statement_reset(add);
    statement_bind(add, "itiit", (int64_t)key->task, key->gpu, first_ms, last_ms, samples->label);
    r = step_statement(db, add, fault);
    statement_reset(add);
    *ret_id = sqlite3_last_insert_rowid(db->sqlite);
    return r;
}

static int put_row(struct metric_db *db, size_t level, int64_t start_ms, int64_t series,
    const struct metric_bytes *bytes, struct fault *fault)
{
    sqlite3_stmt *put = db->statements[PUT_ROW];
    statement_reset(put);
    statement_bind(put, "iiib", (int64_t)level, start_ms, series, bytes->data, bytes->size);
    int r = step_statement(db, put, fault);
    statement_reset(put);
    return r;
}

/* The time of the first sample of all series; INT64_MAX: there is none. */
static int64_t batch_start(const struct metric_samples *samples, size_t n_series)
{
    int64_t start_ms = INT64_MAX;
    for (size_t i = 0; i < n_series; i++)
        if (samples[i].count > 0 && samples[i].at_ms[0] < start_ms)
            start_ms = samples[i].at_ms[0];
    return start_ms;
}

static int write_samples(struct metric_db *db, const struct metric_samples *samples,
    int64_t start_ms, struct fault *fault)
{
    struct metric_bytes bytes = {0};
    int64_t series = 0;
    if (samples->count == 0)
        return 0;
    if (samples->at_ms[samples->count - 1] >= start_ms + METRIC_BATCH_MS)
        start_ms = samples->at_ms[0]; /* a reader would not search a row that began so early */
    int r = find_series(db, samples, fault, &series);
    if (r == 0 && metric_pack_samples(samples, start_ms, &bytes) < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        r = put_row(db, 0, start_ms, series, &bytes, fault);
    free(bytes.data);
    return r;
}

int metric_db_write(struct metric_db *db, const struct metric_samples *samples, size_t n_series,
    struct fault *fault)
{
    int64_t start_ms = batch_start(samples, n_series);
    int r = execute_sql(db, "BEGIN IMMEDIATE", fault);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n_series && r == 0; i++)
        r = write_samples(db, &samples[i], start_ms, fault);
    return end_transaction(db, r, fault);
}

/* ---- thinning ---- */

/* The block that is made: one series after the other. */
struct block {
    size_t level;
    int64_t start_ms, end_ms, bucket_ms;
    int64_t series;          /* whose buckets these are; 0: none yet */
    int n_values;            /* of them */
    struct bucket_sum *sums; /* METRIC_VALUES_MAX for each bucket */
};

static uint32_t count_buckets(const struct block *block)
{
    return (uint32_t)((block->end_ms - block->start_ms) / block->bucket_ms);
}

static struct bucket_sum *sums_of_bucket(const struct block *block, size_t bucket)
{
    return &block->sums[bucket * METRIC_VALUES_MAX];
}

static void begin_thinned(struct block *block, int64_t series)
{
    block->series = series;
    block->n_values = 0;
    memset(block->sums, 0, sizeof *block->sums * METRIC_VALUES_MAX * count_buckets(block));
}

static void add_row(struct block *block, struct metric_reader *reader)
{
    struct metric_value values[METRIC_VALUES_MAX];
    int64_t at_ms;
    if (reader->n_values > block->n_values)
        block->n_values = reader->n_values;
    while (metric_unpack(reader, &at_ms, values)) {
        if (at_ms < block->start_ms || at_ms >= block->end_ms)
            continue;
        struct bucket_sum *sums = sums_of_bucket(
            block, (size_t)((at_ms - block->start_ms) / block->bucket_ms));
        for (int i = 0; i < reader->n_values; i++)
            bucket_add(&sums[i], values[i]);
    }
}

static struct metric_reader reader_of(
    const struct metric_db *db, size_t level, int64_t start_ms, sqlite3_stmt *row, int column)
{
    return metric_reader_begin(sqlite3_column_blob(row, column),
        (size_t)sqlite3_column_bytes(row, column), start_ms,
        level == 0 ? 0 : db->levels[level].bucket_ms);
}

/* Packs the buckets that have a known value. Returns 0 or -ENOMEM. */
static int pack_series(const struct block *block, struct metric_bytes *bytes)
{
    struct metric_value values[METRIC_VALUES_MAX];
    for (uint32_t k = 0; k < count_buckets(block); k++) {
        bool is_known = false;
        for (int i = 0; i < block->n_values; i++) {
            const struct bucket_sum *sum = &sums_of_bucket(block, k)[i];
            values[i] = bucket_value(sum);
            is_known |= sum->count > 0;
        }
        if (is_known && metric_pack_bucket(bytes, k, values, block->n_values) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int write_thinned(struct metric_db *db, const struct block *block, struct fault *fault)
{
    struct metric_bytes bytes = {0};
    int r = block->series ? pack_series(block, &bytes) : 0;
    if (r < 0)
        fault_set(fault, ENOMEM, "out of memory");
    else if (bytes.size)
        r = put_row(db, block->level, block->start_ms, block->series, &bytes, fault);
    free(bytes.data);
    return r;
}

/* Adds a row of the finer level; the rows of a series follow one another. */
static int thin_row(struct metric_db *db, struct block *block, int64_t start_ms, int64_t series,
    struct fault *fault)
{
    size_t finer = block->level - 1;
    int r = 0;
    if (series != block->series) {
        r = write_thinned(db, block, fault);
        begin_thinned(block, series);
    }
    if (r == 0)
        r = start_query(db, GET_ROW, fault, (int64_t)finer, start_ms, series);
    if (r > 0) {
        struct metric_reader reader = reader_of(db, finer, start_ms, db->statements[GET_ROW], 0);
        add_row(block, &reader);
    }
    statement_reset(db->statements[GET_ROW]);
    return r < 0 ? r : 0;
}

static int thin_rows(struct metric_db *db, struct block *block, struct fault *fault)
{
    int64_t early_ms = block->level == 1 ? METRIC_BATCH_MS : 0;
    sqlite3_stmt *rows = db->statements[ROWS_OF_BLOCK];
    int r = start_query(db, ROWS_OF_BLOCK, fault, (int64_t)block->level - 1,
        block->start_ms - early_ms, block->end_ms);
    while (r > 0) {
        r = thin_row(
            db, block, sqlite3_column_int64(rows, 0), sqlite3_column_int64(rows, 1), fault);
        r = r < 0 ? r : step_statement(db, rows, fault);
    }
    statement_reset(rows);
    return r < 0 ? r : write_thinned(db, block, fault);
}

static int make_block(struct metric_db *db, struct block *block, struct fault *fault)
{
    block->sums = calloc((size_t)count_buckets(block) * METRIC_VALUES_MAX, sizeof *block->sums);
    if (!block->sums)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = execute_sql(db, "BEGIN IMMEDIATE", fault);
    if (r == 0) {
        r = thin_rows(db, block, fault);
        if (r == 0)
            r = run_query(db, SET_DONE, (int64_t)block->level, block->end_ms, 0, fault);
        r = end_transaction(db, r, fault);
    }
    free(block->sums);
    return r;
}

/* The first block of a level that has data and is not made. Returns 1, 0: none; or -errno. */
static int next_block(
    struct metric_db *db, size_t level, struct fault *fault, struct block *ret_block)
{
    int64_t length_ms = db->levels[level].block_ms, done_ms = 0, first_ms;
    int64_t early_ms = level == 1 ? METRIC_BATCH_MS : 0;
    int r = get_number(db, GET_DONE, (int64_t)level, 0, fault, &done_ms);
    if (r >= 0)
        r = get_number(db, NEXT_START, (int64_t)level - 1, done_ms - early_ms, fault, &first_ms);
    if (r <= 0)
        return r;
    int64_t start_ms = first_ms - first_ms % length_ms;
    start_ms = start_ms < done_ms ? done_ms : start_ms;
    *ret_block = (struct block){.level = level,
        .start_ms = start_ms,
        .end_ms = start_ms + length_ms,
        .bucket_ms = db->levels[level].bucket_ms};
    return 1;
}

/* Tests whether the finer level has all the data that the block is made from. Returns 1, 0, or
 * -errno. */
static int is_complete(
    struct metric_db *db, const struct block *block, int64_t now_ms, struct fault *fault)
{
    int64_t finer_ms = now_ms - LATE_MS;
    if (block->level > 1) {
        finer_ms = 0;
        int r = get_number(db, GET_DONE, (int64_t)block->level - 1, 0, fault, &finer_ms);
        if (r < 0)
            return r;
    }
    return finer_ms >= block->end_ms;
}

int metric_db_thin(struct metric_db *db, int64_t now_ms, struct fault *fault)
{
    for (size_t level = 1; level < db->n_levels; level++) {
        struct block block;
        int r = next_block(db, level, fault, &block);
        if (r > 0)
            r = is_complete(db, &block, now_ms, fault);
        if (r > 0)
            r = make_block(db, &block, fault);
        else if (r == 0)
            continue;
        return r < 0 ? r : METRIC_DB_MORE;
    }
    return 0;
}

/* ---- removing ---- */

int64_t metric_db_used_bytes(struct metric_db *db, struct fault *fault)
{
    sqlite3_stmt *statement;
    int64_t bytes = 0;
    if (sqlite3_prepare_v2(db->sqlite,
            "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count,"
            "  pragma_freelist_count, pragma_page_size",
            -1, &statement, NULL) != SQLITE_OK)
        return set_fault(db, fault);
    int r = step_statement(db, statement, fault);
    if (r > 0)
        bytes = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return r < 0 ? r : bytes;
}

/* Removes the oldest block of the coarsest level. Returns 1, 0: there is nothing; or -errno. */
static int remove_oldest(struct metric_db *db, struct fault *fault)
{
    int r = start_query(db, COARSEST, fault, 0, 0, 0);
    int64_t level = r > 0 ? sqlite3_column_int64(db->statements[COARSEST], 0) : 0;
    int64_t start_ms = r > 0 ? sqlite3_column_int64(db->statements[COARSEST], 1) : 0;
    statement_reset(db->statements[COARSEST]);
    if (r <= 0)
        return r;
    int64_t length_ms = level ? db->levels[level].block_ms : METRIC_BATCH_MS;
    r = run_query(db, REMOVE_ROWS, level, start_ms + length_ms, 0, fault);
    return r < 0 ? r : 1;
}

int metric_db_prune(struct metric_db *db, int64_t now_ms, int64_t bytes_max, struct fault *fault)
{
    int64_t longest_ms = 0, used;
    int r = 0;
    for (size_t level = 0; level < db->n_levels && r == 0; level++) {
        int64_t keep_ms = db->levels[level].keep_ms;
        longest_ms = keep_ms > longest_ms ? keep_ms : longest_ms;
        r = run_query(db, REMOVE_ROWS, (int64_t)level,
            now_ms - keep_ms - db->levels[level].block_ms, 0, fault);
    }
    if (r == 0)
        r = run_query(db, REMOVE_SERIES, now_ms - longest_ms, 0, 0, fault);
    while (r >= 0 && (used = metric_db_used_bytes(db, fault)) > bytes_max)
        if ((r = remove_oldest(db, fault)) == 0)
            break;
    return r < 0 ? r : 0;
}

/* ---- reading ---- */

int metric_db_begin_read(struct metric_db *db, struct fault *fault)
{
    return run_query(db, BEGIN_READ, 0, 0, 0, fault);
}

void metric_db_end_read(struct metric_db *db)
{
    run_query(db, END_READ, 0, 0, 0, NULL);
}

static int read_series(
    struct metric_db *db, sqlite3_stmt *rows, struct fault *fault, struct metric_series **ret_list)
{
    CLEANUP_FREE struct metric_series *list = NULL;
    size_t count = 0, capacity = 0;
    int r;
    while ((r = step_statement(db, rows, fault)) > 0) {
        struct metric_series one = {.id = sqlite3_column_int64(rows, 0),
            .key.task = (uint64_t)sqlite3_column_int64(rows, 1),
            .first_ms = sqlite3_column_int64(rows, 3),
            .last_ms = sqlite3_column_int64(rows, 4)};
        const unsigned char *label = sqlite3_column_text(rows, 5);
        snprintf(one.key.gpu, sizeof one.key.gpu, "%s", sqlite3_column_text(rows, 2));
        snprintf(one.label, sizeof one.label, "%s", label ? (const char *)label : "");
        if (ARRAY_APPEND(list, count, capacity, one) < 0)
            return fault_set(fault, ENOMEM, "out of memory");
    }
    if (r < 0)
        return r;
    *ret_list = TAKE(list);
    return (int)count;
}

int metric_db_list(struct metric_db *db, uint64_t task, const char *gpu, int64_t since_ms,
    int64_t until_ms, struct fault *fault, struct metric_series **ret_list)
{
    sqlite3_stmt *rows = db->statements[task ? SERIES_OF_TASK : SERIES_OF_GPU];
    *ret_list = NULL;
    statement_reset(rows);
    statement_bind(rows, "itii", (int64_t)task, gpu ? gpu : "", since_ms, until_ms);
    int r = read_series(db, rows, fault, ret_list);
    statement_reset(rows);
    return r;
}

/* The bucket under way of metric_db_read. */
struct gathering {
    int64_t since_ms, until_ms, step_ms;
    int64_t at_ms; /* start of the bucket; -1: none yet */
    struct bucket_sum sums[METRIC_VALUES_MAX];
    metric_on_bucket *on_bucket;
    void *context;
};

static void flush_bucket(struct gathering *gathering)
{
    struct metric_value values[METRIC_VALUES_MAX];
    for (int i = 0; i < METRIC_VALUES_MAX; i++)
        values[i] = bucket_value(&gathering->sums[i]);
    if (gathering->at_ms >= 0)
        gathering->on_bucket(gathering->context, gathering->at_ms, values);
    memset(gathering->sums, 0, sizeof gathering->sums);
    gathering->at_ms = -1;
}

static void gather_sample(
    struct gathering *gathering, int64_t at_ms, const struct metric_value *values)
{
    int64_t start_ms = at_ms - at_ms % gathering->step_ms;
    if (at_ms < gathering->since_ms || at_ms >= gathering->until_ms)
        return;
    if (start_ms != gathering->at_ms)
        flush_bucket(gathering);
    gathering->at_ms = start_ms;
    for (int i = 0; i < METRIC_VALUES_MAX; i++)
        bucket_add(&gathering->sums[i], values[i]);
}

/* Reads one level between two times. */
static int read_level(struct metric_db *db, size_t level, int64_t series, int64_t since_ms,
    int64_t until_ms, struct gathering *gathering, struct fault *fault)
{
    int64_t length_ms = level ? db->levels[level].block_ms : METRIC_BATCH_MS, start_ms;
    int64_t from_ms = since_ms - length_ms + 1;
    struct metric_value values[METRIC_VALUES_MAX];
    int r;
    while ((r = get_number(db, NEXT_START, (int64_t)level, from_ms, fault, &start_ms)) > 0 &&
           start_ms < until_ms) {
        sqlite3_stmt *row = db->statements[GET_ROW];
        r = start_query(db, GET_ROW, fault, (int64_t)level, start_ms, series);
        if (r > 0) {
            int64_t at_ms;
            struct metric_reader reader = reader_of(db, level, start_ms, row, 0);
            while (metric_unpack(&reader, &at_ms, values))
                if (at_ms >= since_ms && at_ms < until_ms)
                    gather_sample(gathering, at_ms, values);
        }
        statement_reset(row);
        if (r < 0)
            return r;
        from_ms = start_ms + 1;
    }
    return r < 0 ? r : 0;
}

/* From when on a level has data; LEVEL_EMPTY: it has none. Returns 0, or -errno with a fault. */
static int level_begin(
    struct metric_db *db, size_t level, struct fault *fault, int64_t *ret_begin_ms)
{
    *ret_begin_ms = LEVEL_EMPTY;
    int r = get_number(db, NEXT_START, (int64_t)level, INT64_MIN, fault, ret_begin_ms);
    return r < 0 ? r : 0;
}

/* A level coarser than 0 that is fine enough for the step is preferred up to where it is made. */
static int finest_needed(const struct metric_db *db, int64_t step_ms)
{
    size_t level = 0;
    while (level + 1 < db->n_levels && db->levels[level + 1].bucket_ms <= step_ms)
        level++;
    return (int)level;
}

/* Narrows the times to those in which the series can have samples, in whole buckets. */
static void clip_to_series(const struct metric_db *db, const struct metric_series *series,
    int64_t *since_ms, int64_t *until_ms)
{
    int64_t bucket_ms = db->levels[db->n_levels - 1].bucket_ms;
    int64_t first_ms = series->first_ms - (bucket_ms ? series->first_ms % bucket_ms : 0);
    *since_ms = first_ms > *since_ms ? first_ms : *since_ms;
    *until_ms = series->last_ms < *until_ms ? series->last_ms + 1 : *until_ms;
}

/*
 * Divides the time among the levels and reads the oldest part first. A level serves from the first
 * time it has to where a preferred one takes over:
 *
 *     level 2  |---------------|
 *     level 1                  |-----------------|
 *     level 0                                    |-------|      (what level 1 does not have yet)
 */
int metric_db_read(struct metric_db *db, const struct metric_series *series, int64_t since_ms,
    int64_t until_ms, int64_t step_ms, metric_on_bucket *on_bucket, void *context,
    struct fault *fault)
{
    clip_to_series(db, series, &since_ms, &until_ms);
    struct gathering gathering = {.since_ms = since_ms,
        .until_ms = until_ms,
        .step_ms = step_ms < 1 ? 1 : step_ms,
        .at_ms = -1,
        .on_bucket = on_bucket,
        .context = context};
    int64_t begin[METRIC_LEVELS_MAX], end[METRIC_LEVELS_MAX];
    int finest = finest_needed(db, gathering.step_ms), r = 0;
    for (int level = 0; level < (int)db->n_levels && r == 0; level++) {
        end[level] = until_ms;
        r = level_begin(db, (size_t)level, fault, &begin[level]);
        if (r == 0 && level > 0 && level <= finest) {
            int64_t done_ms = 0;
            r = get_number(db, GET_DONE, level, 0, fault, &done_ms);
            end[level] = done_ms < until_ms ? done_ms : until_ms;
            r = r < 0 ? r : 0;
        }
    }
    /* Above the finest needed, each level ends where the finer one begins; below it, each begins
     * where the coarser one ends. */
    for (int level = finest + 1; level < (int)db->n_levels; level++) {
        int64_t taken = begin[level - 1] < end[level] ? begin[level - 1] : end[level];
        end[level] = taken;
        begin[level] = begin[level] < taken ? begin[level] : taken;
    }
    for (int level = finest - 1; level >= 0; level--)
        begin[level] = begin[level] > end[level + 1] ? begin[level] : end[level + 1];
    for (int level = (int)db->n_levels - 1; level >= 0 && r == 0; level--) {
        int64_t from = begin[level] > since_ms ? begin[level] : since_ms;
        if (from < end[level])
            r = read_level(db, (size_t)level, series->id, from, end[level], &gathering, fault);
    }
    if (r == 0)
        flush_bucket(&gathering);
    return r;
}
