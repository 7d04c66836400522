/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQL statements that run more than once, prepared when the log is opened, and how a statement
 * is bound and run. This is the only place where errors of SQLite become -errno and a fault.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/store_private.h"

static const char *const texts[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ADD_EVENT] =
        "INSERT INTO events VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, row_sum(?1, ?2, ?3, ?4, ?5, ?6, ?7))",
    [ADD_LIVE] = "INSERT INTO live(task) VALUES(?)",
    [ADD_LIVE_RANGE] =
        "INSERT INTO live(task) WITH RECURSIVE ids(id) AS"
        "  (SELECT ?1 UNION ALL SELECT id + 1 FROM ids WHERE id < ?2) SELECT id FROM ids",
    [ADD_ARRAY] = "INSERT INTO arrays VALUES(?, ?, ?)",
    [IS_REPLAYED] =
        "SELECT EXISTS(SELECT 1 FROM live WHERE task = ?1) OR EXISTS(SELECT 1 FROM events WHERE task = ?1"
        "  AND seq >= ?2)",
    [FIRST_PLACED] = "SELECT coalesce(min(placed_seq), 9223372036854775807) FROM live",
    [EMPTY_ARRAY] = "SELECT id FROM (SELECT " STORE_ARRAY_OF " AS id) JOIN arrays USING(id)"
                    "  WHERE NOT EXISTS(SELECT 1 FROM live WHERE task BETWEEN first AND last)"
                    "  AND NOT EXISTS(SELECT 1 FROM ended WHERE task BETWEEN first AND last)",
    [DELETE_ARRAY] = "DELETE FROM arrays WHERE id = ?",
    [GET_ARRAY] = "SELECT first, last FROM arrays WHERE id = ?",
    [SET_PLACED] = "UPDATE live SET placed_seq = ? WHERE task = ?",
    [DELETE_LIVE] = "DELETE FROM live WHERE task = ?",
    [GET_EVENT] = "SELECT task, kind, time_us, wall_us, body, detail, sum IS " EVENT_SUM
                  " FROM events WHERE seq = ?",
    [REPLAY] =
        "SELECT seq FROM events WHERE task IN (SELECT 0 UNION SELECT task FROM live UNION"
        "  SELECT task FROM events WHERE seq >= (SELECT min(placed_seq) FROM live) UNION"
        "  SELECT id FROM arrays WHERE EXISTS(SELECT 1 FROM live WHERE task BETWEEN first AND last)"
        "  OR EXISTS(SELECT 1 FROM events WHERE task BETWEEN first AND last"
        "    AND seq >= (SELECT min(placed_seq) FROM live))) ORDER BY seq",
    [ALL_EVENTS] = "SELECT seq FROM events ORDER BY seq",
    [EVENTS_AFTER] = "SELECT seq FROM events WHERE seq > ? ORDER BY seq LIMIT ?",
    [CHANGED_TASKS] =
        "SELECT DISTINCT task FROM (SELECT task FROM events WHERE seq > ? AND task > 0) ORDER BY task LIMIT ?",
    [TASK_EVENTS] = "SELECT seq FROM events WHERE task IN (?1, " STORE_ARRAY_OF ") ORDER BY seq",
    [LAST] = "SELECT " STORE_LAST_TASK ", (SELECT time_us FROM events ORDER BY seq DESC LIMIT 1),"
             " (SELECT max(seq) FROM events)",
    [ADD_BLOB] = "INSERT INTO blobs(key, data) VALUES(?, ?) ON CONFLICT DO NOTHING",
    [ADD_BLOB_USE] =
        "INSERT INTO blob_uses(task, blob) SELECT ?, id FROM blobs WHERE key = ? ON CONFLICT DO NOTHING",
    [GET_BLOB] = "SELECT data FROM blobs WHERE key = ?",
    [ADD_ENDED] =
        "INSERT INTO ended(task, uid, state, submitted_wall_us, ended_wall_us, wait_us, exec_us, jct_us, oom_count, "
        "sum)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, row_sum(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9))",
    [ADD_RECORD] = "INSERT INTO records VALUES(?1, ?2, row_sum(?1, ?2))",
    [GET_RECORD] = "SELECT record, sum IS " RECORD_SUM " FROM records WHERE task = ?",
    [TOTALS] =
        "SELECT state, count(*), sum(wait_us), sum(exec_us), sum(jct_us), sum(oom_count), sum(oom_count > 0),"
        "  min(submitted_wall_us), max(ended_wall_us), max(seq)"
        "  FROM (SELECT * FROM ended WHERE seq > ?1 ORDER BY seq LIMIT ?2) GROUP BY state",
    [FIRST_SUBMITTED] = "SELECT submitted_wall_us FROM ended ORDER BY task LIMIT 1",
    [COUNT_ENDED] = "SELECT state, count(*) FROM ended WHERE task BETWEEN ?1 AND ?2 GROUP BY state",
    [OLDEST_ENDED] = "SELECT task FROM ended WHERE ended_wall_us < ? AND task < " STORE_LAST_TASK
                     " ORDER BY ended_wall_us LIMIT 1",
    [DELETE_EVENTS] = "DELETE FROM events WHERE task = ?",
    [DELETE_STALE] =
        "DELETE FROM events WHERE task = 0 AND kind IN ('USAGE', 'FIFO', 'DELAYS') AND ? AND seq NOT IN"
        "  (SELECT max(seq) FROM events WHERE task = 0 AND kind IN ('USAGE', 'FIFO', 'DELAYS')"
        "  GROUP BY kind, json_extract(body, '$.uid'), json_extract(body, '$.sharing'))",
    [DELETE_BLOBS] =
        "DELETE FROM blobs WHERE id IN (SELECT blob FROM blob_uses WHERE task = ?1) AND NOT EXISTS"
        "  (SELECT 1 FROM blob_uses WHERE blob = blobs.id AND task <> ?1)",
    [DELETE_BLOB_USES] = "DELETE FROM blob_uses WHERE task = ?",
    [DELETE_RECORD] = "DELETE FROM records WHERE task = ?",
    [DELETE_ENDED] = "DELETE FROM ended WHERE task = ?",
    [ADD_FORGOTTEN] = "UPDATE facts SET value = value + 1 WHERE name = 'forgotten' AND ? > 0",
    [SET_FORGOTTEN] = "UPDATE facts SET value = ? WHERE name = 'forgotten'",
    [ADD_LAST_EVENT] = "UPDATE facts SET value = value + ? * " STORE_LAST_EVENT
                       " WHERE name = 'forgotten_events'",
    [ADD_DELETED_EVENTS] =
        "UPDATE facts SET value = value + changes() WHERE name = 'forgotten_events'",
    [COUNT_MISSING] = "UPDATE facts SET value = value + " STORE_MISSING " WHERE name = 'forgotten'",
    [COUNT_MISSING_EVENTS] = "UPDATE facts SET value = value + " STORE_MISSING_EVENTS
                             " WHERE name = 'forgotten_events'",
    [MISSING] = "SELECT " STORE_MISSING,
    [MISSING_EVENTS] = "SELECT " STORE_MISSING_EVENTS,
    [SET_LOSS] = "INSERT OR REPLACE INTO facts VALUES('loss', ?)",
    [DELETE_LOSS] = "DELETE FROM facts WHERE name = 'loss'",
    [GET_LOSS] = "SELECT value FROM facts WHERE name = 'loss'",
};

