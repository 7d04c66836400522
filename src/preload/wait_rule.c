/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when an allocation has waited long enough: the table of wait_rule.h, row by row. */
#include "preload/wait_rule.h"

#include <stddef.h>

/* The least memory of a process beside its counted bytes: its context. */
#define CONTEXT_MIN_BYTES (UINT64_C(256) << 20)

/* The driver has free memory and still refuses: there is another limit. */
enum { RETRIES_MAX = 20 };

static bool is_over_limit(const struct wait_case *c)
{
    return c->limit_bytes && c->bytes + c->held_bytes + CONTEXT_MIN_BYTES > c->limit_bytes;
}

uint64_t wait_rule_bound_ms(const struct wait_case *c)
{
    return c->ranks_ms && c->ranks_ms < c->bound_ms ? c->ranks_ms : c->bound_ms;
}

const char *wait_rule_why_fails(const struct wait_case *c)
{
    if (c->is_ending)
        return "its task is being ended";
    if (is_over_limit(c))
        return "it would exceed its MPS memory limit";
    if (c->retries >= RETRIES_MAX)
        return "the driver refuses it though as much is free";
    if (c->waited_ms >= c->bound_ms)
        return "it has waited as long as memory-wait allows";
    return c->waited_ms >= wait_rule_bound_ms(c)
               ? "the other ranks of NCCL have waited for it as long as suspend-ranks-max allows"
               : NULL;
}
