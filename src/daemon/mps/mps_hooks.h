/* SPDX-License-Identifier: Apache-2.0 */
/* What the part mps is given when it is created: the hooks that it calls, and what it borrows. */
#ifndef COLLOC_DAEMON_MPS_HOOKS_H
#define COLLOC_DAEMON_MPS_HOOKS_H

#include <uv.h>

#include "daemon/config.h"
#include "daemon/user_names.h"

/* What the part calls. All must be set; each gets `context`. */
struct mps_hooks {
    void *context;

    /* This user's control daemon was started or stopped, or could not be: tasks that wait for it
     * may start now. */
    void (*ready)(void *context, uid_t uid);

    /* A request was answered outside of its handler. */
    void (*answered)(void *context);

    /* Returns how many clients the user has: tasks that share by MPS now. */
    int (*count_clients)(void *context, uid_t uid);

    /* Lists the UUIDs of the GPUs that a control daemon serves, borrowed. Returns how many, at most
     * `max`. Called in a helper process. */
    size_t (*list_gpus)(void *context, const char **uuids, size_t max);
};

struct mps_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    struct names *names;
    struct mps_hooks hooks;
};

#endif
