/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hold after tasks have given way to a promise of speed or to a service: for that time no task
 * comes beside it. A task that came, and beside which it was missed again soon, is taken to be the
 * cause: then the hold is doubled, so that a mix that does not fit is not tried all the time.
 *
 *     hold     a task comes   missed after   next hold
 *     2 min    yes            4 min          4 min
 *     4 min    yes            15 min         8 min
 *     8 min    yes            2 h            2 min
 */
#ifndef COLLOC_CORE_HOLD_H
#define COLLOC_CORE_HOLD_H

#include <stdbool.h>
#include <stdint.h>

/* Chosen: within five holds the newcomer is the cause; a hold is at most 16 times the first. */
enum { HOLDS_TO_BLAME = 5, HOLD_DOUBLINGS_MAX = 4 };

/*
 * Returns how many times the next hold is doubled.
 *
 * doublings: of the last one
 * first_us:  the hold without any
 * joined_us: when the last task came since the last hold began; 0: none
 */
static inline int hold_next_doublings(
    int doublings, int64_t first_us, int64_t joined_us, int64_t now_us)
{
    bool is_to_blame = joined_us && now_us - joined_us < HOLDS_TO_BLAME * (first_us << doublings);
    if (!is_to_blame)
        return 0;
    return doublings < HOLD_DOUBLINGS_MAX ? doublings + 1 : HOLD_DOUBLINGS_MAX;
}

#endif
