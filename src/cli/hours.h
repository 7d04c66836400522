/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hours, kWh and kg as a table shows them. What would be rounded to 0.0 h or 0.01 kWh, as all of a
 * new installation, is in a smaller unit:
 *
 *     20.1 h     1.4 min     35 s     0.0 h     1.01 kWh     12.4 Wh     0.00 kWh
 *
 * The web page does the same (web/src/format.js).
 */
#ifndef COLLOC_CLI_HOURS_H
#define COLLOC_CLI_HOURS_H

#include <math.h>

#include "cli/table.h"

struct shown_unit {
    double per_whole; /* 60 for minutes, of hours */
    int digits;       /* behind the point */
    const char *name;
};

/* The unit in which the hours, and fewer, are shown. */
static inline struct shown_unit hours_unit_of(double hours)
{
    double s = fabs(hours) * 3600;
    if (fabs(hours) >= 0.2 || s < 0.5)
        return (struct shown_unit){1, 1, "h"};
    return s < 60 ? (struct shown_unit){3600, 0, "s"} : (struct shown_unit){60, 1, "min"};
}

/* The unit of a sum in kWh or kg: `small`, the thousandth of `whole`, below 0.1 of that. */
static inline struct shown_unit thousandth_unit_of(double sum, const char *whole, const char *small)
{
    if (fabs(sum) >= 0.1 || fabs(sum) * 1000 < 0.05)
        return (struct shown_unit){1, 2, whole};
    return (struct shown_unit){1000, 1, small};
}

#define HOURS_FORMAT "%.*f %s"
/* The arguments for HOURS_FORMAT, of hours in this unit. 0 has no sign. */
#define HOURS_IN(UNIT, HOURS)                                                                      \
    (UNIT).digits, fabs(HOURS) * 3600 < 0.5 ? 0.0 : (HOURS) * (UNIT).per_whole, (UNIT).name

/* Adds the next cell of the row. */
static inline void hours_cell(struct table *table, double hours)
{
    struct shown_unit unit = hours_unit_of(hours);
    table_cell(table, NULL, HOURS_FORMAT, HOURS_IN(unit, hours));
}

#endif
