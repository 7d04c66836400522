/* SPDX-License-Identifier: Apache-2.0 */
/* Did a job run out of GPU memory beside others? Then Slurm requeues and holds it while it still
 * counts as running: it never fails, and the jobs that depend on it wait for its second run. */
#ifndef COLLOC_DAEMON_NODE_CRASH_VERDICT_H
#define COLLOC_DAEMON_NODE_CRASH_VERDICT_H

#include "daemon/node/node_state.h"

struct crash_verdict;

/* `crash`: the job was requeued; NULL: it was not. */
typedef void crash_verdict_done(void *context, const struct node_crash *crash);

/*
 * Begins to judge a step of a batch script that has failed.
 *
 * status:  as waitpid shows it
 * on_done: called from the loop
 *
 * Returns NULL when no helper process can be started.
 */
struct crash_verdict *crash_verdict_begin(struct node *node, const struct node_step *step,
    int status, crash_verdict_done *on_done, void *context);

/* on_done is not wanted any more; a requeue is still reported to the controller. NULL is fine. */
void crash_verdict_leave(struct crash_verdict *verdict);

#endif
