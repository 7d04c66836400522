/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this component: the open database, its statements, and its errors. */
#ifndef COLLOC_STORE_STORE_PRIVATE_H
#define COLLOC_STORE_STORE_PRIVATE_H

#include <jansson.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"

enum statement {
    BEGIN,
    COMMIT,
    ADD_EVENT,
    ADD_LIVE,
    ADD_LIVE_RANGE,
    ADD_ARRAY,
    IS_REPLAYED,
    FIRST_PLACED,
    EMPTY_ARRAY,
    DELETE_ARRAY,
    GET_ARRAY,
    SET_PLACED,
    DELETE_LIVE,
    GET_EVENT,
    REPLAY,
    TASK_EVENTS,
    ALL_EVENTS,
    EVENTS_AFTER,
    CHANGED_TASKS,
    LAST,
    ADD_BLOB,
    ADD_BLOB_USE,
    GET_BLOB,
    ADD_ENDED,
    ADD_RECORD,
    GET_RECORD,
    TOTALS,
    COUNT_ENDED,
    FIRST_SUBMITTED,
    OLDEST_ENDED,
    DELETE_EVENTS,
    DELETE_STALE,
    DELETE_BLOBS,
    DELETE_BLOB_USES,
    DELETE_RECORD,
    DELETE_ENDED,
    ADD_FORGOTTEN,
    SET_FORGOTTEN,
    ADD_LAST_EVENT,
    ADD_DELETED_EVENTS,
    COUNT_MISSING,
    COUNT_MISSING_EVENTS,
    MISSING,
    MISSING_EVENTS,
    SET_LOSS,
    DELETE_LOSS,
    GET_LOSS,
    STATEMENTS
};

/* The numbers of the log's last owner in the lock file; 0: none. */
struct signature {
    int pid;
    int64_t task, seq; /* the highest numbers that were committed */
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    int lock_fd;
    int64_t reserve_bytes;         /* allocated beside the log; 0: none */
    struct signature signature;    /* as it was found */
    int64_t last_task, last_seq;   /* the highest that are committed */
    int64_t added_task, added_seq; /* and in the open transaction */
    bool has_forgotten;            /* in the open transaction */
    char loss[512];                /* what the log lost, as text; "": nothing */
    char path[PATH_MAX];
};

/* The size of the reserve that an earlier owner of the log left; 0: none. */
int64_t reserve_find(const struct store *store);

/* Makes row_sum() and text_key() known to the database. Returns SQLite's code. */
int checksum_register(struct store *store);

/* The values of a row that its sum is of, and whether it still is. */
#define EVENT_SUM "row_sum(seq, task, kind, time_us, wall_us, body, detail)"
#define ENDED_SUM                                                                                  \
    "row_sum(task, uid, state, submitted_wall_us, ended_wall_us, wait_us, exec_us, jct_us, oom_count)"
#define RECORD_SUM "row_sum(task, record)"

/* How many of the tasks up to the last one are neither in the log nor forgotten. */
#define STORE_MISSING                                                                              \
    "(SELECT " STORE_LAST_TASK " - (SELECT count(*) FROM live) - (SELECT count(*) FROM ended)"     \
    "  - (SELECT count(*) FROM arrays) - value FROM facts WHERE name = 'forgotten')"

/* The same of the events. */
#define STORE_MISSING_EVENTS                                                                       \
    "(SELECT " STORE_LAST_EVENT " - (SELECT count(*) FROM events) - value FROM facts"              \
    "  WHERE name = 'forgotten_events')"
#define STORE_LAST_EVENT "coalesce((SELECT max(seq) FROM events), 0)"

/* The largest id that was ever used: tasks of an array that have not started have no events. */
#define STORE_LAST_TASK                                                                            \
    "max(coalesce((SELECT max(task) FROM events), 0), coalesce((SELECT max(last) FROM arrays), 0))"

/* The array that task ?1 is of; NULL: of none. */
#define STORE_ARRAY_OF                                                                             \
    "(SELECT id FROM (SELECT id, last FROM arrays WHERE first <= ?1 ORDER BY id DESC LIMIT 1)"     \
    "  WHERE last >= ?1)"

/* Writes the signature into the lock file, and reads one. */
void signature_write(struct store *store);
void signature_read(int fd, struct signature *ret_signature);

/* Reads the highest numbers of tasks and events. */
int store_read_last(struct store *store, struct fault *fault);

/* Compares the log with the numbers of its last owner, and notes losses. */
int loss_find(struct store *store, struct fault *fault);

/* Notes the loss in store->loss only, not in the database. */
void loss_compare(struct store *store);

/* Returns 0 for the tables of this version, -EPROTO for those of another. */
int schema_check(const struct store *store, struct fault *fault);

/* Creates the tables of this version, or changes those of an older one into them. */
int schema_bring_up_to_date(struct store *store, struct fault *fault);

/* Prepares all statements of the table, and finalizes them. Returns 0, or a fault. */
int statements_prepare(struct store *store, struct fault *fault);
void statements_finalize(struct store *store);

/* The errno that fits the database's last error. A full disk is ENOSPC, damage EUCLEAN. */
int statement_errno(sqlite3 *db);

/* Sets a fault with the database's last error. Returns its -errno. */
int statement_fault(const struct store *store, struct fault *fault);

/*
 * Binds all parameters, one argument for each letter of `types`: 'i' int64_t, 't' const char * (may
 * be NULL), 'b' const void * and size_t. Texts and blobs must live until the statement is reset.
 */
void statement_bind(sqlite3_stmt *statement, const char *types, ...);
void statement_bind_list(sqlite3_stmt *statement, const char *types, va_list args);

/* Returns 1 with a row; 0 after the last row; or -errno with a fault. */
int statement_step(const struct store *store, sqlite3_stmt *statement, struct fault *fault);
void statement_reset(sqlite3_stmt *statement);

/* Binds as above and runs a statement that writes. Returns 0; -EINVAL without a transaction; or
 * -errno with a fault, after rolling the transaction back. */
int statement_write(
    struct store *store, enum statement which, struct fault *fault, const char *types, ...);

/* Sets a fault about damage in the database, with its path. Returns -EUCLEAN. */
int store_damaged(const struct store *store, struct fault *fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns a JSON object as compact text, for the caller to free; NULL without memory. */
char *store_dump_json(const json_t *object);

/* Returns the JSON in a column, for the caller to release; NULL for NULL and for other texts. */
json_t *store_load_json(sqlite3_stmt *statement, int column);

#endif
