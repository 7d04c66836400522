/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions, and what is written in them. The highest numbers of tasks and events follow a
 * transaction: they count once it is committed, and are signed then (signature.c).
 */
#include <errno.h>
#include <stdarg.h>

#include "store/store.h"
#include "store/store_private.h"

int store_read_last(struct store *store, struct fault *fault)
{
    sqlite3_stmt *row = store->statements[LAST];
    int r = statement_step(store, row, fault);
    if (r > 0) {
        store->last_task = sqlite3_column_int64(row, 0);
        store->last_seq = sqlite3_column_int64(row, 2);
    }
    statement_reset(row);
    return r < 0 ? r : 0;
}

int store_begin(struct store *store, struct fault *fault)
{
    int r = statement_step(store, store->statements[BEGIN], fault);
    statement_reset(store->statements[BEGIN]);
    store->added_task = store->last_task;
    store->added_seq = store->last_seq;
    store->has_forgotten = false;
    return r;
}

void store_rollback(struct store *store)
{
    if (!sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}

int statement_write(
    struct store *store, enum statement which, struct fault *fault, const char *types, ...)
{
    if (sqlite3_get_autocommit(store->db))
        return fault_set(
            fault, EINVAL, "%s: no transaction is open (or it has been rolled back)", store->path);
    sqlite3_stmt *statement = store->statements[which];
    va_list args;
    va_start(args, types);
    statement_bind_list(statement, types, args);
    va_end(args);
    int r = statement_step(store, statement, fault);
    statement_reset(statement);
    if (r < 0)
        store_rollback(store);
    return r;
}

int store_commit(struct store *store, struct fault *fault)
{
    int r = statement_write(store, COMMIT, fault, "");
    if (r < 0)
        return r;
    store->last_task = store->added_task;
    store->last_seq = store->added_seq;
    if (store->has_forgotten) /* perhaps the last event of all */
        store_read_last(store, NULL);
    signature_write(store);
    return 0;
}

int store_checkpoint(struct store *store, struct fault *fault)
{
    int r = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return r == SQLITE_OK || r == SQLITE_BUSY ? 0 : statement_fault(store, fault);
}
