/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/events of the controller, for its web page. It keeps no log from which changes could be
 * read: once every few seconds an event says "read the lists again". Jobs that have ended are named
 * as soon as Slurm shows it; a reader that may have missed some reads all lists to their ends.
 *
 *     event: reset          event: reset            event: ended
 *     data: {}              data: {"all": true}     data: {"ids": [17, 18]}
 */
#ifndef COLLOC_SLURM_SLURM_EVENTS_H
#define COLLOC_SLURM_SLURM_EVENTS_H

#include <uv.h>

#include "api/request.h"
#include "slurm/slurm_controller.h"

struct slurm_events;

/*
 * Creates the part.
 *
 * loop, controller: borrowed
 * on_event:         called after events were sent, outside of the servers' own turns
 *
 * Returns NULL when memory is out.
 */
struct slurm_events *slurm_events_create(uv_loop_t *loop, const struct slurm_controller *controller,
    void (*on_event)(void *context), void *context);

/* Answers a request with the stream. */
void slurm_events_follow(struct slurm_events *events, struct api_request *request);

/* The controller has taken over what Slurm shows now: sends which jobs have ended. */
void slurm_events_updated(struct slurm_events *events);

/* Sends nothing any more. Call it when the servers have ended. NULL is fine. */
void slurm_events_close(struct slurm_events *events);

/* Releases it once the loop has run after slurm_events_close. NULL is fine. */
void slurm_events_destroy(struct slurm_events *events);

#endif
