/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of many tasks, 10,000 of an array. They are made in slices of a few milliseconds, one in
 * each turn of the loop, between which other requests are answered. The changes of a slice are
 * written to the log together:
 *
 *     turn 1   change 9, 8, 7   one transaction   written 9, 8, 7
 *     turn 2   change 6, 5, 4   one transaction   written 6, 5, 4
 *     turn 3   ...              answer
 *
 * Users take turns: a change waits for one slice of each other user, and for all earlier changes
 * of its user, so that a hold and a release of one user do not mix.
 *
 * Tasks are released in their order, and held or cancelled from the last to the first: no task is
 * placed in between only to be cancelled by the next slice.
 */
#ifndef COLLOC_DAEMON_HTTP_SLICED_CHANGE_H
#define COLLOC_DAEMON_HTTP_SLICED_CHANGE_H

#include "daemon/http/http_state.h"

struct sliced_change;

struct sliced_change_kind {
    /* Feeds the change of task `i`. */
    void (*change)(struct sliced_change *change, int i);
    /* The log has been written since, or cannot be. NULL: nothing is to be done. */
    void (*written)(struct sliced_change *change, int i);
    /* Answers the request after the last task, and frees the change. */
    void (*answer)(struct sliced_change *change);
    /* The same, because collocd is going down. */
    void (*refuse)(struct sliced_change *change);
};

/* The first member of what the caller allocates; zeroed but for: */
struct sliced_change {
    struct turn turn; /* the part's */
    const struct sliced_change_kind *kind;
    int n;           /* tasks */
    bool is_forward; /* from the first to the last */

    int n_done; /* the part's */
};

/* Queues a change by the user `uid`. */
void sliced_change_begin(struct http *http, struct sliced_change *change, uid_t uid);

/* Refuses the changes that are not complete. */
void sliced_changes_refuse(struct http *http);

#endif
