#include "sim/arrivals.h"

#include <errno.h>
#include <math.h>

#include "base/clock.h"

#define ARRIVAL_S_MAX 1e10

int arrivals_open(struct arrivals *arrivals, const char *path, const struct catalogue *catalogue, struct fault *fault)
{
    static const char *const times[] = {"submit_s", "arrival_s", NULL}, *const tasks[] = {"task", NULL};
    *arrivals = (struct arrivals){.catalogue = catalogue};
    int r = columns_open(&arrivals->columns, path, fault);
    if (r < 0)
        return r;
    arrivals->time_column = columns_find(&arrivals->columns, times);
    arrivals->task_column = columns_find(&arrivals->columns, tasks);
    if (arrivals->time_column < 0 || arrivals->task_column < 0)
        return columns_wrong(&arrivals->columns, fault,
                             "the first line must name the columns \"submit_s\" and \"task\"");
    return 0;
}

void arrivals_close(struct arrivals *arrivals)
{
    columns_close(&arrivals->columns);
}

int arrivals_next(struct arrivals *arrivals, struct fault *fault, struct arrival *ret_arrival)
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
    *ret_arrival = (struct arrival){llround(time_s * (double)SECOND_US), catalogue_find(arrivals->catalogue, name)};
    if (!ret_arrival->task)
        return columns_wrong(&arrivals->columns, fault, "the catalogue of tasks (--tasks) has no \"%.80s\"", name);
    if (ret_arrival->time_us < arrivals->last_us)
        return columns_wrong(&arrivals->columns, fault, "out of order: %g s comes after %g s", time_s,
                             (double)arrivals->last_us / (double)SECOND_US);
    arrivals->last_us = ret_arrival->time_us;
    return 1;
}
