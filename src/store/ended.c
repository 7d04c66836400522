/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that have ended: a row of figures for lists and sums, and a record in JSON for everything
 * else. The two are separate tables, so that sums read no records.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "store/store.h"
#include "store/store_private.h"

int store_put_ended(
    struct store *store, const struct store_ended *ended, const json_t *record, struct fault *fault)
{
    CLEANUP_FREE char *text = json_is_object(record) ? store_dump_json(record) : NULL;
    if (!text || !task_state_is_done(ended->state))
        return fault_set(fault, EINVAL,
            "task %llu: its record is no JSON object, or it has not ended",
            (unsigned long long)ended->task);
    int r = statement_write(store, ADD_ENDED, fault, "iitiiiiii", (int64_t)ended->task,
        (int64_t)ended->uid, task_state_name(ended->state), ended->submitted_wall_us,
        ended->ended_wall_us, ended->wait_us, ended->exec_us, ended->jct_us,
        (int64_t)ended->oom_count);
    if (r == 0)
        r = statement_write(store, ADD_RECORD, fault, "it", (int64_t)ended->task, text);
    return r;
}

/* For a row with the record in `column`, followed by whether the row is unchanged. */
static int load_record(const struct store *store, sqlite3_stmt *row, int column, uint64_t task,
    struct fault *fault, json_t **ret_record)
{
    *ret_record = sqlite3_column_int(row, column + 1) ? store_load_json(row, column) : NULL;
    return *ret_record
               ? 0
               : store_damaged(store, fault,
                     "the record of task %llu is not what was written (its checksum is wrong)",
                     (unsigned long long)task);
}

int store_get_ended(struct store *store, uint64_t task, struct fault *fault, json_t **ret_record)
{
    sqlite3_stmt *row = store->statements[GET_RECORD];
    statement_bind(row, "i", (int64_t)task);
    int r = statement_step(store, row, fault);
    r = r > 0 ? load_record(store, row, 0, task, fault, ret_record) : r < 0 ? r : STORE_NONE;
    statement_reset(row);
    return r;
}

#define OF_UID " AND uid = ?1"
#define BEFORE " AND seq < (SELECT seq FROM ended WHERE task = ?3)"
#define EXAMINED                                                                                   \
    " AND seq >= (SELECT min(seq) FROM (SELECT seq FROM ended WHERE true%s%s ORDER BY seq DESC "   \
    "LIMIT ?7))"

static int prepare_rows(struct store *store, const struct store_ended_filter *filter,
    const char *sql, struct fault *fault, sqlite3_stmt **ret_rows)
{
    if (sqlite3_prepare_v2(store->db, sql, -1, ret_rows, NULL) != SQLITE_OK)
        return statement_fault(store, fault);
    statement_bind(*ret_rows, "itiiiiit", (int64_t)filter->uid,
        task_state_is_done(filter->state) ? task_state_name(filter->state) : NULL,
        (int64_t)filter->before, filter->since_wall_us, filter->until_wall_us,
        filter->limit > 0 ? filter->limit : -1, filter->examine, filter->holds);
    return 0;
}

/* The text has only the requested conditions, so that an index is used. A row without its record is
 * listed, too: one of the two is damaged, which load_record reports. */
static int prepare_list(struct store *store, const struct store_ended_filter *filter,
    struct fault *fault, sqlite3_stmt **ret_rows)
{
    const char *of_uid = filter->of_uid ? OF_UID : "", *before = filter->before ? BEFORE : "";
    char examined[256] = "", sql[1280];
    if (filter->examine)
        sqlite3_snprintf(sizeof examined, examined, EXAMINED, of_uid, before);
    sqlite3_snprintf(sizeof sql, sql,
        "SELECT task, record, ended.sum IS " ENDED_SUM " AND records.sum IS " RECORD_SUM
        " FROM ended LEFT JOIN records USING(task) WHERE true"
        "%s%s%s%s%s%s%s ORDER BY seq DESC LIMIT ?6",
        of_uid, task_state_is_done(filter->state) ? " AND state = ?2" : "", before,
        filter->since_wall_us ? " AND ended_wall_us >= ?4" : "",
        filter->until_wall_us ? " AND ended_wall_us < ?5" : "", examined,
        filter->holds ? " AND instr(record, ?8)" : "");
    return prepare_rows(store, filter, sql, fault, ret_rows);
}

