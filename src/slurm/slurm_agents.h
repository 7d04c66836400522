/* SPDX-License-Identifier: Apache-2.0 */
/* The agents of the nodes: what they report goes to the controller, and they learn which jobs are
 * about to start (nodelink/node_hub.h). */
#ifndef COLLOC_SLURM_SLURM_AGENTS_H
#define COLLOC_SLURM_SLURM_AGENTS_H

#include <uv.h>

#include "slurm/slurm_config.h"
#include "slurm/slurm_controller.h"

struct slurm_agents;

/*
 * Listens, if the setting `listen` has an address.
 *
 * on_news:    called in the loop when the controller has to read Slurm again
 * on_samples: the same when it may place a job that it has read, by the agents' measurements
 * ret_agents: NULL without `listen`; for slurm_agents_destroy
 *
 * Returns 0, or -errno with a fault.
 */
int slurm_agents_create(uv_loop_t *loop, const struct slurm_config *config,
    struct slurm_controller *controller, void (*on_news)(void *context),
    void (*on_samples)(void *context), void *context, struct fault *fault,
    struct slurm_agents **ret_agents);

/* Says to the node's agent that a job is about to be pinned there. NULL is fine. */
void slurm_agents_announce(struct slurm_agents *agents, const struct slurm_change *pin);

/* Says to the agents which jobs are to be off their GPUs by now. NULL is fine. */
void slurm_agents_order(struct slurm_agents *agents);

/* Closes all connections. NULL is fine. */
void slurm_agents_close(struct slurm_agents *agents);

/* Releases it once the loop has run for the last time. NULL is fine. */
void slurm_agents_destroy(struct slurm_agents *agents);

#endif
