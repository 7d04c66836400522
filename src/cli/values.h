/* SPDX-License-Identifier: Apache-2.0 */
/* Lists as values of options: "0.7,0.8", "0.6:0.9:0.1" (from, to, step; default of step: 1),
 * "magm,lug". */
#ifndef COLLOC_CLI_VALUES_H
#define COLLOC_CLI_VALUES_H

#include "base/fault.h"

enum { VALUES_MAX = 100000 }; /* of a list such as 1..100; chosen */

struct values {
    double *value;
    int n;
};

/*
 * Parses a list of numbers and ranges.
 *
 * option:   its name, for faults.
 * min, max: the limits of a number.
 *
 * Returns 0, or -errno with a fault that names the wrong value: empty, not a number, beyond the
 * limits, an empty range, too many. values_fini must follow in both cases.
 */
int values_parse(const char *option, const char *text, double min, double max, struct fault *fault,
    struct values *ret_values);
void values_fini(struct values *values);

struct names {
    char *text;
    const char **name;
    int n;
};

/* Parses a comma-separated list of names, none of which may be empty. Returns as values_parse;
 * names_fini must follow. */
int names_parse(const char *option, const char *text, struct fault *fault, struct names *ret_names);
void names_fini(struct names *names);

#endif
