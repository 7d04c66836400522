/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hours as a table shows them. What would be rounded to 0.0 h, as all of a new installation, is in
 * minutes or seconds:
 *
 *     20.1 h     1.4 min     35 s     0.0 h
 */
#ifndef COLLOC_CLI_HOURS_H
#define COLLOC_CLI_HOURS_H

#include <math.h>

#include "cli/table.h"

struct hours_unit {
    double per_hour;
    int digits; /* behind the point */
    const char *name;
};

/* The unit in which the hours, and fewer, are shown. */
static inline struct hours_unit hours_unit_of(double hours)
{
    double s = fabs(hours) * 3600;
    if (fabs(hours) >= 0.05 || s < 0.5)
        return (struct hours_unit){1, 1, "h"};
    return s < 60 ? (struct hours_unit){3600, 0, "s"} : (struct hours_unit){60, 1, "min"};
}

#define HOURS_FORMAT "%.*f %s"
/* The arguments for HOURS_FORMAT, of hours in this unit. 0 has no sign. */
#define HOURS_IN(UNIT, HOURS)                                                                      \
    (UNIT).digits, fabs(HOURS) * 3600 < 0.5 ? 0.0 : (HOURS) * (UNIT).per_hour, (UNIT).name

/* Adds the next cell of the row. */
static inline void hours_cell(struct table *table, double hours)
{
    struct hours_unit unit = hours_unit_of(hours);
    table_cell(table, NULL, HOURS_FORMAT, HOURS_IN(unit, hours));
}

#endif
