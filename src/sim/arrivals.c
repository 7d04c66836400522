/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace is read a row at a time: only the next arrival is in memory. A resampled trace is drawn
 * as a whole first (a bootstrap), since each task and each gap may come from any row.
 */
#include "sim/arrivals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "sim/chance.h"
#include "sim/loss_curve.h"

#define ARRIVAL_S_MAX 1e10 /* chosen: its microseconds fit in 64 bits */

/* The catalogue itself as the trace: each task once, at the beginning. */
static int list_catalogue(struct arrivals *arrivals, struct fault *fault)
{
    for (size_t i = 0; i < arrivals->catalogue->n; i++) {
        const struct arrival arrival = {.task = &arrivals->catalogue->tasks[i]};
        if (ARRAY_APPEND(arrivals->drawn, arrivals->n_drawn, arrivals->drawn_capacity, arrival) < 0)
            return fault_set(fault, ENOMEM, "out of memory");
    }
    return 0;
}

int arrivals_open(struct arrivals *arrivals, const char *path, const struct catalogue *catalogue,
    struct fault *fault)
{
    static const char *const times[] = {"submit_s", "arrival_s", NULL};
    static const char *const tasks[] = {"task", NULL}, *const users[] = {"user", NULL};
    *arrivals = (struct arrivals){.catalogue = catalogue, .array_column = -1, .metric_column = -1};
    if (!path)
        return list_catalogue(arrivals, fault);
    int r = columns_open(&arrivals->columns, path, fault);
    if (r < 0)
        return r;
    arrivals->time_column = columns_find(&arrivals->columns, times);
    arrivals->task_column = columns_find(&arrivals->columns, tasks);
    arrivals->user_column = columns_find(&arrivals->columns, users);
    if (arrivals->time_column < 0 || arrivals->task_column < 0)
        return columns_wrong(&arrivals->columns, fault,
            "the first line must name the columns \"submit_s\" and \"task\"; `colloc trace import` "
            "makes such a trace of another cluster's log");
    return 0;
}

int arrivals_take_arrays(struct arrivals *arrivals, struct fault *fault)
{
    static const char *const arrays[] = {"array", NULL}, *const metrics[] = {"metric", NULL};
    arrivals->array_column = columns_find(&arrivals->columns, arrays);
    arrivals->metric_column = columns_find(&arrivals->columns, metrics);
    if (arrivals->array_column >= 0)
        return 0;
    return columns_wrong(&arrivals->columns, fault,
        "--stop is a rule for arrays: the first line must name the column \"array\", which has "
        "the same value in all rows of an array");
}

void arrivals_close(struct arrivals *arrivals)
{
    columns_close(&arrivals->columns);
    intern_fini(&arrivals->users);
    intern_fini(&arrivals->arrays);
    free(arrivals->drawn);
}

/* Reads which array the row is of, and its metric. An array that is known, and is not that of the
 * row before, has been left: its rows do not follow each other. */
static int read_array(struct arrivals *arrivals, struct fault *fault, struct arrival *arrival)
{
    const struct columns *columns = &arrivals->columns;
    const struct arrival *last = &arrivals->last;
    const char *name = columns_get(columns, arrivals->array_column);
    struct loss_curve curve;
    if (!name)
        return 0;
    int n_before = arrivals->arrays.n;
    arrival->array = intern_text(&arrivals->arrays, name);
    if (arrival->array < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    bool is_first = arrivals->arrays.n > n_before;
    if (!is_first && (arrival->array != last->array || arrival->time_us != last->time_us ||
                         arrival->task != last->task || arrival->user != last->user))
        return columns_wrong(columns, fault,
            "the rows of the array \"%.60s\" must follow each other, with the same time, task and "
            "user",
            name);
    if (arrival->task->service || arrival->task->epochs == 0)
        return columns_wrong(columns, fault,
            "the task \"%.60s\" of an array must be a training with epochs in the catalogue: they are "
            "the steps of --stop",
            arrival->task->name);
    arrival->metric = columns_get(columns, arrivals->metric_column);
    if (arrival->metric && loss_curve_parse(arrival->metric, &curve) < 0)
        return columns_wrong(columns, fault,
            "invalid metric \"%.60s\": give its values at the rungs and at the end, as in "
            "0.9;0.5;nan",
            arrival->metric);
    return 0;
}

static int read_next(struct arrivals *arrivals, struct fault *fault, struct arrival *ret_arrival)
{
    double time_s = NAN;
    int r = columns_next(&arrivals->columns, fault);
    if (r <= 0)
        return r;
    r = columns_number(&arrivals->columns, arrivals->time_column, 0, ARRIVAL_S_MAX, fault, &time_s);
    if (r < 0)
        return r;
    const char *name = columns_get(&arrivals->columns, arrivals->task_column);
    if (r == 0 || !name)
        return columns_wrong(&arrivals->columns, fault, "an arrival has a time and a task");
    const char *user = columns_get(&arrivals->columns, arrivals->user_column);
    *ret_arrival = (struct arrival){.time_us = llround(time_s * (double)SECOND_US),
        .task = catalogue_find(arrivals->catalogue, name),
        .user = intern_text(&arrivals->users, user ? user : "")};
    if (ret_arrival->user < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    if (!ret_arrival->task)
        return columns_wrong(
            &arrivals->columns, fault, "the catalogue of tasks (--tasks) has no \"%.80s\"", name);
    if (ret_arrival->time_us < arrivals->last.time_us)
        return columns_wrong(&arrivals->columns, fault, "out of order: %g s comes after %g s",
            time_s, (double)arrivals->last.time_us / (double)SECOND_US);
    r = read_array(arrivals, fault, ret_arrival);
    if (r < 0)
        return r;
    arrivals->last = *ret_arrival;
    arrivals->last.metric = NULL;
    return 1;
}

static int read_all(struct arrivals *arrivals, struct fault *fault)
{
    struct arrival arrival;
    int r;
    while ((r = read_next(arrivals, fault, &arrival)) == 1) {
        if (ARRAY_APPEND(arrivals->drawn, arrivals->n_drawn, arrivals->drawn_capacity, arrival) < 0)
            return fault_set(fault, ENOMEM, "out of memory");
    }
    return r;
}

int arrivals_resample(struct arrivals *arrivals, uint64_t seed, struct fault *fault)
{
    int r = read_all(arrivals, fault);
    size_t n = arrivals->n_drawn;
    if (r < 0 || n == 0)
        return r;
    struct arrival *drawn = malloc(n * sizeof *drawn), *read = arrivals->drawn;
    if (!drawn)
        return fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        size_t gap = i ? 1 + chance_below(seed, 2 * i, n - 1) : 0;
        int64_t time_us = i ? drawn[i - 1].time_us + read[gap].time_us - read[gap - 1].time_us
                            : read[0].time_us;
        const struct arrival *from = &read[chance_below(seed, 2 * i + 1, n)];
        drawn[i] = (struct arrival){.time_us = time_us, .task = from->task, .user = from->user};
    }
    arrivals->drawn = drawn;
    free(read);
    return 0;
}

int arrivals_next(struct arrivals *arrivals, struct fault *fault, struct arrival *ret_arrival)
{
    if (!arrivals->drawn)
        return read_next(arrivals, fault, ret_arrival);
    if (arrivals->next_drawn == arrivals->n_drawn)
        return 0;
    *ret_arrival = arrivals->drawn[arrivals->next_drawn++];
    return 1;
}
