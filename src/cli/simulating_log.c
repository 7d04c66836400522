/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc simulate january.txt`, where the file is what `sacct` printed: its first line shows the
 * format, and each job becomes the task of the catalogue that is most like it. The trace is a file
 * in memory, which the simulator reads by its path in /proc.
 */
#include "cli/simulating_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/print.h"
#include "cli/trace_report.h"
#include "trace/cluster_log.h"
#include "trace/mapping.h"
#include "trace/own_trace.h"
#include "trace/select.h"

static int read_jobs(const struct cluster_log_format *format, const char *path, int gpus,
    struct cluster_log *log, struct fault *fault)
{
    struct selection selection = {.gpus_max = gpus, .sample = 1, .arrival_scale = 1};
    log->processors_per_gpu = 1;
    int r = cluster_log_read(format, path, log, fault);
    if (r < 0)
        return r;
    if (log->counts.left_out[LEFT_OUT_NOT_UNDERSTOOD])
        print_error("%s (the first invalid job)", log->first_mistake.text);
    if (log->jobs.n && jobs_select(&log->jobs, &selection, &log->counts) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    report_kept(path, &log->counts, &log->jobs, false);
    return log->jobs.n
               ? 0
               : fault_set(fault, EINVAL,
                     "%s: none of its jobs ran on GPUs, ended, and fits these %d", path, gpus);
}

/* Writes the jobs as tasks of the catalogue. */
static int write_trace(const struct job_list *jobs, const struct catalogue *catalogue,
    const char *path, struct fault *fault)
{
    struct mapping mapping;
    CLEANUP_FREE const struct sim_task **tasks = calloc(jobs->n, sizeof *tasks);
    if (!tasks || mapping_init(&mapping, catalogue, 0) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; i < jobs->n; i++)
        tasks[i] = mapping_nearest(&mapping, &jobs->jobs[i]);
    mapping_fini(&mapping);
    return own_trace_write(path, jobs, tasks, false, fault);
}

int simulating_log(
    const char *path, const struct catalogue *catalogue, int gpus, struct fault *fault, int *ret_fd)
{
    char trace[64];
    struct cluster_log log = {0};
    const struct cluster_log_format *format = cluster_log_recognise_file(path);
    *ret_fd = -1;
    if (!format)
        return 0;
    print_error("%s: read as `colloc trace import --from=%s` does: each job is the task of the "
                "catalogue with its GPUs and about its length",
        path, format->name);
    int r = read_jobs(format, path, gpus, &log, fault);
    int fd = r == 0 ? memfd_create("trace", MFD_CLOEXEC) : -1;
    if (r == 0 && fd < 0)
        r = fault_set(fault, errno, "no file in memory for the trace: %s", strerror(errno));
    if (r == 0) {
        snprintf(trace, sizeof trace, "/proc/self/fd/%d", fd);
        r = write_trace(&log.jobs, catalogue, trace, fault);
    }
    cluster_log_fini(&log);
    if (r < 0 && fd >= 0)
        close(fd);
    else
        *ret_fd = fd;
    return r;
}
