/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goes through many tasks for a request: live tasks first, then ended ones. It does so in slices of
 * a few milliseconds, one in each turn of the loop, with other requests in between.
 *
 * Contract:
 * 1. The ids of the live tasks are collected first, in order: a task that is placed between two
 *    slices is neither left out nor listed twice.
 * 2. The receiver's `end` is called once, and the listing is released after it.
 */
#ifndef COLLOC_DAEMON_HTTP_LISTING_H
#define COLLOC_DAEMON_HTTP_LISTING_H

#include "daemon/http/http_state.h"

#define LISTING_LIMIT_MAX 1000000 /* ended tasks */

enum part { PART_RUNNING, PART_RECOVERING, PART_QUEUED, PART_ENDED };

/* After this task of this part; 0: before the first. */
struct place {
    enum part part;
    uint64_t id;
    uint64_t first; /* of a folded entry, which goes to `id`; 0: none */
};

struct listing;

/* The purpose of a listing. */
struct listing_receiver {
    /* Receives a task as the asking user may see it; borrowed. Returns how many bytes of the
     * answer's text there are now, for the quota. */
    size_t (*add)(void *context, const json_t *record);

    /* All were added (`is_listed`), or the request was answered with why not. */
    void (*end)(void *context, const struct listing *list, bool is_listed);
};

struct listing {
    struct turn turn; /* the first member */
    struct http *http;
    struct api_request *request;
    const struct listing_receiver *receiver;
    void *context; /* of the receiver */

    char *user, *state; /* as requested; user may be NULL */
    bool wants_live, wants_ended;
    bool folds;    /* the waiting tasks of an array are one entry */
    bool is_short; /* of live tasks only what http_task_summary_json has */
    struct store_ended_filter ended;
    struct place at;
    int64_t page_left, ended_left;

    char *user_json;    /* the user as it stands in records, to find them by; NULL: by uid */
    struct place *live; /* still to be listed, from next_live on */
    size_t n_live, next_live;
    bool all_ended;    /* there are no more of them */
    size_t size, held; /* bytes of the answer's text; of the quota */
    int damaged;       /* records of ended tasks that cannot be shown */
    uint64_t first_damaged;
    struct fault fault; /* of the log */
};

/* Returns an empty listing for listing_start or listing_free; the caller sets the fields after
 * `context`. NULL when memory is out. */
struct listing *listing_create(struct http *http, struct api_request *request,
    const struct listing_receiver *receiver, void *context);

/* Sets which tasks are wanted: "live", "ended", "all" or a state's word. Returns 0, or -EINVAL. */
int listing_set_state(struct listing *list, const char *state);

/* Goes through the tasks; takes over the listing. */
void listing_start(struct listing *list);

/* Releases a listing that was not started. */
void listing_free(struct listing *list);

/* Returns whether no task is left after the page. */
bool listing_is_complete(const struct listing *list);

#endif
