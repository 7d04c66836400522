/* SPDX-License-Identifier: Apache-2.0 */
/* What the part outside is given when it is created. */
#ifndef COLLOC_DAEMON_OUTSIDE_OUTSIDE_OPTIONS_H
#define COLLOC_DAEMON_OUTSIDE_OUTSIDE_OPTIONS_H

#include "daemon/config.h"
#include "daemon/gpus/gpus.h"
#include "daemon/messages/messages.h"
#include "service/user_names.h"

struct outside_options {
    const struct config *config; /* borrowed, as the others; all outlive the part */
    struct names *names;
    struct gpus *gpus;
    struct messages *messages; /* NULL: none are sent */
};

#endif
