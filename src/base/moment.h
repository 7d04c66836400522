/* SPDX-License-Identifier: Apache-2.0 */
/* Moments as people type them. */
#ifndef COLLOC_BASE_MOMENT_H
#define COLLOC_BASE_MOMENT_H

#include <stdint.h>

/*
 * Parses a moment: "2026-11-20", "2026-11-20 16:00", "2026-11-20T16:00:30" and "16:00" (today) in
 * local time; "now"; "today" and "yesterday" (their midnight); "@1700000000" (seconds since 1970);
 * or a duration, "2h" or "7d": that long before now. Slurm's "midnight" (of today), "now-1day" and
 * "now-60" (seconds) are read, too.
 *
 * text:         any text.
 * now_s, ret_s: seconds since 1970.
 *
 * Returns 0; -EINVAL: not a moment; -ERANGE: no such day or time in the calendar.
 */
int moment_parse(const char *text, int64_t now_s, int64_t *ret_s);

/*
 * Parses a moment to come: dates as above; "16:00": the next moment with this time of day;
 * "tomorrow" (its midnight); "now+2h" or "2h": that long after now. Slurm's "now+60" (seconds) and
 * "now+2hours" are read, too.
 *
 * Returns as moment_parse. The moment may have passed: dates are taken as they are.
 */
int moment_parse_ahead(const char *text, int64_t now_s, int64_t *ret_s);

#endif
