/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread of a Slurm job is answered that waits for GPU memory on a node: a pure rule. A
 * server's daemon asks its core, which can suspend and move tasks; the agent of a node has only
 * what it sees, and reports it to the controller, which may have another job taken off the GPU. The
 * first row that applies decides:
 *
 *     the general limits (preload/wait_rule.h)                           the true error
 *     it and what its process holds exceed the GPU's memory              the true error
 *     enough is free, or the free memory is not known                    try, one in each poll
 *     its job has been alone on the GPU for ALONE_US                     the true error
 *     all jobs there wait, nothing else is there, this is the youngest,
 *     and no controller has taken one off the GPU within HELP_MS         the true error
 *     otherwise                                                          wait
 *
 * A job that then ends for lack of memory beside others is run again by itself (crash_verdict.h).
 */
#ifndef COLLOC_DAEMON_NODE_JOB_WAIT_RULE_H
#define COLLOC_DAEMON_NODE_JOB_WAIT_RULE_H

#include "base/reading.h"
#include "preload/wait_rule.h"

struct job_wait_case {
    struct wait_case general;
    struct reading free_bytes, total_bytes; /* of the GPU */
    bool is_taken;     /* another thread has been let try on this GPU since the last poll */
    int64_t alone_us;  /* how long its job has been alone there; 0: it is not */
    bool all_wait;     /* each job on the GPU, and nothing else is there */
    bool is_youngest;  /* of the jobs on the GPU */
    bool may_get_help; /* the agent takes jobs off their GPUs at the controller's word */
};

enum job_wait_answer { JOB_WAIT_ON, JOB_WAIT_TRY, JOB_WAIT_FAIL };

/* Returns the answer. With JOB_WAIT_FAIL *ret_why is the reason, for a log. */
enum job_wait_answer job_wait_decide(const struct job_wait_case *c, const char **ret_why);

#endif
