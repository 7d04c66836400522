/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a cluster, given to `simulate` where a trace is expected. */
#ifndef COLLOC_CLI_SIMULATING_LOG_H
#define COLLOC_CLI_SIMULATING_LOG_H

#include "base/fault.h"
#include "sim/catalogue.h"

struct simulated_log {
    const char *path;
    const struct catalogue *catalogue; /* where memory and activity of the jobs come from */
    int gpus_max;                      /* jobs that need more are left out */
    int64_t gpu_bytes;                 /* memory of a GPU, of which shards are parts */
    bool keeps_lengths; /* each job is a separate task with its length; else it is the task of the
                           catalogue that is most like it */
};

struct log_trace {
    int trace; /* descriptors of files in memory, for the caller to close; -1: the file shows the
                  format of no log */
    int tasks; /* the catalogue that the trace names; -1: that of the query */
};

/*
 * Makes a trace of a file that is the log of a cluster, as `colloc trace import` does, and prints
 * what was read and left out. Standard input is not read.
 *
 * Returns 0, or -errno with a fault.
 */
int simulating_log(
    const struct simulated_log *log, struct fault *fault, struct log_trace *ret_trace);

#endif
