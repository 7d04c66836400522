/* SPDX-License-Identifier: Apache-2.0 */
/* Passes the samples of `colloc record` to MLflow, W&B or TensorBoard (python/colloc/tracking). */
#ifndef COLLOC_CLI_RECORD_TRACKER_H
#define COLLOC_CLI_RECORD_TRACKER_H

#include <stdio.h>
#include <sys/types.h>

#include "base/fault.h"

struct record_tracker {
    FILE *csv;  /* text written here goes to the tracker and to `also` */
    FILE *also; /* or NULL */
    int socket;
    pid_t pid;
};

/*
 * Starts a tracker.
 *
 * places:  comma-separated, as of track_places.h
 * also:    file of the samples, borrowed; or NULL
 * tracker: filled; stays where it is until record_tracker_close
 *
 * Returns 0, or -errno with a fault.
 */
int record_tracker_open(
    const char *places, FILE *also, struct fault *fault, struct record_tracker *tracker);

/* Waits until the tracker has sent the rest, which it does for ten seconds at most. */
void record_tracker_close(struct record_tracker *tracker);

#endif
