/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables: the messages, and one number, the cursor. Ids are AUTOINCREMENT, so that an id that a
 * receiver has seen is never used for another message. A third one, of the connection only, has
 * the turns: which share has had one since the daemon started, and in which order.
 */
#include "store/message_db.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/private_file.h"
#include "store/store_private.h"

static const char schema[] =
    "CREATE TABLE messages(id INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER NOT NULL,"
    "  task INTEGER NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL, kind INTEGER NOT NULL,"
    "  attempts INTEGER NOT NULL, due_ms INTEGER NOT NULL, text TEXT NOT NULL);"
    "CREATE TABLE cursor(one INTEGER PRIMARY KEY CHECK(one = 1), seq INTEGER NOT NULL);"
    "PRAGMA user_version = 1;";

/* For databases of all versions: NEXT reads an index alone, and finds the share once per user. The
 * view `users` goes from one user to the next in it, which a DISTINCT does not. WITHDRAW, at each
 * end of a task, has the other index. */
static const char prepared[] =
    "DROP INDEX IF EXISTS messages_due;"
    "DROP INDEX IF EXISTS messages_of_user;"
    "CREATE INDEX IF NOT EXISTS messages_of_user_due ON messages(uid, due_ms);"
    "CREATE INDEX IF NOT EXISTS messages_of_task ON messages(task);"
    "PRAGMA temp_store = MEMORY;"
    "CREATE TEMP TABLE turns(share INTEGER PRIMARY KEY, turn INTEGER NOT NULL);"
    "CREATE TEMP VIEW users(uid) AS WITH RECURSIVE each_user(uid) AS"
    "  (SELECT min(uid) FROM messages UNION ALL"
    "   SELECT (SELECT min(uid) FROM messages WHERE messages.uid > each_user.uid) FROM each_user"
    "     WHERE uid NOT NULL)"
    "  SELECT uid FROM each_user WHERE uid NOT NULL;";

enum query {
    ADD,
    TRIM,
    SET_CURSOR,
    GET_CURSOR,
    WITHDRAW,
    NEXT,
    TAKE_TURN,
    POSTPONE,
    REMOVE,
    QUERIES
};

static const char *const queries[QUERIES] = {
    [ADD] = "INSERT INTO messages(seq, task, uid, gid, kind, attempts, due_ms, text)"
            "  VALUES(?, ?, ?, ?, ?, 0, ?, ?)",
    [TRIM] =
        "DELETE FROM messages WHERE id IN"
        "  (SELECT id FROM messages WHERE uid IN (SELECT uid FROM users WHERE share_of(uid) = ?1)"
        "    ORDER BY id DESC LIMIT -1 OFFSET ?2)",
    [SET_CURSOR] = "INSERT OR REPLACE INTO cursor VALUES(1, ?)",
    [GET_CURSOR] = "SELECT seq FROM cursor",
    [WITHDRAW] = "DELETE FROM messages WHERE task = ? AND kind = ?",
    [NEXT] = "SELECT id, seq, task, uid, gid, kind, attempts, due_ms, text FROM messages"
             "  WHERE uid = (SELECT uid FROM"
             "      (SELECT uid, share_of(uid) AS share, first_ms FROM"
             "        (SELECT uid, min(due_ms) AS first_ms FROM messages GROUP BY uid))"
             "      LEFT JOIN turns USING(share)"
             "    WHERE share NOT IN (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
             "    ORDER BY max(first_ms, ?9), coalesce(turn, 0), first_ms, uid LIMIT 1)"
             "  ORDER BY due_ms, id LIMIT 1",
    [TAKE_TURN] = "INSERT OR REPLACE INTO turns"
                  "  VALUES(?, (SELECT coalesce(max(turn), 0) + 1 FROM turns))",
    [POSTPONE] = "UPDATE messages SET attempts = attempts + 1, due_ms = ?2 WHERE id = ?1",
    [REMOVE] = "DELETE FROM messages WHERE id = ?",
};
enum { BUSY_MAX = 8 }; /* as NEXT has parameters */

struct message_db {
    sqlite3 *sqlite;
    sqlite3_stmt *statements[QUERIES];
    struct message_shares shares;
    int64_t cursor;
    char *text; /* of the last row that was read */
    char path[PATH_MAX];
};

/* ---- statements ---- */

