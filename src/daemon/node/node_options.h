/* SPDX-License-Identifier: Apache-2.0 */
/* What the part node is given when it is created. */
#ifndef COLLOC_DAEMON_NODE_NODE_OPTIONS_H
#define COLLOC_DAEMON_NODE_NODE_OPTIONS_H

#include <uv.h>

#include "daemon/config.h"
#include "daemon/mps/mps_manager.h"

struct node_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    struct mps *mps;
};

#endif
