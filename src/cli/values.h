/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of values as options have them: "0.7,0.8", "0.6:0.9:0.1" (from, to, step; without a step:
 * 1), "magm,lug". */
#ifndef COLLOC_CLI_VALUES_H
#define COLLOC_CLI_VALUES_H

#include "base/fault.h"

enum { VALUES_MAX = 100000 };

struct values {
    double *value;
    int n;
};

/*
 * Numbers within [min, max], in their order. `option` is its name for faults. 0, or -errno with
 * what is wrong with which word in the fault: nothing, no number, beyond the limits, a range that
 * is empty. Ended by values_fini either way.
 */
int values_parse(const char *option, const char *text, double min, double max, struct fault *fault,
    struct values *ret_values);
void values_fini(struct values *values);

struct names {
    char *text;
    const char **name;
    int n;
};

/* The words between commas; none may be empty. As above. */
int names_parse(const char *option, const char *text, struct fault *fault, struct names *ret_names);
void names_fini(struct names *names);

#endif
