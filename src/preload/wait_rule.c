/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of wait_rule.h: one pass in the order of arrival, with what is left of the free
 * memory. */
#include "preload/wait_rule.h"

/* What a process has beside what it counts, at the least: its context. */
#define CONTEXT_MIN_BYTES (256.0 * (1 << 20))

enum {
    /* The driver has memory free and refuses it all the same: another limit is at work. */
    RETRIES_MAX = 20,
    /* Memory of a task that has just ended is free within that time, and sampled. */
    ALONE_SURE_MS = 3000,
};

/* Could it never have so much? */
static bool is_too_much(const struct wait_case *c, const struct wait_limits *limits)
{
    double wanted = (double)c->bytes + (double)c->held_bytes;
    if (limits->total_bytes.valid && wanted > limits->total_bytes.value)
        return true;
    return c->limit_bytes && wanted + CONTEXT_MIN_BYTES > (double)c->limit_bytes;
}

static enum wait_word decide(
    const struct wait_case *c, const struct wait_limits *limits, double free_bytes)
{
    if (!c->is_asking)
        return WAIT_ON;
    if (c->is_ending || c->waited_ms >= limits->bound_ms || is_too_much(c, limits))
        return WAIT_FAIL;
    if (!limits->free_bytes.valid || (double)c->bytes <= free_bytes)
        return c->retries < RETRIES_MAX ? WAIT_RETRY : WAIT_FAIL;
    return c->is_alone && c->waited_ms >= ALONE_SURE_MS ? WAIT_FAIL : WAIT_ON;
}

void wait_rule_decide(const struct wait_case *cases, size_t n, const struct wait_limits *limits,
    enum wait_word *ret_words)
{
    double free_bytes = limits->free_bytes.value;
    for (size_t i = 0; i < n; i++) {
        ret_words[i] = decide(&cases[i], limits, free_bytes);
        if (ret_words[i] == WAIT_RETRY)
            free_bytes -= (double)cases[i].bytes;
    }
}
