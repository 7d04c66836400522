/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simplex method of Nelder and Mead (1965). In n dimensions, n + 1 points are kept. In each
 * step the worst one is replaced: by its mirror image in the centre of the others, by a point
 * farther out if that is the best so far, or by one nearer; if all that is no better, all points
 * move towards the best. The method can stop where no minimum is, so it is started again from what
 * it has found.
 */
#include "calibration/simplex.h"

#include <string.h>

enum { STEPS_MAX = 600, STARTS = 3 }; /* chosen: four variables need about 200 steps */

#define FIRST_STEP 0.05 /* from the first point to the others; chosen for constants of 0 to 1 */
#define PRECISION  1e-7 /* between the costs of best and worst; chosen */

struct corner {
    double at[SIMPLEX_VARIABLES_MAX], cost;
};

struct simplex {
    double (*cost)(void *context, const double *point);
    void *context;
    int n;
    struct corner corners[SIMPLEX_VARIABLES_MAX + 1]; /* the best first */
};

static struct corner corner_at(const struct simplex *simplex, const double *at)
{
    struct corner corner;
    memcpy(corner.at, at, (size_t)simplex->n * sizeof *at);
    corner.cost = simplex->cost(simplex->context, at);
    return corner;
}

static void sort_corners(struct simplex *simplex)
{
    for (int i = 1; i <= simplex->n; i++)
        for (int k = i; k > 0 && simplex->corners[k].cost < simplex->corners[k - 1].cost; k--) {
            struct corner other = simplex->corners[k];
            simplex->corners[k] = simplex->corners[k - 1];
            simplex->corners[k - 1] = other;
        }
}

static void simplex_begin(struct simplex *simplex, const double *point)
{
    double at[SIMPLEX_VARIABLES_MAX];
    memcpy(at, point, (size_t)simplex->n * sizeof *at);
    simplex->corners[0] = corner_at(simplex, at);
    for (int i = 0; i < simplex->n; i++) {
        at[i] += FIRST_STEP;
        simplex->corners[i + 1] = corner_at(simplex, at);
        at[i] -= FIRST_STEP;
    }
    sort_corners(simplex);
}

/* The point on the line from the worst corner through the centre of the others: 0 is the centre, 1
 * the mirror image. */
static struct corner beyond_centre(const struct simplex *simplex, double distance)
{
    double at[SIMPLEX_VARIABLES_MAX] = {0};
    for (int k = 0; k < simplex->n; k++) {
        for (int i = 0; i < simplex->n; i++)
            at[k] += simplex->corners[i].at[k] / simplex->n;
        at[k] += distance * (at[k] - simplex->corners[simplex->n].at[k]);
    }
    return corner_at(simplex, at);
}

static void move_to_best(struct simplex *simplex)
{
    for (int i = 1; i <= simplex->n; i++) {
        double at[SIMPLEX_VARIABLES_MAX];
        for (int k = 0; k < simplex->n; k++)
            at[k] = (simplex->corners[i].at[k] + simplex->corners[0].at[k]) / 2;
        simplex->corners[i] = corner_at(simplex, at);
    }
}

static void replace_worst(struct simplex *simplex)
{
    struct corner *worst = &simplex->corners[simplex->n];
    struct corner mirrored = beyond_centre(simplex, 1), other;
    if (mirrored.cost < simplex->corners[0].cost) {
        other = beyond_centre(simplex, 2);
        *worst = other.cost < mirrored.cost ? other : mirrored;
    } else if (mirrored.cost < simplex->corners[simplex->n - 1].cost) {
        *worst = mirrored;
    } else {
        other = beyond_centre(simplex, mirrored.cost < worst->cost ? 0.5 : -0.5);
        if (other.cost < worst->cost)
            *worst = other;
        else
            move_to_best(simplex);
    }
    sort_corners(simplex);
}

double simplex_minimise(
    double (*cost)(void *context, const double *point), void *context, int n, double *point)
{
    struct simplex simplex = {.cost = cost, .context = context, .n = n};
    for (int start = 0; start < STARTS; start++) {
        simplex_begin(&simplex, point);
        for (int step = 0; step < STEPS_MAX; step++) {
            if (simplex.corners[n].cost - simplex.corners[0].cost < PRECISION)
                break;
            replace_worst(&simplex);
        }
        memcpy(point, simplex.corners[0].at, (size_t)n * sizeof *point);
    }
    return simplex.corners[0].cost;
}