int statements_prepare(struct store *store, struct fault *fault)
{
    for (int i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v3(store->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                &store->statements[i], NULL) != SQLITE_OK)
            return statement_fault(store, fault);
    return 0;
}

void statements_finalize(struct store *store)
{
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(store->statements[i]);
        store->statements[i] = NULL;
    }
}

/* A full disk shows as SQLITE_FULL or, below a failed write, in errno. */
int statement_errno(sqlite3 *db)
{
    int system = sqlite3_system_errno(db);
    switch (sqlite3_errcode(db)) {
    case SQLITE_FULL:
        return ENOSPC;
    case SQLITE_NOMEM:
        return ENOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return EBUSY;
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return EROFS;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return EUCLEAN;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        return system == EDQUOT ? ENOSPC : system > 0 ? system : EIO;
    default:
        return EIO;
    }
}

int store_damaged(const struct store *store, struct fault *fault, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return fault_set(fault, EUCLEAN,
        "%s: %s. Restore it from a backup, or move it away (with its -wal, if there is one) to begin with "
        "an empty log; "
        "sqlite3's .recover may save what is in it",
        store->path, what);
}

int statement_fault(const struct store *store, struct fault *fault)
{
    const char *message = sqlite3_errmsg(store->db);
    int errnum = statement_errno(store->db);
    if (errnum == EUCLEAN)
        return store_damaged(store, fault, "%s", message);
    if (errnum == ENOSPC)
        return fault_set(fault, ENOSPC,
            "%s: the disk is full (or a quota is): nothing was recorded", store->path);
    if (sqlite3_errcode(store->db) == SQLITE_IOERR || sqlite3_errcode(store->db) == SQLITE_CANTOPEN)
        return fault_set(fault, errnum, "%s: %s: %s", store->path, message, strerror(errnum));
    return fault_set(fault, errnum, "%s: %s", store->path, message);
}

void statement_bind_list(sqlite3_stmt *statement, const char *types, va_list args)
{
    for (int i = 1; *types; types++, i++) {
        if (*types == 'i') {
            sqlite3_bind_int64(statement, i, va_arg(args, int64_t));
        } else if (*types == 't') {
            sqlite3_bind_text(statement, i, va_arg(args, const char *), -1, SQLITE_STATIC);
        } else {
            const void *data = va_arg(args, const void *);
            size_t size = va_arg(args, size_t);
            sqlite3_bind_blob64(statement, i, size ? data : "", size, SQLITE_STATIC);
        }
    }
}

void statement_bind(sqlite3_stmt *statement, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    statement_bind_list(statement, types, args);
    va_end(args);
}

int statement_step(const struct store *store, sqlite3_stmt *statement, struct fault *fault)
{
    int r = sqlite3_step(statement);
    return r == SQLITE_ROW ? 1 : r == SQLITE_DONE ? 0 : statement_fault(store, fault);
}

void statement_reset(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

char *store_dump_json(const json_t *object)
{
    return json_dumps(object, JSON_COMPACT);
}

json_t *store_load_json(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text ? json_loadb(
                      text, (size_t)sqlite3_column_bytes(statement, column), JSON_ALLOW_NUL, NULL)
                : NULL;
}