int store_list_ended(struct store *store, const struct store_ended_filter *filter,
    store_on_ended *on_ended, void *context, struct fault *fault)
{
    sqlite3_stmt *rows;
    int r = prepare_list(store, filter, fault, &rows);
    while (r == 0 && (r = statement_step(store, rows, fault)) > 0) {
        uint64_t task = (uint64_t)sqlite3_column_int64(rows, 0);
        json_t *record;
        load_record(store, rows, 1, task, NULL, &record);
        r = on_ended(context, task, record);
        json_decref(record);
    }
    sqlite3_finalize(rows);
    return r;
}

int store_list_ended_users(
    struct store *store, store_on_ended_user *on_user, void *context, struct fault *fault)
{
    static const char sql[] = "SELECT uid, count(*) FROM ended GROUP BY uid";
    sqlite3_stmt *rows;
    if (sqlite3_prepare_v2(store->db, sql, -1, &rows, NULL) != SQLITE_OK)
        return statement_fault(store, fault);
    int r = 0;
    while (r == 0 && (r = statement_step(store, rows, fault)) > 0)
        r = on_user(
            context, (uint32_t)sqlite3_column_int64(rows, 0), sqlite3_column_int64(rows, 1));
    sqlite3_finalize(rows);
    return r;
}

int store_skip_ended(struct store *store, const struct store_ended_filter *filter,
    struct fault *fault, uint64_t *ret_task)
{
    char sql[256];
    sqlite3_stmt *row;
    *ret_task = 0;
    sqlite3_snprintf(sizeof sql, sql,
        "SELECT task FROM ended WHERE true%s%s ORDER BY seq DESC LIMIT 1 OFFSET ?7 - 1",
        filter->of_uid ? OF_UID : "", filter->before ? BEFORE : "");
    int r = prepare_rows(store, filter, sql, fault, &row);
    if (r < 0)
        return r;
    r = statement_step(store, row, fault);
    if (r > 0)
        *ret_task = (uint64_t)sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return r < 0 ? r : 0;
}

static void add_totals(struct store_totals *totals, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    int64_t first = sqlite3_column_int64(row, 7), last = sqlite3_column_int64(row, 8);
    bool none_yet = totals->last_ended_wall_us == 0;
    for (int i = TASK_COMPLETED; i < TASK_STATES; i++)
        if (name && strcmp(task_state_name((enum task_state)i), name) == 0)
            totals->tasks[i] += sqlite3_column_int64(row, 1);
    totals->wait_us += sqlite3_column_int64(row, 2);
    totals->exec_us += sqlite3_column_int64(row, 3);
    totals->jct_us += sqlite3_column_int64(row, 4);
    totals->oom_count += sqlite3_column_int64(row, 5);
    if (name && strcmp(name, task_state_name(TASK_COMPLETED)) == 0)
        totals->recovered += sqlite3_column_int64(row, 6);
    if (none_yet || first < totals->first_submitted_wall_us)
        totals->first_submitted_wall_us = first;
    if (none_yet || last > totals->last_ended_wall_us)
        totals->last_ended_wall_us = last;
    if (sqlite3_column_int64(row, 9) > totals->added_to)
        totals->added_to = sqlite3_column_int64(row, 9);
}

int store_add_totals(struct store *store, int max, struct fault *fault, struct store_totals *totals)
{
    sqlite3_stmt *row = store->statements[TOTALS];
    int64_t added = 0;
    int r;
    statement_bind(row, "ii", totals->added_to, (int64_t)max);
    while ((r = statement_step(store, row, fault)) > 0) {
        added += sqlite3_column_int64(row, 1);
        add_totals(totals, row);
    }
    statement_reset(row);
    return r < 0 ? r : added == max;
}

