/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates from large summaries, in helper processes (helper_queue.h). Parsing an export of many
 * MiB takes seconds, which the loop does not have. The helper is a fork: it has the daemon's data
 * at its start (run history, GPUs, settings) and becomes the user, which also named the file.
 *
 * Contract:
 * 1. A helper has ESTIMATE_LIMIT_MS, without the time for which it waits for a processor, and at
 *    most twice that. An estimate waits at most twice as long for one.
 * 2. A user has at most ESTIMATE_HELPERS_PER_USER helpers, all users together ESTIMATE_HELPERS.
 * 3. The helpers end with the daemon.
 */
#ifndef COLLOC_SERVICE_ESTIMATE_HELPERS_H
#define COLLOC_SERVICE_ESTIMATE_HELPERS_H

#include <uv.h>

#include "base/fault.h"

enum {
    ESTIMATE_LIMIT_MS = 30 * 1000, /* chosen: the largest export takes 3 s on an idle CPU */
    ESTIMATE_WAITS = 2,            /* limits that an estimate waits for a helper; chosen */
    ESTIMATE_ANSWER_MAX_MS = (ESTIMATE_WAITS + 2) * ESTIMATE_LIMIT_MS, /* from its begin */
    ESTIMATE_HELPERS = 16,         /* chosen: each may take some hundred MiB */
    ESTIMATE_HELPERS_PER_USER = 2, /* chosen */
    ESTIMATE_BUSY = 1,             /* it waited too long for a helper: try again later */
};

struct estimate_work {
    uid_t uid;
    gid_t gid;
    const char *path; /* the summary's file, opened as the user; or NULL: `text`. Both borrowed */
    const char *text;
    size_t answer_size; /* bytes: an answer has no pointers */
    void *context;

    /* Estimates, in the helper. `ret_answer`: zero at first. Returns 0, or -errno with a fault. */
    int (*estimate)(
        void *context, const char *text, size_t size, void *ret_answer, struct fault *fault);

    /*
     * answer: borrowed; NULL unless r is 0. The user may control the helper: it is to be checked
     * r:      0; ESTIMATE_BUSY; what `estimate` returned; an error of opening the file; -ETIMEDOUT;
     *         -EIO: the helper died; -ECANCELED. With a fault
     */
    void (*on_done)(void *context, int r, const void *answer, const struct fault *fault);
};

struct estimate_helpers;

/* limit_ms: of one estimate. Returns NULL when memory is out. */
struct estimate_helpers *estimate_helpers_create(uv_loop_t *loop, int limit_ms);

/* Ends all estimates with -ECANCELED. NULL is fine. */
void estimate_helpers_close(struct estimate_helpers *helpers);

/* Releases it once the loop has run for the last time. NULL is fine. */
void estimate_helpers_destroy(struct estimate_helpers *helpers);

/* Begins an estimate, or lets it wait; `work` is copied. Returns 0, on_done will be called, perhaps
 * from within; or -ENOMEM. */
int estimate_helpers_begin(struct estimate_helpers *helpers, const struct estimate_work *work);

#endif
