/* SPDX-License-Identifier: Apache-2.0 */
/* A trace of arrivals, read a task at a time: columns "submit_s" or "arrival_s", and "task"; in
 * order of time. */
#ifndef COLLOC_SIM_ARRIVALS_H
#define COLLOC_SIM_ARRIVALS_H

#include "base/columns.h"
#include "sim/catalogue.h"

struct arrivals {
    struct columns columns;
    const struct catalogue *catalogue;
    int time_column, task_column;
    int64_t last_us;
    struct arrival {
        int64_t time_us;
        const struct sim_task *task;
    } * drawn; /* of a resampled trace */
    size_t n_drawn, next_drawn;
};

/* 0 or -errno with a fault. Ended by arrivals_close either way. The catalogue is borrowed. */
int arrivals_open(struct arrivals *arrivals, const char *path, const struct catalogue *catalogue,
    struct fault *fault);
void arrivals_close(struct arrivals *arrivals);

/*
 * Another trace like the one that is open, not begun yet: as many tasks, each drawn anew (with
 * replacement) from its tasks, after gaps drawn anew from the gaps between them: a bootstrap. The
 * same seed draws the same. 0 or -errno with a fault.
 */
int arrivals_resample(struct arrivals *arrivals, uint64_t seed, struct fault *fault);

/* 1: there is one; 0: the end; or -errno with the line in the fault. */
int arrivals_next(struct arrivals *arrivals, struct fault *fault, struct arrival *ret_arrival);

#endif
