/* SPDX-License-Identifier: Apache-2.0 */
/* What the part messages is given when it is created. */
#ifndef COLLOC_DAEMON_MESSAGES_MESSAGES_OPTIONS_H
#define COLLOC_DAEMON_MESSAGES_MESSAGES_OPTIONS_H

#include <uv.h>

#include "core/core.h"
#include "daemon/config.h"
#include "daemon/http/http.h"
#include "service/user_names.h"
#include "store/store.h"

struct messages_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    struct store *store;
    const struct core *core;
    struct names *names;
    struct http *http;
};

#endif
