/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of many users for helper processes (user_helper.h), of which a bounded number run at a time.
 * The result comes back in memory that is shared with the helper.
 *
 * Contract:
 * 1. A helper has `limit_ms`, and where it waits for a processor at most twice that; work waits at
 *    most `wait_ms` for one. So it is whatever the file system does.
 * 2. A user has at most `per_user` helpers, including those that were killed and that the kernel
 *    keeps; all users together have `helpers`. Further work waits, first in, first out, except that
 *    other users pass a user with the maximum number of helpers.
 * 3. The queue never blocks the loop: it forks, and waits for events.
 */
#ifndef COLLOC_SERVICE_HELPER_QUEUE_H
#define COLLOC_SERVICE_HELPER_QUEUE_H

#include <uv.h>

#include "service/user_helper.h"

enum {
    HELPER_QUEUE_HELPERS_MAX = 64,
    HELPER_QUEUE_BUSY = 1, /* the work has waited too long for a helper */
};

struct helper_queue_options {
    uv_loop_t *loop; /* borrowed */
    int helpers;     /* at most HELPER_QUEUE_HELPERS_MAX */
    int per_user;
    int limit_ms, wait_ms;
    const char *what; /* for people: "read the file"; borrowed */
};

struct helper_work {
    uid_t uid;
    gid_t gid;
    size_t answer_size; /* bytes */
    void *context;

    /* In the helper, which is still the daemon: becomes the user and does the work. `ret_answer`:
     * answer_size bytes, zero at first. Returns 0, or -errno with a fault. */
    int (*run)(void *context, const struct user_helper_order *order, void *ret_answer,
        struct fault *fault);

    /*
     * answer: borrowed; NULL unless r is 0. A copy, which the helper cannot change any more; the
     *         user may control the helper: it is to be checked
     * r:      0; HELPER_QUEUE_BUSY; what `run` returned; -ETIMEDOUT; -EIO: the helper died;
     *         -ECANCELED; -ENOMEM; another -errno of the fork. With a fault
     */
    void (*on_done)(void *context, int r, const void *answer, const struct fault *fault);
};

struct helper_queue;

/* `options`: copied. Returns NULL when memory is out. */
struct helper_queue *helper_queue_create(const struct helper_queue_options *options);

/* Ends all work with -ECANCELED. NULL is fine. */
void helper_queue_close(struct helper_queue *queue);

/* Releases it once the loop has run for the last time. NULL is fine. */
void helper_queue_destroy(struct helper_queue *queue);

/* Begins the work, or lets it wait; `work` is copied. Returns 0, on_done will be called, perhaps
 * from within; or -ENOMEM. */
int helper_queue_add(struct helper_queue *queue, const struct helper_work *work);

#endif
