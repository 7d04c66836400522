/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue of tasks, and traces of colloc's own, are read by the simulator's own readers, with
 * their checks and messages; the Python program that imports logs gets the result.
 */
#include "cli/trace_feed.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/columns.h"
#include "sim/arrivals.h"

/* Opens a file in memory that the program inherits. Returns NULL with a fault. */
static FILE *open_memory(struct fault *fault, int *ret_fd)
{
    int fd = memfd_create("colloc-trace", 0), copy = fd < 0 ? -1 : dup(fd);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
    if (!file) {
        fault_set(fault, errno, "no file in memory: %s", strerror(errno));
        if (copy >= 0)
            close(copy);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    *ret_fd = fd;
    return file;
}

/* Returns 0 with the path, or the earlier error. */
static int close_memory(
    FILE *file, int fd, int r, struct fault *fault, char ret_path[TRACE_FEED_PATH_SIZE])
{
    if (fclose(file) != 0 && r == 0)
        r = fault_set(fault, errno, "no file in memory: %s", strerror(errno));
    if (r < 0)
        close(fd);
    else
        snprintf(ret_path, TRACE_FEED_PATH_SIZE, "/proc/self/fd/%d", fd);
    return r;
}

int trace_feed_catalogue(
    const struct catalogue *catalogue, struct fault *fault, char ret_path[TRACE_FEED_PATH_SIZE])
{
    int fd;
    FILE *file = open_memory(fault, &fd);
    if (!file)
        return -ENOMEM;
    for (size_t i = 0; i < catalogue->n; i++) {
        const struct sim_task *task = &catalogue->tasks[i];
        const struct demand *demand = &task->demand;
        columns_print(file, task->name);
        fprintf(file, ",%d,%.17g,%" PRId64 ",%.17g,%.17g,%.17g,%.17g,%.17g\n", task->gpus,
            task->solo_s, task->memory_bytes, demand->smact, demand->gract, demand->smocc,
            demand->dram, demand->power_w);
    }
    return close_memory(file, fd, 0, fault, ret_path);
}

int trace_feed_own(const char *path, const struct catalogue *catalogue, struct fault *fault,
    char ret_path[TRACE_FEED_PATH_SIZE])
{
    int fd, more = 0;
    struct arrivals arrivals;
    struct arrival arrival;
    FILE *file = open_memory(fault, &fd);
    if (!file)
        return -ENOMEM;
    int r = arrivals_open(&arrivals, path, catalogue, fault);
    while (r == 0 && (more = arrivals_next(&arrivals, fault, &arrival)) == 1)
        fprintf(file, "%" PRId64 ",%lld,%d\n", arrival.time_us,
            llround(arrival.task->solo_s * (double)SECOND_US), arrival.task->gpus);
    arrivals_close(&arrivals);
    return close_memory(file, fd, r < 0 ? r : more, fault, ret_path);
}
