/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper process for one action that may block: on a user's file system, a name service or an MPS
 * control daemon. It has a time limit, and the loop runs meanwhile. The process may become a user,
 * and that user may then stop or kill it. A process that exceeds its limit is killed. If the kernel
 * keeps it nevertheless, as in a file system that does not answer, it is reaped later.
 *
 *     helper.context = control;
 *     helper.on_done = on_started;
 *     r = user_helper_run(&helper, loop, &order, start_control_daemon, fault);
 */
#ifndef COLLOC_SERVICE_USER_HELPER_H
#define COLLOC_SERVICE_USER_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/fault.h"

enum { USER_HELPER_CHILD = 1 };

struct user_helper_order {
    uid_t uid;
    gid_t gid;
    int limit_ms;
    int queued_ms;    /* so much of the time for which it waits for a processor is not counted */
    const char *what; /* for people: "start MPS" */
    bool is_as_user;  /* user_helper_run: becomes the user first */

    /* Called when the child is reaped, which may be long after on_done; may be NULL. */
    void (*on_gone)(void *context);
    void *gone_context;
};

/* What the child reports: 0, a positive answer or -errno, with a fault. */
struct user_helper_report {
    int answer;
    struct fault fault;
};

/*
 * Returns how many milliseconds are left to a helper; 0: it has exceeded its limit.
 *
 * passed_us: since it began
 * queued_us: of these, it was ready, but had no processor
 */
int user_helper_left_ms(
    const struct user_helper_order *order, int64_t passed_us, int64_t queued_us);

struct user_helper_handles;

/* All zero: none is under way. While one is, the struct must not move in memory. */
struct user_helper {
    void *context;
    void (*on_done)(struct user_helper *helper, int answer, const struct fault *fault);
    struct user_helper_handles *handles; /* NULL: none under way */
};

static inline bool user_helper_is_under_way(const struct user_helper *helper)
{
    return helper->handles;
}

/*
 * Starts a helper.
 *
 * helper: the caller sets its context and on_done afterwards; neither is used before it returns
 * order:  copied
 *
 * Returns 0 in the caller, USER_HELPER_CHILD in the child, or -errno with a fault.
 */
int user_helper_begin(struct user_helper *helper, uv_loop_t *loop,
    const struct user_helper_order *order, struct fault *fault);

/* In the child: becomes the user, when the daemon is root. Returns 0 or -errno. */
int user_helper_become(const struct user_helper_order *order);

/* In the child: reports and ends it. */
_Noreturn void user_helper_end(struct user_helper *helper, const struct user_helper_report *report);

/*
 * Starts a helper that calls one function.
 *
 * helper: with its context and on_done
 * work:   called in the child with the context; returns the report's answer
 *
 * Returns 0, or -errno with a fault.
 */
static inline int user_helper_run(struct user_helper *helper, uv_loop_t *loop,
    const struct user_helper_order *order, int (*work)(void *context, struct fault *fault),
    struct fault *fault)
{
    int child = user_helper_begin(helper, loop, order, fault);
    if (child != USER_HELPER_CHILD)
        return child;
    struct user_helper_report report = {0};
    report.answer = order->is_as_user ? user_helper_become(order) : 0;
    if (report.answer == 0)
        report.answer = work(helper->context, &report.fault);
    user_helper_end(helper, &report);
}

/* Stops watching: on_done is not called, and the child continues by itself. Does nothing without a
 * child. */
void user_helper_leave(struct user_helper *helper);

#endif
