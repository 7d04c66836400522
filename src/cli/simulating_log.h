/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a cluster, given to `simulate` where a trace is expected. */
#ifndef COLLOC_CLI_SIMULATING_LOG_H
#define COLLOC_CLI_SIMULATING_LOG_H

#include "base/fault.h"
#include "sim/catalogue.h"

/*
 * Makes a trace of a file that is the log of a cluster, as `colloc trace import` does without
 * options, and prints what was read and left out. Standard input is not read.
 *
 * catalogue: its tasks are those of the trace
 * gpus:      jobs that need more are left out
 * ret_fd:    the trace, for the caller to close; -1: the file shows the format of no log
 *
 * Returns 0, or -errno with a fault.
 */
int simulating_log(const char *path, const struct catalogue *catalogue, int gpus,
    struct fault *fault, int *ret_fd);

#endif