int store_first_submitted(struct store *store, struct fault *fault, int64_t *ret_wall_us)
{
    sqlite3_stmt *row = store->statements[FIRST_SUBMITTED];
    int r = statement_step(store, row, fault);
    *ret_wall_us = r > 0 ? sqlite3_column_int64(row, 0) : 0;
    statement_reset(row);
    return r < 0 ? r : 0;
}

int store_count_ended(struct store *store, uint64_t first, uint64_t last, struct fault *fault,
    int64_t ret_counts[static TASK_STATES])
{
    sqlite3_stmt *row = store->statements[COUNT_ENDED];
    int r;
    memset(ret_counts, 0, TASK_STATES * sizeof *ret_counts);
    statement_bind(row, "ii", (int64_t)first, (int64_t)last);
    while ((r = statement_step(store, row, fault)) > 0) {
        const char *name = (const char *)sqlite3_column_text(row, 0);
        for (int i = TASK_COMPLETED; i < TASK_STATES; i++)
            if (name && strcmp(task_state_name((enum task_state)i), name) == 0)
                ret_counts[i] = sqlite3_column_int64(row, 1);
    }
    statement_reset(row);
    return r;
}

/* Asks a statement that takes a number and gives one. Returns 1, 0 (no answer) or a fault. */
static int find_number(struct store *store, enum statement question, int64_t number,
    struct fault *fault, int64_t *ret_number)
{
    sqlite3_stmt *row = store->statements[question];
    statement_bind(row, "i", number);
    int r = statement_step(store, row, fault);
    if (r > 0)
        *ret_number = sqlite3_column_int64(row, 0);
    statement_reset(row);
    return r;
}

static int forget_task(struct store *store, int64_t task, struct fault *fault)
{
    static const enum statement parts[] = {DELETE_EVENTS, ADD_DELETED_EVENTS, DELETE_BLOBS,
        DELETE_BLOB_USES, DELETE_RECORD, DELETE_ENDED, ADD_FORGOTTEN};
    int r = 0;
    store->has_forgotten = true;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
        r = statement_write(store, parts[i], fault, "i", task);
    return r;
}

/* With the last task of an array its submission goes, which all of them share. */
static int forget_task_of_array(struct store *store, int64_t task, struct fault *fault)
{
    int64_t array = 0;
    int r = forget_task(store, task, fault);
    if (r == 0)
        r = find_number(store, EMPTY_ARRAY, task, fault, &array);
    if (r <= 0)
        return r;
    r = forget_task(store, array, fault);
    return r < 0 ? r : statement_write(store, DELETE_ARRAY, fault, "i", array);
}

static int forget_tasks_before(
    struct store *store, int64_t wall_us, int limit, struct fault *fault, int *ret_forgotten)
{
    int64_t task;
    int r = 0;
    while (*ret_forgotten < limit &&
           (r = find_number(store, OLDEST_ENDED, wall_us, fault, &task)) > 0) {
        r = forget_task_of_array(store, task, fault);
        if (r < 0)
            return r;
        ++*ret_forgotten;
    }
    return r < 0 ? r : 0;
}

/* Forgotten events are the numbers that are in use less the rows. So the events that go are added,
 * and where the last ones go, the numbers that go with them are subtracted. */
int store_forget_before(
    struct store *store, int64_t wall_us, int limit, struct fault *fault, int *ret_forgotten)
{
    int r = statement_write(store, ADD_LAST_EVENT, fault, "i", (int64_t)-1);
    *ret_forgotten = 0;
    if (r == 0)
        r = statement_write(store, DELETE_STALE, fault, "i", (int64_t)1);
    if (r == 0)
        r = statement_write(store, ADD_DELETED_EVENTS, fault, "");
    if (r == 0)
        r = forget_tasks_before(store, wall_us, limit, fault, ret_forgotten);
    return r < 0 ? r : statement_write(store, ADD_LAST_EVENT, fault, "i", (int64_t)1);
}
