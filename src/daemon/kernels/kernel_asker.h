/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks cuDNN, on a GPU of this server, which kernels it takes for the convolutions of a task: by
 * colloc-cudnn (kernels/ask_cudnn.c), a process that is killed when it takes too long or too much.
 * Answers are kept (kernel_store.h).
 *
 * Contract:
 * 1. The loop never waits. A request is answered after KERNELS_BOUND_US at the latest; what comes
 *    later is kept, and the next estimate uses it.
 * 2. One process asks at a time, for KERNELS_LIMIT_US at most. A user has at most
 *    KERNELS_PER_USER requests that are not done, and in a day what asking_budget.h allows.
 * 3. It runs where asking_rule.h allows it. Where that changes, or it takes more memory than the
 *    setting kernels-memory, it is killed.
 * 4. After a failure nothing is asked for KERNELS_REST_US: of all users where the process did not
 *    get as far as its first question, otherwise of the user whose question it was.
 * 5. The process has neither root's rights nor those of a user with tasks (kernels/confine.h): its
 *    answers are kept for all, so no user may have power over it.
 */
#ifndef COLLOC_DAEMON_KERNELS_KERNEL_ASKER_H
#define COLLOC_DAEMON_KERNELS_KERNEL_ASKER_H

#include <sys/types.h>
#include <uv.h>

#include "base/clock.h"
#include "daemon/config.h"
#include "daemon/driver.h"
#include "daemon/gpus/gpus.h"
#include "kernels/kernel_answers.h"

enum {
    KERNELS_ASKED_MAX = 512, /* questions of a request; chosen: most networks have fewer */
    KERNELS_PER_USER = 2,    /* chosen */
    KERNELS_REQUESTS_MAX = 16,
    KERNELS_WHY_SIZE = 200,
};

#define KERNELS_BOUND_US (2 * SECOND_US) /* chosen: a submission may wait that long */
#define KERNELS_LIMIT_US                                                                           \
    (20 * SECOND_US)                     /* networks took up to 13.5 s (docs/measured/kernels.md) */
#define KERNELS_REST_US (10 * MINUTE_US) /* chosen: a missing library is found soon enough */

struct kernel_asker_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    struct core *core;
    struct driver *driver;
    struct gpus *gpus;
};

struct kernel_asker;

/* Reads the kept answers. Returns NULL when memory is out. */
struct kernel_asker *kernel_asker_create(const struct kernel_asker_options *options);

/* Kills the process, and answers all requests. NULL is fine. */
void kernel_asker_close(struct kernel_asker *asker);

/* Releases it once the loop has run for the last time. NULL is fine. */
void kernel_asker_destroy(struct kernel_asker *asker);

/* Returns the kept answers of a kind of GPU: of the present driver, or (is_any) of the driver that
 * was used last. NULL: there are none. Borrowed until the loop goes on. */
const struct kernel_answers *kernel_asker_answers(
    const struct kernel_asker *asker, const char *gpu_kind, bool is_any);

/* Returns whether the setting wants it. */
bool kernel_asker_is_on(const struct kernel_asker *asker);

struct kernel_request {
    uid_t uid;
    const char *gpu_kind;                  /* as all: borrowed until kernel_asker_ask returns */
    const struct conv_question *questions; /* at most KERNELS_ASKED_MAX */
    size_t n;
    void *context;

    /* Called once, not from within kernel_asker_ask. why: NULL: all have an answer; else the
     * reason, for people. */
    void (*on_done)(void *context, const char *why);
};

/* Asks. Returns NULL, and on_done will be called; or the reason why it is not asked. */
const char *kernel_asker_ask(struct kernel_asker *asker, const struct kernel_request *request);

/* The GPUs were polled, or a task is about to start: see the contract, 3. */
void kernel_asker_review(struct kernel_asker *asker);

#endif
