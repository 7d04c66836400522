/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peak of a process on one GPU, exactly: a pure rule.
 *
 * The library counts what the program allocates, and misses no short peak; the driver reports what
 * the process has in all, with its context, modules and rounding, but only when it is polled. The
 * difference hardly changes. It is taken at polls between which the process allocated nothing:
 *
 *     poll    driver   counted   highest since   difference   peak
 *     1       1.5      1.0       1.0             -            -       it had just allocated that
 *     2       1.5      1.0       1.0             0.5          1.5
 *     3       1.5      1.0       4.0             0.5          4.5     a peak between two polls
 */
#ifndef COLLOC_PRELOAD_EXACT_PEAK_H
#define COLLOC_PRELOAD_EXACT_PEAK_H

#include <stdint.h>

#include "base/reading.h"

/* All zero: nothing is known. */
struct exact_peak {
    uint64_t held_before;            /* counted at the poll before */
    struct reading difference_bytes; /* beside what is counted */
};

/*
 * Notes a poll.
 *
 * held, highest: counted now, and the most since the poll before.
 * used_bytes:    of the process on that GPU, as the driver reports it.
 */
void exact_peak_note(
    struct exact_peak *peak, uint64_t held, uint64_t highest, struct reading used_bytes);

/*
 * Returns the bytes that the process had at its counted peak.
 *
 * counted_peak: as the process says; not believed beyond the GPU's size.
 * total_bytes:  of the GPU.
 *
 * Not valid when the difference is not known yet, or nothing was counted.
 */
struct reading exact_peak_bytes(
    const struct exact_peak *peak, uint64_t counted_peak, double total_bytes);

#endif