static int set_fault(const struct message_db *db, struct fault *fault)
{
    return fault_set(
        fault, statement_errno(db->sqlite), "%s: %s", db->path, sqlite3_errmsg(db->sqlite));
}

static int step_query(const struct message_db *db, enum query query, struct fault *fault)
{
    int r = sqlite3_step(db->statements[query]);
    return r == SQLITE_ROW ? 1 : r == SQLITE_DONE ? 0 : set_fault(db, fault);
}

/* share_of(UID) in SQL. */
static void write_share(sqlite3_context *answer, int n, sqlite3_value **uid)
{
    const struct message_shares *shares = sqlite3_user_data(answer);
    sqlite3_result_int64(
        answer, shares->share_of(shares->context, (uint32_t)sqlite3_value_int64(*uid)));
}

static int execute_sql(struct message_db *db, const char *sql, struct fault *fault)
{
    return sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : set_fault(db, fault);
}

/* A query of up to two numbers that returns nothing. */
static int run_change(
    struct message_db *db, enum query query, int64_t a, int64_t b, struct fault *fault)
{
    sqlite3_stmt *statement = db->statements[query];
    sqlite3_bind_int64(statement, 1, a);
    if (sqlite3_bind_parameter_count(statement) > 1)
        sqlite3_bind_int64(statement, 2, b);
    int r = step_query(db, query, fault);
    statement_reset(statement);
    return r < 0 ? r : 0;
}

/* ---- opening ---- */

static void close_file(struct message_db *db)
{
    for (int i = 0; i < QUERIES; i++) {
        sqlite3_finalize(db->statements[i]);
        db->statements[i] = NULL;
    }
    sqlite3_close(db->sqlite);
    db->sqlite = NULL;
}

static int read_version(struct message_db *db, struct fault *fault, int *ret_version)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db->sqlite, "PRAGMA user_version", -1, &statement, NULL) != SQLITE_OK)
        return set_fault(db, fault);
    int r = sqlite3_step(statement) == SQLITE_ROW ? 0 : set_fault(db, fault);
    *ret_version = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return r;
}

