/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of changes of many tasks, of which one makes a slice in each turn of the loop. */
#include "daemon/http/sliced_change.h"

#include "base/clock.h"
#include "daemon/http/http_answers.h"

#define SLICE_US  (4 * MS_US) /* chosen: with the commit, about 20 ms */
#define SLICE_MAX 128         /* tasks; chosen: a slice's commit stays short */

static int index_of(const struct sliced_change *change, int nth)
{
    return change->is_forward ? nth : change->n - 1 - nth;
}

static void change_slice(struct http *http, struct sliced_change *change)
{
    struct driver *driver = http->parts.driver;
    int64_t until_us = clock_monotonic_us() + SLICE_US;
    int first = change->n_done;
    driver_begin_batch(driver);
    while (change->n_done < change->n && change->n_done < first + SLICE_MAX) {
        change->kind->change(change, index_of(change, change->n_done++));
        if (clock_monotonic_us() >= until_us)
            break;
    }
    driver_end_batch(driver);
    for (int nth = first; nth < change->n_done && change->kind->written; nth++)
        change->kind->written(change, index_of(change, nth));
}

static void on_turn(uv_idle_t *turn)
{
    struct http *http = turn->data;
    struct sliced_change *change = (struct sliced_change *)turns_take(&http->changes);
    change_slice(http, change);
    if (change->n_done < change->n) {
        turns_put_back(&http->changes, &change->turn);
        return;
    }
    change->kind->answer(change);
    http_serve_soon(http);
    if (!http->changes.first)
        uv_idle_stop(turn);
}

void sliced_change_begin(struct http *http, struct sliced_change *change, uid_t uid)
{
    change->turn.user = names_counted_uid(http->parts.names, uid);
    turns_add(&http->changes, &change->turn);
    uv_idle_start(&http->change_turn, on_turn);
}

void sliced_changes_refuse(struct http *http)
{
    uv_idle_stop(&http->change_turn);
    for (struct turn *turn; (turn = turns_take(&http->changes));) {
        struct sliced_change *change = (struct sliced_change *)turn;
        change->kind->refuse(change);
    }
}
