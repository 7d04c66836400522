/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the failures that a framework tries again from the one that is final, by their sizes:
 * failure_round.h has the rule. */
#include "preload/failure_round.h"

/* A size that is not smaller than the last begins a round. */
bool failure_round_add(struct failure_round *round, uint64_t bytes)
{
    if (round->last_bytes == 0 || bytes >= round->last_bytes) {
        round->final_bytes = round->smallest_bytes;
        round->smallest_bytes = bytes;
    }
    round->last_bytes = bytes;
    if (bytes < round->smallest_bytes)
        round->smallest_bytes = bytes;
    return round->final_bytes && bytes <= round->final_bytes;
}
