/* SPDX-License-Identifier: Apache-2.0 */
/* What process trees use of the host: CPU time, memory, disk and network. */
#ifndef COLLOC_EXEC_PROCESS_USAGE_H
#define COLLOC_EXEC_PROCESS_USAGE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/fault.h"
#include "base/reading.h"

/* Of one tree. A total counts since the tree's start and only grows while no process leaves the
 * tree; what one of its processes does not report is not valid for the tree. */
struct process_usage {
    struct reading cpu_s;          /* processor seconds, total */
    struct reading resident_bytes; /* now; memory that processes share counts in each */
    struct reading disk_read_bytes, disk_written_bytes; /* total, of block devices */
    struct reading net_received_bytes, net_sent_bytes;  /* total; only of a tree in another network
                                                           namespace: see below */
};

/*
 * Reads the usage of each of `roots` with all descendants, in one pass over /proc.
 *
 * Linux counts network traffic by network namespace, not by process. A tree in the caller's
 * namespace has no valid network readings.
 *
 * ret_usage: n of them
 *
 * Returns 0, or -errno.
 */
int process_usage_read(const pid_t *roots, size_t n, struct process_usage *ret_usage);

#endif
