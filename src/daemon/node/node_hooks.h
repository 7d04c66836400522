/* SPDX-License-Identifier: Apache-2.0 */
/* What the part node is given when it is created: the hooks that it calls, and what it borrows. */
#ifndef COLLOC_DAEMON_NODE_NODE_HOOKS_H
#define COLLOC_DAEMON_NODE_NODE_HOOKS_H

#include <sys/types.h>
#include <uv.h>

#include "base/fault.h"
#include "daemon/config.h"

enum { NODE_MPS_WAIT = 1 };

/* What the part calls. All must be set; each gets `context`. */
struct node_hooks {
    void *context;

    /* Makes sure that the user has an MPS control daemon. Returns 0; NODE_MPS_WAIT: not yet,
     * node_mps_ready will be called; or a fault: the step runs without MPS. */
    int (*prepare_mps)(
        void *context, uid_t uid, gid_t gid, const char **ret_pipe_dir, struct fault *fault);

    /* A step of this user that shared by MPS has ended. */
    void (*mps_step_ended)(void *context, uid_t uid);
};

struct node_options {
    uv_loop_t *loop; /* borrowed, as the configuration */
    const struct config *config;
    struct node_hooks hooks;
};

#endif