static int open_file(struct message_db *db, struct fault *fault)
{
    int version = 0;
    if (sqlite3_open_v2(db->path, &db->sqlite, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
        SQLITE_OK)
        return set_fault(db, fault);
    int r = execute_sql(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;", fault);
    if (r == 0)
        r = read_version(db, fault, &version);
    if (r == 0 && version == 0)
        r = execute_sql(db, schema, fault);
    else if (r == 0 && version != 1)
        r = fault_set(fault, EUCLEAN, "%s: of version %d", db->path, version);
    if (r == 0)
        r = execute_sql(db, prepared, fault);
    if (r == 0 && sqlite3_create_function(db->sqlite, "share_of", 1, SQLITE_UTF8, &db->shares,
                      write_share, NULL, NULL) != SQLITE_OK)
        r = set_fault(db, fault);
    for (int i = 0; r == 0 && i < QUERIES; i++)
        if (sqlite3_prepare_v3(db->sqlite, queries[i], -1, SQLITE_PREPARE_PERSISTENT,
                &db->statements[i], NULL) != SQLITE_OK)
            r = set_fault(db, fault);
    return r;
}

static int put_aside(struct message_db *db)
{
    static const char *const endings[] = {"-wal", "-shm"};
    char other[PATH_MAX + 16];
    for (size_t i = 0; i < 2; i++) {
        snprintf(other, sizeof other, "%s%s", db->path, endings[i]);
        unlink(other);
    }
    snprintf(other, sizeof other, "%s.damaged", db->path);
    return rename(db->path, other) == 0 ? 0 : -errno;
}

static int find_cursor(struct message_db *db, int64_t last_seq, struct fault *fault)
{
    int r = step_query(db, GET_CURSOR, fault);
    if (r > 0)
        db->cursor = sqlite3_column_int64(db->statements[GET_CURSOR], 0);
    statement_reset(db->statements[GET_CURSOR]);
    if (r < 0 || (r > 0 && db->cursor <= last_seq))
        return r < 0 ? r : 0;
    db->cursor = last_seq; /* a new database, or the event log is another */
    return run_change(db, SET_CURSOR, last_seq, 0, fault);
}

int message_db_open(const char *path, int64_t last_seq, const struct message_shares *shares,
    struct fault *fault, struct message_db **ret_db)
{
    struct message_db *db = calloc(1, sizeof *db);
    int answer = 0;
    if (!db)
        return fault_set(fault, ENOMEM, "out of memory");
    db->shares = *shares;
    snprintf(db->path, sizeof db->path, "%s", path);
    int r = private_file_make(db->path, fault);
    if (r == 0)
        r = open_file(db, fault);
    if (r == -EUCLEAN) {
        struct fault again = {0};
        close_file(db);
        answer = MESSAGE_DB_REPLACED;
        r = put_aside(db);
        if (r == 0)
            r = private_file_make(db->path, &again);
        if (r == 0)
            r = open_file(db, &again);
        if (r < 0 && *again.text)
            *fault = again;
    }
    if (r == 0)
        r = find_cursor(db, last_seq, fault);
    if (r < 0) {
        message_db_close(db);
        return r;
    }
    *ret_db = db;
    return answer;
}

void message_db_close(struct message_db *db)
{
    if (!db)
        return;
    close_file(db);
    free(db->text);
    free(db);
}

int64_t message_db_cursor(const struct message_db *db)
{
    return db->cursor;
}

/* ---- changes ---- */

static int add_row(struct message_db *db, const struct message_row *row, struct fault *fault)
{
    sqlite3_stmt *statement = db->statements[ADD];
    statement_bind(statement, "iiiiiit", row->seq, (int64_t)row->task, (int64_t)row->uid,
        (int64_t)row->gid, (int64_t)row->kind, row->due_ms, row->text);
    int r = step_query(db, ADD, fault);
    statement_reset(statement);
    uint32_t share = db->shares.share_of(db->shares.context, row->uid);
    return r < 0 ? r : run_change(db, TRIM, share, MESSAGES_PER_USER, fault);
}

int message_db_add(struct message_db *db, const struct message_row *rows, size_t n, int64_t cursor,
    struct fault *fault)
{
    int r = execute_sql(db, "BEGIN IMMEDIATE", fault);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add_row(db, &rows[i], fault);
    if (r == 0)
        r = run_change(db, SET_CURSOR, cursor, 0, fault);
    if (r == 0)
        r = execute_sql(db, "COMMIT", fault);
    if (r == 0)
        db->cursor = cursor;
    else
        sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
    return r;
}

int message_db_withdraw(struct message_db *db, uint64_t task, int kind, struct fault *fault)
{
    return run_change(db, WITHDRAW, (int64_t)task, kind, fault);
}

int message_db_postpone(struct message_db *db, int64_t id, int64_t due_ms, struct fault *fault)
{
    return run_change(db, POSTPONE, id, due_ms, fault);
}

int message_db_remove(struct message_db *db, int64_t id, struct fault *fault)
{
    return run_change(db, REMOVE, id, 0, fault);
}

int message_db_take_turn(struct message_db *db, uint32_t share, struct fault *fault)
{
    return run_change(db, TAKE_TURN, share, 0, fault);
}

/* ---- reading ---- */

int message_db_next(struct message_db *db, const uint32_t *busy, size_t n_busy, int64_t now_ms,
    struct fault *fault, struct message_row *ret_row)
{
    sqlite3_stmt *row = db->statements[NEXT];
    for (size_t i = 0; i < BUSY_MAX; i++)
        sqlite3_bind_int64(row, (int)i + 1, i < n_busy ? (int64_t)busy[i] : -1);
    sqlite3_bind_int64(row, BUSY_MAX + 1, now_ms);
    int r = step_query(db, NEXT, fault);
    if (r > 0) {
        const char *text = (const char *)sqlite3_column_text(row, 8);
        free(db->text);
        db->text = strdup(text ? text : "");
        *ret_row = (struct message_row){.id = sqlite3_column_int64(row, 0),
            .seq = sqlite3_column_int64(row, 1),
            .task = (uint64_t)sqlite3_column_int64(row, 2),
            .uid = (uint32_t)sqlite3_column_int64(row, 3),
            .gid = (uint32_t)sqlite3_column_int64(row, 4),
            .kind = sqlite3_column_int(row, 5),
            .attempts = sqlite3_column_int(row, 6),
            .due_ms = sqlite3_column_int64(row, 7),
            .text = db->text};
        if (!db->text)
            r = fault_set(fault, ENOMEM, "out of memory");
    }
    statement_reset(row);
    return r;
}
