/* SPDX-License-Identifier: Apache-2.0 */
/* How good the daemon's estimates were so far, in one line: `colloc estimate --history`. */
#ifndef COLLOC_CLI_ESTIMATE_HISTORY_H
#define COLLOC_CLI_ESTIMATE_HISTORY_H

#include "cli/command.h"

/* Asks the daemon for all tasks and prints the errors of their estimates. Returns the exit code. */
int estimate_history_print(const struct invocation *invocation);

#endif
