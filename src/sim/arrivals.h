/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace of arrivals: a table in order of time, with the columns "submit_s" (or "arrival_s"),
 * "task" and perhaps "user", "array" and "metric". It is read one arrival at a time.
 */
#ifndef COLLOC_SIM_ARRIVALS_H
#define COLLOC_SIM_ARRIVALS_H

#include "base/columns.h"
#include "base/intern.h"
#include "sim/catalogue.h"

struct arrivals {
    struct columns columns;
    const struct catalogue *catalogue;
    int time_column, task_column, user_column; /* the last: -1, if there is none */
    struct intern users;
    int array_column, metric_column; /* -1: none, or arrays are not taken */
    struct intern arrays;
    struct arrival {
        int64_t time_us;
        const struct sim_task *task; /* of the catalogue */
        int user;                    /* in `users`; 0: none is given */
        int array;                   /* in `arrays`; 0: it is of none */
        const char *metric;          /* its loss curve's values, which are valid
                                        (loss_curve_parse), until the next arrival; or NULL */
    } * drawn;                       /* of a trace that is no file; else NULL */
    struct arrival last;             /* the previous one, without its metric */
    size_t n_drawn, drawn_capacity, next_drawn;
};

/*
 * Opens a trace.
 *
 * path:      of the file; NULL: each task of the catalogue arrives once, at the beginning.
 * catalogue: borrowed until arrivals_close.
 *
 * Returns 0, or -errno with a fault; arrivals_close must follow in both cases.
 */
int arrivals_open(struct arrivals *arrivals, const char *path, const struct catalogue *catalogue,
    struct fault *fault);
void arrivals_close(struct arrivals *arrivals);

/*
 * Replaces the trace, of which nothing was read yet, by a random one like it (a bootstrap): as many
 * tasks, each drawn with replacement from its tasks, after gaps drawn from the gaps between them.
 *
 * seed: the same seed draws the same trace.
 *
 * Returns 0, or -errno with a fault.
 */
int arrivals_resample(struct arrivals *arrivals, uint64_t seed, struct fault *fault);

/*
 * From now on rows with the same value of "array" are an array, whose trials have the metric of
 * "metric": to be called before the first arrival is read.
 *
 * Returns 0, or -EINVAL with a fault: the trace has no column "array".
 */
int arrivals_take_arrays(struct arrivals *arrivals, struct fault *fault);

/* Reads the next arrival. Returns 1; 0 at the end; or -errno with the line in the fault. */
int arrivals_next(struct arrivals *arrivals, struct fault *fault, struct arrival *ret_arrival);

#endif
