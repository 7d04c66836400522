/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of a Slurm node that give way: at the controller's word their memory is taken off their GPUs
 * and put back, by the carrier (docs/carrier.md) and by NVIDIA's driver (docs/suspend.md). To Slurm
 * they run all the time.
 *
 *     HERE ──the controller orders it──> GOING ──> OUT ──no order, and memory is free──> COMING ─┐
 *      ^          └──it cannot be: all of it goes on, the report says why──┘                     │
 *      └─────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * Contract:
 * 1. An order holds for AWAY_LEASE_MS. Without another one the job comes back: no job stays out for
 *    a controller that has ended, or is not reached. The time is this machine's monotonic clock.
 * 2. A record is on disk before anything is changed. An agent that finds one takes the job for out,
 *    whatever its processes say. It brings back at once what had not left wholly, and the others
 *    when no controller has ordered them out for a lease. So a kill leaves none away. Of a damaged
 *    record what it had is found again by the job's processes.
 * 3. A job comes back only where its memory was, and only when that much is free there.
 * 4. Processes that Slurm has stopped (`scontrol suspend`) are neither taken off their GPUs nor put
 *    back: the driver's calls hang on them. They come back after `scontrol resume`.
 * 5. One job at a time is on its way, beside those that are with the driver. No two with a GPU in
 *    common are on their way at once (checkpoint/helper_pool.h says why).
 */
#ifndef COLLOC_DAEMON_NODE_AWAY_JOBS_H
#define COLLOC_DAEMON_NODE_AWAY_JOBS_H

#include <sys/types.h>

#include "base/process.h"
#include "nodelink/node_job.h"

struct node;

enum {
    AWAY_LEASE_MS = 30 * 1000
}; /* chosen: the controller repeats an order each second; it may
                                       be restarted, or wait for slurmctld, within that */

/* Begins, with what an earlier agent has left. Without the preloaded library, or with
 * `suspend: no`, only what was left comes back. */
void away_jobs_open(struct node *node);
void away_jobs_close(struct node *node);
void away_jobs_destroy(struct node *node);

/* Does the agent take jobs off their GPUs? */
bool away_jobs_are_taken(const struct node *node);

/* The controller's order: these jobs are to be out, and no others. */
void away_jobs_order(struct node *node, const uint32_t *jobs, size_t n);

/* The GPUs were polled. */
void away_jobs_poll(struct node *node);

/* Is the process of a job that is out, or on its way? Its gate is closed. */
bool away_jobs_hold(const struct node *node, uint32_t job, struct process_id id);

/* Is the job out, or on its way? */
bool away_jobs_has(const struct node *node, uint32_t job);

/* Returns how much host memory jobs that are out have, and how much they may: the setting
 * suspend-memory-max. */
int64_t away_jobs_out_bytes(const struct node *node);
int64_t away_jobs_max_bytes(const struct node *node);

/* Adds what is to be reported to `n` jobs that are listed already. Returns how many there are. */
size_t away_jobs_report(const struct node *node, struct node_job *jobs, size_t n, size_t max);

#endif
