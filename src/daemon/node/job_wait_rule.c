/* SPDX-License-Identifier: Apache-2.0 */
/* The table of job_wait_rule.h, row by row. */
#include "daemon/node/job_wait_rule.h"

#include "base/clock.h"

/* As on a server (docs/preload.md): chosen, a neighbour that has just ended is in the poll by then.
 */
static const int64_t ALONE_US = 3 * SECOND_US;

/* Chosen: a report each second, a decision within another, and half a minute in which a job leaves
 * its GPU; then the controller will not help. */
static const uint64_t HELP_MS = 40 * 1000;

static bool is_more_than_the_gpu(const struct job_wait_case *c)
{
    double wanted = (double)c->general.bytes + (double)c->general.held_bytes;
    return c->total_bytes.valid && wanted > c->total_bytes.value;
}

static bool is_free(const struct job_wait_case *c)
{
    return !c->free_bytes.valid || c->free_bytes.value >= (double)c->general.bytes;
}

enum job_wait_answer job_wait_decide(const struct job_wait_case *c, const char **ret_why)
{
    const char *why = wait_rule_why_fails(&c->general);
    if (!why && is_more_than_the_gpu(c))
        why = "the GPU has less memory in all";
    if (!why && is_free(c))
        return c->is_taken ? JOB_WAIT_ON : JOB_WAIT_TRY;
    if (!why && c->alone_us >= ALONE_US)
        why = "its job is alone on the GPU";
    bool has_waited = !c->may_get_help || c->general.waited_ms >= HELP_MS;
    if (!why && c->all_wait && c->is_youngest && has_waited)
        why = "all jobs on the GPU wait, and it is the youngest";
    *ret_why = why;
    return why ? JOB_WAIT_FAIL : JOB_WAIT_ON;
}
