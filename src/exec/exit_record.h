/* SPDX-License-Identifier: Apache-2.0 */
/* The exit record: how an attempt ended, written by its shim. */
#ifndef COLLOC_EXEC_EXIT_RECORD_H
#define COLLOC_EXEC_EXIT_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "exec/failure.h"

struct attempt_exit {
    int exit_code; /* 0..255; -1: a signal ended it, or it never ran */
    int signal;    /* 0: no signal ended it */
    struct failure failure;
    int64_t start_wall_us; /* the wall clock at the start */
    int64_t end_wall_us;   /* start_wall_us and, by a monotonic clock, the time until the last
                              process had ended */
    int64_t max_rss_bytes; /* of its largest process */
    int64_t cpu_us;        /* of all its processes, user and system */
};

/*
 * Allocates the space that exit_record_write will need, so that an end can be recorded on a disk
 * that has become full. Returns 0 or -errno (-ENOSPC, -EDQUOT: it is full now).
 */
int exit_record_reserve(const char *folder);

/* Replaces the attempt's `exit` file, atomically and durably. Returns 0 or -errno. */
int exit_record_write(const char *folder, const struct attempt_exit *attempt);

/* Reads the attempt's `exit` file. Returns 0; or with a fault: -ENOENT (there is none yet),
 * -EBADMSG (it is not an exit record) or another -errno. */
int exit_record_read(const char *folder, struct fault *fault, struct attempt_exit *ret);

/* Decodes the bytes of an `exit` file; any bytes are allowed. Returns 0 or -EBADMSG. */
int exit_record_decode(const char *data, size_t size, struct attempt_exit *ret);

#endif
