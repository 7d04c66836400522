/* SPDX-License-Identifier: Apache-2.0 */
/* Dates in logs. They have no time zone: they are read as UTC, since only differences matter. */
#ifndef COLLOC_TRACE_CIVIL_TIME_H
#define COLLOC_TRACE_CIVIL_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads a date with or without a time: "2017-10-07 01:11:39", "2017-10-07T01:11", "2017-10-07". A
 * time may have a fraction of a second, which is dropped, and a zone: "2023-05-17 11:00:58+02:00",
 * "2023-05-17T09:00:58.25Z". Without a zone the zone is unknown, and taken for UTC.
 *
 * Returns 0, or -EINVAL for other texts, impossible dates, and years before 1970 or after 2199.
 */
int civil_time_parse(const char *text, int64_t *ret_us);

/* Writes "2017-10-07 01:11:39". Returns `buffer`. */
const char *civil_time_format(int64_t us, char *buffer, size_t size);

#endif
