/* SPDX-License-Identifier: Apache-2.0 */
/* A reading: a value and whether it is valid. "Not reported" never looks like zero. The unit is in
 * the field's name. */
#ifndef COLLOC_BASE_READING_H
#define COLLOC_BASE_READING_H

#include <stdbool.h>

struct reading {
    double value; /* meaningless unless valid; exact for byte counts below 2^53 */
    bool valid;
};

#define READING_NONE ((struct reading){0})

static inline struct reading reading_of(double value)
{
    return (struct reading){.value = value, .valid = true};
}

/* The value, or `otherwise` when there is none: for printing and for sums. */
static inline double reading_or(struct reading r, double otherwise)
{
    return r.valid ? r.value : otherwise;
}

/*
 * For a decision that must go on without the value.
 *
 * `assumed`: what an unknown value is taken for.
 *
 * Contract: it never lets a GPU pass for less active, emptier or more free than it may be. A
 * decision for which there is no such value asks `valid` itself. scripts/lint keeps reading_or out
 * of src/core and src/policy.
 */
static inline double reading_assume(struct reading r, double assumed)
{
    return reading_or(r, assumed);
}

#endif
