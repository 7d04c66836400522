/* SPDX-License-Identifier: Apache-2.0 */
/* What the part messages is given when it is created: the hooks that it calls, and what it
 * borrows. */
#ifndef COLLOC_DAEMON_MESSAGES_MESSAGES_HOOKS_H
#define COLLOC_DAEMON_MESSAGES_MESSAGES_HOOKS_H

#include <jansson.h>
#include <uv.h>

#include "daemon/config.h"
#include "store/store.h"

/* What the part calls. All must be set; each gets `context`. */
struct messages_hooks {
    void *context;

    /* Returns the TASK object, live or ended, as its owner sees it, for the part to release; NULL:
     * there is none. */
    json_t *(*find_task)(void *context, uint64_t task);

    /* Returns the label of a GPU of the core's view ("0"), or "?". */
    const char *(*gpu_label)(void *context, int gpu);

    /* Returns whose share of the turns a user has: its id, or that of all unlisted users. */
    uid_t (*share_of)(void *context, uid_t uid);
};

struct messages_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    struct store *store;
    struct messages_hooks hooks;
};

#endif
