/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log that lost events: found when it is opened, and stored as text in the table of facts. So
 * each start reports it, until the administrator accepts it (colloc check --accept-loss).
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "store/store.h"
#include "store/store_private.h"

const char *store_get_loss(const struct store *store)
{
    return store->loss;
}

/* If the text cannot be stored, at least this run of the daemon reports it. */
int store_note_loss(struct store *store, const char *text, struct fault *fault)
{
    char when[32] = "";
    time_t now = (time_t)(clock_wall_us() / 1000000);
    struct tm parts;
    if (gmtime_r(&now, &parts))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC: ", &parts);
    snprintf(store->loss, sizeof store->loss, "%s%s", when, text);
    int r = store_begin(store, fault);
    if (r == 0)
        r = statement_write(store, SET_LOSS, fault, "t", store->loss);
    return r == 0 ? store_commit(store, fault) : r;
}

int store_accept_loss(struct store *store, struct fault *fault)
{
    int r = store_begin(store, fault);
    if (r == 0)
        r = statement_write(store, DELETE_LOSS, fault, "");
    if (r == 0)
        r = statement_write(store, COUNT_MISSING, fault, "");
    if (r == 0)
        r = statement_write(store, COUNT_MISSING_EVENTS, fault, "");
    if (r == 0)
        r = store_commit(store, fault);
    if (r == 0)
        store->loss[0] = '\0';
    return r;
}

static int count_missing(
    struct store *store, enum statement which, struct fault *fault, int64_t *ret_missing)
{
    sqlite3_stmt *row = store->statements[which];
    int r = statement_step(store, row, fault);
    if (r > 0)
        *ret_missing = sqlite3_column_int64(row, 0);
    statement_reset(row);
    return r < 0 ? r : 0;
}

int store_count_missing_events(struct store *store, struct fault *fault, int64_t *ret_missing)
{
    *ret_missing = 0;
    return count_missing(store, MISSING_EVENTS, fault, ret_missing);
}

static int read_loss(struct store *store, struct fault *fault)
{
    sqlite3_stmt *row = store->statements[GET_LOSS];
    int r = statement_step(store, row, fault);
    if (r > 0)
        snprintf(store->loss, sizeof store->loss, "%s", (const char *)sqlite3_column_text(row, 0));
    statement_reset(row);
    return r < 0 ? r : 0;
}

/* Does the log end before what its last owner signed? */
static bool is_short(const struct store *store, char *text, size_t size)
{
    const struct signature *signature = &store->signature;
    if (store->last_seq >= signature->seq && store->last_task >= signature->task)
        return false;
    snprintf(text, size,
        "the event log ends at event %lld and task %lld, but event %lld and task %lld had been "
        "recorded",
        (long long)store->last_seq, (long long)store->last_task, (long long)signature->seq,
        (long long)signature->task);
    return true;
}

int loss_find(struct store *store, struct fault *fault)
{
    char text[256];
    int64_t missing = 0;
    int r = read_loss(store, fault);
    if (r == 0)
        r = count_missing(store, MISSING, fault, &missing);
    if (r < 0)
        return r;
    if (is_short(store, text, sizeof text)) {
        store_note_loss(store, text, NULL);
    } else if (missing > 0 && !*store->loss) {
        snprintf(
            text, sizeof text, "%lld tasks are missing from the event log", (long long)missing);
        store_note_loss(store, text, NULL);
    }
    return 0;
}

void loss_compare(struct store *store)
{
    is_short(store, store->loss, sizeof store->loss);
}
