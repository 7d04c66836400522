/* SPDX-License-Identifier: Apache-2.0 */
/* Notices lines that Slurm's Lua scripts append to the wake file, without waiting. */
#ifndef COLLOC_SLURM_WAKE_WATCH_H
#define COLLOC_SLURM_WAKE_WATCH_H

#include <uv.h>

#include "base/fault.h"

struct wake_watch {
    uv_poll_t poll;
    int fd;         /* inotify; -1: nothing is watched */
    char name[256]; /* of the file in its folder */
    void (*on_wake)(void *context);
    void *context;
};

/*
 * Watches a file, which need not be there yet; its folder must be.
 *
 * path: "none": nothing is watched
 *
 * Returns 0, or -errno with a fault.
 */
int wake_watch_start(struct wake_watch *watch, uv_loop_t *loop, const char *path,
    void (*on_wake)(void *context), void *context, struct fault *fault);

/* Stops watching. The struct is free once the loop has run. */
void wake_watch_stop(struct wake_watch *watch);

#endif
