/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errands: what may wait for somebody else (a user's file system, a name service, an MPS control
 * daemon), done in a child process with a time limit, while the loop goes on. The child may become
 * a user, who may then stop or kill it. A child that is over its time is killed; one that the
 * kernel keeps nevertheless, as in a file system that does not answer, is reaped when it is gone.
 *
 *     child = errand_begin(&errand, loop, &order, fault);
 *     if (child == ERRAND_CHILD) { ... errand_become(&order); ...; errand_end(&errand, &report); }
 *     errand.context = ...; errand.on_done = ...;
 */
#ifndef COLLOC_DAEMON_ERRAND_H
#define COLLOC_DAEMON_ERRAND_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/fault.h"

enum { ERRAND_CHILD = 1 };

struct errand_order {
    uid_t uid;
    gid_t gid;
    int limit_ms;
    const char *what; /* for people: "start MPS" */

    /* Called when the child is reaped, which may be long after on_done; may be NULL. */
    void (*on_gone)(void *context);
    void *gone_context;
};

/* What the child has to say: 0, a positive answer or -errno; the fault in words. */
struct errand_report {
    int answer;
    struct fault fault;
};

struct errand_handles;

/* All zero: none under way. Once one is, it must stay where it is in memory until it is done or
 * left. */
struct errand {
    void *context;
    void (*on_done)(struct errand *errand, int answer, const struct fault *fault);
    struct errand_handles *handles; /* NULL: none under way */
};

static inline bool errand_is_under_way(const struct errand *errand)
{
    return errand->handles;
}

/* 0 in the caller, ERRAND_CHILD in the child, or -errno. on_done is never called from within. */
int errand_begin(
    struct errand *errand, uv_loop_t *loop, const struct errand_order *order, struct fault *fault);

/* In the child: becomes the user, when the daemon is root. 0 or -errno. */
int errand_become(const struct errand_order *order);

/* In the child: reports and ends it. */
_Noreturn void errand_end(struct errand *errand, const struct errand_report *report);

/* Does not wait any more; the child goes on by itself. Nothing happens when none is under way. */
void errand_leave(struct errand *errand);

#endif
