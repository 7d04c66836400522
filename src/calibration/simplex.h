/* SPDX-License-Identifier: Apache-2.0 */
/* Minimises a function of a few variables without derivatives. */
#ifndef COLLOC_CALIBRATION_SIMPLEX_H
#define COLLOC_CALIBRATION_SIMPLEX_H

enum { SIMPLEX_VARIABLES_MAX = 4 };

/*
 * Moves a point to a local minimum of the function.
 *
 * cost:  may return INFINITY for points that are not allowed, but not for the first
 * n:     variables, at most SIMPLEX_VARIABLES_MAX
 * point: where to begin; set to the best point that was found
 *
 * Returns the cost there.
 */
double simplex_minimise(
    double (*cost)(void *context, const double *point), void *context, int n, double *point);

#endif
