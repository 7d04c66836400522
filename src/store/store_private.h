/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share: the open database, its statements, and faults in its words. */
#ifndef COLLOC_STORE_STORE_PRIVATE_H
#define COLLOC_STORE_STORE_PRIVATE_H

#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "store/store.h"

enum statement {
    BEGIN,
    COMMIT,
    ADD_EVENT,
    ADD_LIVE,
    SET_PLACED,
    DELETE_LIVE,
    GET_EVENT,
    REPLAY,
    TASK_EVENTS,
    ALL_EVENTS,
    LAST,
    ADD_BLOB,
    ADD_BLOB_USE,
    GET_BLOB,
    ADD_ENDED,
    ADD_RECORD,
    GET_RECORD,
    TOTALS,
    OLDEST_ENDED,
    DELETE_EVENTS,
    DELETE_BLOBS,
    DELETE_BLOB_USES,
    DELETE_RECORD,
    DELETE_ENDED,
    ADD_FORGOTTEN,
    SET_FORGOTTEN,
    COUNT_MISSING,
    MISSING,
    SET_LOSS,
    DELETE_LOSS,
    GET_LOSS,
    STATEMENTS
};

/* What the last owner of the log wrote into the lock file; 0: nothing. */
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
    char loss[512];                /* what the log lost, in words; "": nothing */
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
    "(SELECT coalesce((SELECT max(task) FROM events), 0) - (SELECT count(*) FROM live)"            \
    "  - (SELECT count(*) FROM ended) - value FROM facts WHERE name = 'forgotten')"

void signature_write(struct store *store);
void signature_read(int fd, struct signature *ret_signature);

/* Reads the highest numbers of tasks and events. */
int store_read_last(struct store *store, struct fault *fault);

/* Compares the log with what its last owner signed, and notes what it lost. */
int loss_find(struct store *store, struct fault *fault);

/* The same into store->loss only. */
void loss_compare(struct store *store);

/* 0 for this version's tables, -EPROTO for another's. */
int schema_check(const struct store *store, struct fault *fault);

/* Creates the tables of this version, or changes those of an older one into them. */
int schema_bring_up_to_date(struct store *store, struct fault *fault);

int statements_prepare(struct store *store, struct fault *fault);
void statements_finalize(struct store *store);

/* What the database says is wrong now, in words. Returns -errno. */
int statement_fault(const struct store *store, struct fault *fault);

/*
 * Binds all parameters, one argument for each letter of `types`: 'i' int64_t, 't' const char * (may
 * be NULL), 'b' const void * and size_t. Texts and blobs must live until the statement is reset.
 */
void statement_bind(sqlite3_stmt *statement, const char *types, ...);

/* 1: a row is there; 0: no (further) row; negative: a fault. */
int statement_step(const struct store *store, sqlite3_stmt *statement, struct fault *fault);
void statement_reset(sqlite3_stmt *statement);

/* Binds as above and carries out a statement that writes. Refuses without a transaction; rolls it
 * back on a fault. */
int statement_write(
    struct store *store, enum statement which, struct fault *fault, const char *types, ...);

/* A fault about something in the database that cannot be right: prefixed with its path, -EUCLEAN.
 */
int store_damaged(const struct store *store, struct fault *fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A JSON object as compact text; NULL when memory is out. */
char *store_dump_json(const json_t *object);

/* The JSON in a column; NULL for NULL and for no JSON. */
json_t *store_load_json(sqlite3_stmt *statement, int column);

#endif
