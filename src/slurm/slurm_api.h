/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the requests of `colloc queue`, `show`, `gpus`, `top` and `info` to the controller: the
 * GET requests of docs/protocol.md on a Unix socket, for all users of the machine. */
#ifndef COLLOC_SLURM_SLURM_API_H
#define COLLOC_SLURM_SLURM_API_H

#include <uv.h>

#include "slurm/slurm_config.h"
#include "slurm/slurm_controller.h"

struct slurm_api;

/*
 * Listens, unless the setting `socket` is "none".
 *
 * config, controller: borrowed until slurm_api_destroy
 * ret_api:            NULL without a socket; for slurm_api_destroy
 *
 * Returns 0, or -errno with a fault.
 */
int slurm_api_create(uv_loop_t *loop, const struct slurm_config *config,
    const struct slurm_controller *controller, struct fault *fault, struct slurm_api **ret_api);

/* The controller has been updated: sends the ended jobs to readers of events. NULL is fine. */
void slurm_api_updated(struct slurm_api *api);

/* Ends listening. NULL is fine. */
void slurm_api_close(struct slurm_api *api);

/* Releases it once the loop has run for the last time. NULL is fine. */
void slurm_api_destroy(struct slurm_api *api);

#endif
