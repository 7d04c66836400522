/* SPDX-License-Identifier: Apache-2.0 */
/* Moments as people type them. */
#ifndef COLLOC_CLI_MOMENT_H
#define COLLOC_CLI_MOMENT_H

#include <stdint.h>

/*
 * A moment: "2026-11-20", "2026-11-20 16:00", "2026-11-20T16:00:30" and "16:00" (today) in local
 * time; "now", "today" and "yesterday" (their first moment); "@1700000000" (seconds since 1970); or
 * a duration, "2h" or "7d": so long before now.
 *
 * text: any text.
 * now_s: seconds since 1970.
 * ret_s: the moment, likewise.
 *
 * Returns 0; -EINVAL: not a moment; -ERANGE: none that a calendar has.
 */
int moment_parse(const char *text, int64_t now_s, int64_t *ret_s);

#endif
