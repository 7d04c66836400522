/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc simulate january.txt`, where the file is what `sacct` printed: its first line shows the
 * format, and each job becomes the task of the catalogue that is most like it. The Python program
 * that imports logs writes the trace to a file in memory, which the simulator reads by its path in
 * /proc.
 */
#include "cli/simulating_log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/print.h"
#include "cli/python.h"
#include "cli/trace_feed.h"
#include "cli/trace_format.h"

/* Writes the jobs as tasks of the catalogue. */
static int write_trace(const char *path, const char *format, const char *catalogue, int gpus,
    int output, struct fault *fault)
{
    char from[40], tasks[TRACE_FEED_PATH_SIZE + 16], gpus_max[32];
    const char *const words[] = {
        "colloc_trace", "simulate", from, tasks, gpus_max, "--", path, NULL};
    snprintf(from, sizeof from, "--from=%s", format);
    snprintf(tasks, sizeof tasks, "--catalogue=%s", catalogue);
    snprintf(gpus_max, sizeof gpus_max, "--gpus-max=%d", gpus);
    return python_write(words, output, fault);
}

int simulating_log(
    const char *path, const struct catalogue *catalogue, int gpus, struct fault *fault, int *ret_fd)
{
    char tasks[TRACE_FEED_PATH_SIZE];
    const char *format = trace_format_of_file(path);
    *ret_fd = -1;
    if (!format)
        return 0;
    print_error("%s: read as `colloc trace import --from=%s` does: each job is the task of the "
                "catalogue with its GPUs and about its length",
        path, format);
    int r = trace_feed_catalogue(catalogue, fault, tasks);
    int fd = r == 0 ? memfd_create("trace", MFD_CLOEXEC) : -1;
    if (r == 0 && fd < 0)
        r = fault_set(fault, errno, "no file in memory for the trace: %s", strerror(errno));
    if (r == 0)
        r = write_trace(path, format, tasks, gpus, fd, fault);
    if (r < 0 && fd >= 0)
        close(fd);
    else
        *ret_fd = fd;
    return r;
}
