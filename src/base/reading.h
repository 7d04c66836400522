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

/* The value, or `otherwise` when there is none. Only for printing: a decision asks `valid`. */
static inline double reading_or(struct reading r, double otherwise)
{
    return r.valid ? r.value : otherwise;
}

#endif
