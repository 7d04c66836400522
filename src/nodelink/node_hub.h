/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's end of the link to the agents of Slurm nodes: accepts their connections on TCP,
 * checks each report, and hands it on. For any program with a libuv loop:
 *
 *     const struct node_hub_options options = {.loop = loop, .address = "0.0.0.0:7490",
 *         .hooks = {context, knows_node, on_report, on_gone}};
 *     if (node_hub_create(&options, &fault, &hub) < 0) ...
 *     ...
 *     node_hub_pin(hub, "n1", &pin);          before the job is released to Slurm
 *     ...
 *     node_hub_close(hub); uv_run(loop, ...); node_hub_destroy(hub);
 *
 * Contract:
 *   1. munged is called in the loop's thread pool only, so the loop never waits for it. The pool
 *      needs a thread that nothing else blocks. It is called for the first report of a connection
 *      and for answers; later reports are signed by a key (report_session.h). With TLS it is not
 *      called at all.
 *   2. on_report sees only reports of the user `agents`, or within TLS by the key, that are of a
 *      known node, newer than the last one of it, and not too frequent. All hooks are called in the
 *      loop.
 *   3. Whatever connects, memory is bounded: HUB_UNPROVEN_MAX connections that have not proven yet
 *      what they are, one for each known node, one line and one report each.
 *   4. on_report sees whole reports, also where an agent sends what has changed. Changes that do
 *      not build on the last accepted report of their connection reach nothing: the agent is asked
 *      for a whole report.
 */
#ifndef COLLOC_NODELINK_NODE_HUB_H
#define COLLOC_NODELINK_NODE_HUB_H

#include "base/tcp_address.h"
#include "nodelink/node_answer.h"
#include "nodelink/node_hub_options.h"

struct node_hub;

/* Listens. `options` is copied. Returns 0; or -errno with a fault: -EINVAL (no address),
 * -EADDRINUSE, -ENOMEM. */
int node_hub_create(
    const struct node_hub_options *options, struct fault *fault, struct node_hub **ret_hub);

/* Closes all connections without calling hooks. NULL is fine. */
void node_hub_close(struct node_hub *hub);

/* Releases the hub once the loop has run after node_hub_close. NULL is fine. */
void node_hub_destroy(struct node_hub *hub);

/* Returns the address that it listens on, borrowed. */
const struct tcp_address *node_hub_address(const struct node_hub *hub);

/*
 * Says to the agent of a node that a job is about to start there, and how it shares. An agent that
 * does not know starts it without MPS.
 *
 * Returns 0; -ENOTCONN: the node has no agent now; -ENOBUFS: too many are under way; or -ENOMEM.
 */
int node_hub_pin(struct node_hub *hub, const char *node, const struct node_pin *pin);

/*
 * Says to the agent of a node which of its jobs are to be off their GPUs: all of them, each time.
 *
 * jobs: at most NODE_JOBS_MAX
 *
 * Returns as node_hub_pin.
 */
int node_hub_order(struct node_hub *hub, const char *node, const uint32_t *jobs, size_t n);

/* Returns the counts since the start. */
struct node_hub_counts node_hub_counts(const struct node_hub *hub);

#endif
