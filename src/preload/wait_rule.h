/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a thread that waits for GPU memory gets the true error, independent of other tasks: a pure
 * rule. The core decides the rest (core/pass/memory_answer.c).
 *
 *     its task is being ended                               true error
 *     with what it holds it is more than its MPS limit      true error
 *     granted tries failed again and again                  true error: another limit is at work
 *     it has waited as long as memory-wait allows           true error
 *     it is a rank of NCCL, and the others have waited for
 *     it in a collective as long as ranks may be away       true error, as they would be ended soon
 */
#ifndef COLLOC_PRELOAD_WAIT_RULE_H
#define COLLOC_PRELOAD_WAIT_RULE_H

#include <stdbool.h>
#include <stdint.h>

/* The default of the setting memory-wait. Chosen: NCCL's collectives time out after it. */
enum { WAIT_BOUND_MS = 600 * 1000 };

struct wait_case {
    uint64_t bytes;
    uint64_t held_bytes;  /* by its process on that GPU */
    uint64_t limit_bytes; /* of an MPS client, the context included; 0: none */
    uint64_t waited_ms, bound_ms;
    uint64_t ranks_ms; /* of a rank: as long as ranks may be away; 0: it is none */
    uint32_t retries;  /* that failed */
    bool is_ending;    /* its task, or that attempt of it */
};

/* Returns how long the thread may wait. */
uint64_t wait_rule_bound_ms(const struct wait_case *c);

/* Returns why the thread gets the true error, for a log; NULL: it may continue to wait. */
const char *wait_rule_why_fails(const struct wait_case *c);

#endif
