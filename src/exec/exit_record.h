/* SPDX-License-Identifier: Apache-2.0 */
/* How an attempt ended, as its shim wrote it down. */
#ifndef COLLOC_EXEC_EXIT_RECORD_H
#define COLLOC_EXEC_EXIT_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "exec/failure.h"

struct attempt_exit {
    int exit_code; /* 0..255; -1 when a signal ended it or it never ran */
    int signal;    /* 0 when it exited by itself */
    struct failure failure;
    int64_t start_wall_us; /* the wall clock's time at the start */
    int64_t end_wall_us;   /* that, and how long it took until nothing of it was left, by a clock
                              that does not jump */
    int64_t max_rss_bytes; /* of its largest process */
    int64_t cpu_us;        /* of all its processes, user and system */
};

/*
 * Allocates the space that exit_record_write will need, so that an end can be recorded on a disk
 * that has become full. Returns 0 or -errno (-ENOSPC, -EDQUOT: it is full now).
 */
int exit_record_reserve(const char *folder);

/* Replaces the attempt's `exit` file whole and durably. 0 or -errno. */
int exit_record_write(const char *folder, const struct attempt_exit *attempt);

/* 0, -ENOENT when there is none yet, -EBADMSG, -errno. */
int exit_record_read(const char *folder, struct fault *fault, struct attempt_exit *ret);

/* The bytes of an exit file. 0 or -EBADMSG. */
int exit_record_decode(const char *data, size_t size, struct attempt_exit *ret);

#endif
