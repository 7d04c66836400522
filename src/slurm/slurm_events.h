/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/events of the controller, for its web page. It keeps no log from which changes could be
 * read, so that there is one kind of event only: once every few seconds, "read the lists again".
 *
 *     event: reset
 *     data: {}
 */
#ifndef COLLOC_SLURM_SLURM_EVENTS_H
#define COLLOC_SLURM_SLURM_EVENTS_H

#include <uv.h>

#include "api/server.h"

struct slurm_events;

/*
 * Creates the part.
 *
 * loop:     borrowed
 * on_event: called after events were sent, outside of the servers' own turns
 *
 * Returns NULL when memory is out.
 */
struct slurm_events *slurm_events_create(
    uv_loop_t *loop, void (*on_event)(void *context), void *context);

/* Answers a request with the stream. */
void slurm_events_follow(struct slurm_events *events, struct api_request *request);

/* Sends nothing any more. Call it when the servers have ended. NULL is fine. */
void slurm_events_close(struct slurm_events *events);

/* Releases it once the loop has run after slurm_events_close. NULL is fine. */
void slurm_events_destroy(struct slurm_events *events);

#endif
