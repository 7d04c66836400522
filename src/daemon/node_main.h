/* SPDX-License-Identifier: Apache-2.0 */
/* The process `collocd --node`. */
#ifndef COLLOC_DAEMON_NODE_MAIN_H
#define COLLOC_DAEMON_NODE_MAIN_H

#include "daemon/config.h"

/* Runs the agent until a signal ends it. Returns the exit status. */
int node_run(struct config *config);

#endif
