/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to say to the threads that wait for memory of one GPU: a pure rule.
 *
 *     more than the GPU has, or than the task may have      fail
 *     the task is being ended, or waited as long as it may  fail
 *     so much is free, as far as it is not promised yet     try again; but fail, if that
 *                                                           did not help often enough
 *     it is not known how much is free                      try again
 *     the task is alone there: its own memory is missing    fail, once that is sure
 *     otherwise                                             wait
 *
 * Those who came first are served first, but one that needs more than there is does not keep the
 * memory from the others: they end the sooner, and give theirs back.
 */
#ifndef COLLOC_PRELOAD_WAIT_RULE_H
#define COLLOC_PRELOAD_WAIT_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reading.h"

enum wait_word { WAIT_ON, WAIT_RETRY, WAIT_FAIL };

struct wait_case {
    uint64_t bytes;
    uint64_t held_bytes;  /* by its process on that GPU */
    uint64_t limit_bytes; /* of an MPS client, the context included; 0: none */
    uint64_t waited_ms;
    uint32_t retries; /* that failed */
    bool is_ending;   /* its task is being ended */
    bool is_alone;    /* nothing else has memory there */
    bool is_asking;   /* it has no answer yet */
};

struct wait_limits {
    struct reading total_bytes, free_bytes; /* of the GPU */
    uint64_t bound_ms;                      /* the longest wait */
};

/*
 * Decides for all threads that wait for one GPU.
 *
 * `cases`, `n`: in the order in which they came.
 * `ret_words`: `n`; WAIT_ON for those that are not asking.
 */
void wait_rule_decide(const struct wait_case *cases, size_t n, const struct wait_limits *limits,
    enum wait_word *ret_words);

#endif
