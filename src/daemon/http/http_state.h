/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this part share. */
#ifndef COLLOC_DAEMON_HTTP_HTTP_STATE_H
#define COLLOC_DAEMON_HTTP_HTTP_STATE_H

#include "daemon/http/http.h"
#include "daemon/http/series_cache.h"
#include "daemon/turns.h"
#include "service/user_file.h"

struct estimate_helpers; /* estimate_helpers.h */
struct submission;       /* submission.h */
struct waiter;           /* route_wait.c: a request that waits for a task to end */
struct event_feed;       /* route_events.c: the readers of GET /v1/events */

struct http {
    struct http_options parts;
    struct api_server *server; /* NULL: it does not listen */
    struct user_files *user_files;
    struct estimate_helpers *estimate_helpers;
    bool refuses_submissions, is_closed;

    struct submission *submissions_first, *submissions_last; /* not read yet */
    int n_submissions;
    int submitters;    /* how many submitted at the same time lately */
    int64_t gather_us; /* how long to wait for the rest of them */

    struct waiter *waiters;
    struct turns listings;         /* of struct listing: lists of tasks that are being made */
    struct turns changes;          /* of struct sliced_change: changes of many tasks, likewise */
    struct turns stats;            /* of struct stats (route_stats.c), likewise */
    struct event_feed *event_feed; /* NULL: not opened yet */
    struct series_cache series_cache;
    struct shared_text {
        char *text; /* NULL: none yet */
        int64_t until_us;
    } metrics[2]; /* in the text format, and as OpenMetrics (prometheus.c) */

    struct { /* since the daemon was started */
        int64_t tasks[TASK_STATES], memory_crashes;
    } ends;

    uv_poll_t server_poll;
    uv_timer_t server_timer;
    uv_idle_t server_soon, list_turn, change_turn, stats_turn;
    uv_idle_cb on_server_soon; /* http_server.c */
};

/* ---- submission_queue.c ---- */

/* Queues the submissions of this turn; the rest wait for the next one. */
void submissions_flush(struct http *http);

/* Refuses the submissions that are not read yet. */
void submissions_refuse(struct http *http);

/* ---- route_events.c, route_list.c, route_stats.c, route_wait.c ---- */

/* Nothing is sent any more; the readers' servers close them. */
void events_close(struct http *http);

/* Refuses the lists that are not complete. */
void listings_refuse(struct http *http);

/* Refuses the sums that are not complete. */
void stats_refuse(struct http *http);

/* Answers the requests that wait for this task (0: for any) with its record; without one (NULL)
 * they are dropped unanswered, and the server's end closes them. */
void waiters_answer(struct http *http, uint64_t task, const json_t *record);

#endif
