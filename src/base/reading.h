/* SPDX-License-Identifier: Apache-2.0 */
/* A reading: a measured value and whether it is valid, so that "not reported" never looks like 0.
 * The unit is in the field's name. */
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

static inline bool reading_equals(struct reading a, struct reading b)
{
    return a.valid == b.valid && !(a.valid && (a.value < b.value || a.value > b.value));
}

/* Returns the reading in another unit, or a part of it; an invalid reading stays invalid. */
static inline struct reading reading_times(struct reading r, double factor)
{
    return r.valid ? reading_of(r.value * factor) : r;
}

/* Returns the value, or `otherwise` when it is invalid: for printing and sums only. */
static inline double reading_or(struct reading r, double otherwise)
{
    return r.valid ? r.value : otherwise;
}

/*
 * Returns the value, for a decision that must be made without it, too.
 *
 * assumed: what an unknown value counts as
 *
 * Contract: `assumed` never makes a GPU less active or more free than it may be. A decision without
 * such a value tests `valid`. scripts/lint keeps reading_or out of src/core and src/policy.
 */
static inline double reading_assume(struct reading r, double assumed)
{
    return reading_or(r, assumed);
}

#endif
