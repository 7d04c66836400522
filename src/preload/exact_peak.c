/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the driver's readings to what the library counted: the rule of exact_peak.h. The numbers
 * come from a process of a user and may be anything. */
#include "preload/exact_peak.h"

void exact_peak_note(
    struct exact_peak *peak, uint64_t held, uint64_t highest, struct reading used_bytes)
{
    bool is_steady = held > 0 && held == peak->held_before && highest <= held;
    if (is_steady && used_bytes.valid && used_bytes.value >= (double)held)
        peak->difference_bytes = reading_of(used_bytes.value - (double)held);
    peak->held_before = held;
}

struct reading exact_peak_bytes(
    const struct exact_peak *peak, uint64_t counted_peak, double total_bytes)
{
    double bytes = (double)counted_peak + peak->difference_bytes.value;
    if (!peak->difference_bytes.valid || counted_peak == 0 || bytes > total_bytes)
        return READING_NONE;
    return reading_of(bytes);
}
