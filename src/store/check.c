/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds damaged and missing rows, for `colloc check`, which reads the database and changes nothing.
 * Each check is a query; each row that it returns is a finding, as text for people.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/array.h"
#include "store/store.h"
#include "store/store_private.h"

static const char *const checks[] = {
    "SELECT 'damaged: ' || integrity_check FROM pragma_integrity_check(100)"
    " WHERE integrity_check <> 'ok'",

    "SELECT printf('event %d (%s of task %d) is not what was written', seq, kind, task)"
    " FROM events WHERE sum IS NOT " EVENT_SUM " ORDER BY seq",

    "SELECT printf('the record of task %d is not what was written', task)"
    " FROM records WHERE sum IS NOT " RECORD_SUM " ORDER BY task",

    "SELECT printf('the entry of ended task %d is not what was written', task)"
    " FROM ended WHERE sum IS NOT " ENDED_SUM " ORDER BY task",

    "SELECT printf('the text %s is not what was written', key) FROM blobs"
    " WHERE key IS NOT text_key(data)",

    "SELECT printf('task %d has no record, though it has ended', task) FROM ended"
    " WHERE task NOT IN (SELECT task FROM records)",

    "SELECT printf('task %d has events, but is neither live nor ended', task)"
    " FROM (SELECT DISTINCT task FROM events WHERE task > 0)"
    " WHERE task NOT IN (SELECT task FROM live) AND task NOT IN (SELECT task FROM ended)"
    " AND task NOT IN (SELECT id FROM arrays)",

    "SELECT printf('task %d has no submission', task)"
    " FROM (SELECT task FROM live UNION SELECT task FROM ended) AS known"
    " WHERE NOT EXISTS (SELECT 1 FROM events WHERE events.task = known.task AND kind = 'SUBMIT')"
    " AND NOT EXISTS (SELECT 1 FROM arrays JOIN events ON events.task = arrays.id"
    "  WHERE known.task BETWEEN first AND last AND kind = 'SUBMIT')",

    "SELECT printf('the %s of task %d is missing', part, task) FROM events,"
    " (SELECT 'script' AS part UNION SELECT 'environment' UNION SELECT 'summary')"
    " WHERE kind = 'SUBMIT' AND json_valid(detail)"
    " AND json_extract(detail, '$.' || part) NOT IN (SELECT key FROM blobs)",

    "SELECT printf('%d tasks are missing', missing) FROM (SELECT " STORE_MISSING " AS missing)"
    " WHERE missing <> 0",

    "SELECT value FROM facts WHERE name = 'loss'",
};

static int run_check(struct store *store, const char *query, store_on_finding *on_finding,
    void *context, struct fault *fault)
{
    sqlite3_stmt *rows;
    int r, n = 0;
    if (sqlite3_prepare_v2(store->db, query, -1, &rows, NULL) != SQLITE_OK)
        return statement_fault(store, fault);
    while ((r = statement_step(store, rows, fault)) > 0) {
        on_finding(context, (const char *)sqlite3_column_text(rows, 0));
        n++;
    }
    sqlite3_finalize(rows);
    return r < 0 ? r : n;
}

int store_check_rows(
    struct store *store, store_on_finding *on_finding, void *context, struct fault *fault)
{
    int total = 0;
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        int n = run_check(store, checks[i], on_finding, context, fault);
        if (n < 0)
            return n;
        total += n;
    }
    return total;
}

bool store_is_live(struct store *store, uint64_t task)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(store->db, "SELECT 1 FROM live WHERE task = ?", -1, &row, NULL) !=
        SQLITE_OK)
        return false;
    statement_bind(row, "i", (int64_t)task);
    bool is_live = statement_step(store, row, NULL) > 0;
    sqlite3_finalize(row);
    return is_live;
}

int store_get_counts(struct store *store, struct fault *fault, struct store_counts *ret_counts)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(store->db,
            "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM live),"
            " (SELECT count(*) FROM ended)",
            -1, &row, NULL) != SQLITE_OK)
        return statement_fault(store, fault);
    int r = statement_step(store, row, fault);
    if (r > 0)
        *ret_counts = (struct store_counts){sqlite3_column_int64(row, 0),
            sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2)};
    sqlite3_finalize(row);
    return r < 0 ? r : 0;
}

/* ---- opening ---- */

/* A copy somewhere has no lock. The lock is held for as long as the check takes. */
static int take_lock(struct store *store, struct fault *fault)
{
    char path[PATH_MAX + 8];
    snprintf(
        path, sizeof path, "%.*s.lock", (int)(strlen(store->path) - strlen(".db")), store->path);
    store->lock_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (store->lock_fd < 0)
        return errno == ENOENT ? 0 : fault_set(fault, errno, "%s: %s", path, strerror(errno));
    signature_read(store->lock_fd, &store->signature);
    if (flock(store->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return fault_set(fault, EBUSY,
        "%s: collocd (process %d) has it open: stop it first, or check a copy", store->path,
        store->signature.pid);
}

static int open_read_only(struct store *store, struct fault *fault)
{
    if (sqlite3_open_v2(
            store->path, &store->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return statement_fault(store, fault);
    if (checksum_register(store) != SQLITE_OK)
        return statement_fault(store, fault);
    int r = schema_check(store, fault);
    if (r == 0)
        r = statements_prepare(store, fault);
    return r == 0 ? store_read_last(store, fault) : r;
}

int store_open_to_check(const char *path, struct fault *fault, struct store **ret_store)
{
    size_t size = strlen(path);
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return fault_set(fault, ENOMEM, "out of memory");
    store->lock_fd = -1;
    snprintf(store->path, sizeof store->path, "%s", path);
    int r = size > 3 && size < sizeof store->path && strcmp(path + size - 3, ".db") == 0
                ? 0
                : fault_set(fault, EINVAL, "%s: the name of the database has to end in .db", path);
    if (r == 0 && access(path, R_OK) < 0)
        r = fault_set(fault, errno, "%s: %s", path, strerror(errno));
    if (r == 0)
        r = take_lock(store, fault);
    if (r == 0)
        r = open_read_only(store, fault);
    if (r == 0) {
        loss_compare(store);
        *ret_store = store;
        return 0;
    }
    store_close(store);
    return r;
}
