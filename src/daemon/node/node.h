/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent of a Slurm node (`collocd --node`, docs/slurm-node.md): samples the node's GPUs and
 * reports them to the controller each second, prepares MPS for the job steps that Slurm starts,
 * finds out which failed jobs ran out of GPU memory, and ends the node's jobs when slurmd is lost.
 * It places nothing.
 *
 * Contract:
 *   1. A step never waits for the agent longer than the plugin's limit, and never fails because of
 *      it: without an answer it runs without MPS.
 *   2. NVML, munged and /proc are read in the loop's thread pool, or in helper processes.
 */
#ifndef COLLOC_DAEMON_NODE_NODE_H
#define COLLOC_DAEMON_NODE_NODE_H

#include "base/fault.h"
#include "daemon/node/node_options.h"

struct node;

/* Creates the part. `options` is copied. Returns NULL when memory is out. */
struct node *node_create(const struct node_options *options);

/* Listens for steps, connects to the controller and begins to sample. Returns 0, or -errno with a
 * fault: a setting is wrong, or the socket cannot be made. */
int node_open(struct node *node, struct fault *fault);

/* Ends all parts; jobs continue. NULL is fine. */
void node_close(struct node *node);

/* Releases the part once the loop has run after node_close. NULL is fine. */
void node_destroy(struct node *node);

/* The control daemon of this user was started, or could not be: steps that wait for it start. */
void node_mps_ready(struct node *node, uid_t uid);

/* Returns how many steps of this user share by MPS now. */
int node_count_mps_steps(const struct node *node, uid_t uid);

/* Lists the UUIDs of the GPUs, borrowed. Returns how many, at most `max`. */
size_t node_list_gpus(const struct node *node, const char **uuids, size_t max);

#endif
