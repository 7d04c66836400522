/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace of arrivals: a table in order of time, with the columns "submit_s" (or "arrival_s"),
 * "task" and perhaps "user". It is read one arrival at a time.
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
    int64_t last_us; /* time of the previous arrival */
    struct arrival {
        int64_t time_us;
        const struct sim_task *task; /* of the catalogue */
        int user;                    /* in `users`; 0: none is given */
    } * drawn;                       /* of a trace that is no file; else NULL */
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

/* Reads the next arrival. Returns 1; 0 at the end; or -errno with the line in the fault. */
int arrivals_next(struct arrivals *arrivals, struct fault *fault, struct arrival *ret_arrival);

#endif
