/* SPDX-License-Identifier: Apache-2.0 */
/* Dates as logs write them, without a time zone: counted as if they were UTC. */
#ifndef COLLOC_TRACE_CIVIL_TIME_H
#define COLLOC_TRACE_CIVIL_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "2017-10-07 01:11:39", "2017-10-07T01:11", "2017-10-07", of the years 1970 to 2199: 0, or
 * -EINVAL. */
int civil_time_parse(const char *text, int64_t *ret_us);

/* "2017-10-07 01:11:39". Returns `buffer`. */
const char *civil_time_format(int64_t us, char *buffer, size_t size);

#endif
