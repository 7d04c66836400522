/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output that is kept in the state folder, because a task's working folder does not take it, is on
 * the disk of the event log. It has a limit for each user, and gives way when that disk is nearly
 * full: of a user the oldest goes first, but for its end.
 */
#ifndef COLLOC_DAEMON_KEPT_OUTPUT_H
#define COLLOC_DAEMON_KEPT_OUTPUT_H

#include <sys/types.h>
#include <uv.h>

#include "daemon/config.h"
#include "daemon/disk.h"

struct kept_output;

/* Creates the part, which checks from now on; all is borrowed and outlives it. Returns NULL when
 * memory is out. */
struct kept_output *kept_output_create(
    uv_loop_t *loop, const struct config *config, const struct disk *disk);

/* Ends that. NULL is fine. */
void kept_output_close(struct kept_output *kept);

/* Releases the part once the loop has run after kept_output_close. NULL is fine. */
void kept_output_destroy(struct kept_output *kept);

enum { KEPT_OUTPUT_LEFT = 16 << 10 }; /* bytes of the end that stay; chosen: an error's lines */

/* One file of output in an attempt's folder. */
struct kept_file {
    uint64_t task;
    int attempt;
    bool is_stderr;
    uid_t uid;
    int64_t bytes;      /* on the disk */
    int64_t changed_us; /* the wall clock */
    bool is_dropped;    /* the answer */
};

struct kept_limits {
    int64_t user_bytes;  /* of a user's files together; 0: no limit */
    int64_t free_bytes;  /* that the disk lacks */
    int64_t spare_bytes; /* a user with less than this is left alone when the disk lacks space */
};

/*
 * Chooses what is dropped: of each user above the limit the oldest files, until the rest is below
 * it; then, until the disk lacks nothing, the oldest file of the user that has most.
 *
 * files: sorted by user and time when it returns
 */
void kept_output_choose(struct kept_file *files, size_t n, const struct kept_limits *limits);

#endif
