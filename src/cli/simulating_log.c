/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc simulate january.txt`, where the file is what `sacct` printed: its first line shows the
 * format. The Python program that imports logs writes the trace, and the jobs as tasks, to files in
 * memory, which the simulator reads by their paths in /proc.
 *
 *     job 7, 1 GPU, 2 hours     a task of 1 GPU and 2 hours, with the memory and activity that the
 *                               log measured, else of some task of the catalogue with 1 GPU
 *
 * With a catalogue of the user's own, as measured mixes need it, the job becomes the task of it
 * with the nearest length instead.
 */
#include "cli/simulating_log.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/print.h"
#include "cli/python.h"
#include "cli/trace_feed.h"
#include "cli/trace_format.h"
#include "cli/word_list.h"

/* A file that the program inherits, so that it has the same path in both. */
static int open_memory(struct fault *fault, int *ret_fd)
{
    *ret_fd = memfd_create("trace", 0);
    if (*ret_fd < 0)
        return fault_set(fault, errno, "no file in memory for the trace: %s", strerror(errno));
    return 0;
}

/* The program writes the trace to its standard output. */
static int write_trace(const struct simulated_log *log, const char *format,
    const struct log_trace *trace, struct fault *fault)
{
    struct word_list words = {0};
    char catalogue[TRACE_FEED_PATH_SIZE];
    int r = trace_feed_catalogue(log->catalogue, fault, catalogue);
    if (r < 0)
        return r;
    word_list_add(&words, "colloc_trace");
    word_list_add(&words, "simulate");
    word_list_add(&words, "--from=%s", format);
    word_list_add(&words, "--catalogue=%s", catalogue);
    word_list_add(&words, "--gpus-max=%d", log->gpus_max);
    word_list_add(&words, "--gpu-bytes=%lld", (long long)log->gpu_bytes);
    if (trace->tasks >= 0)
        word_list_add(&words, "--tasks-out=/proc/self/fd/%d", trace->tasks);
    word_list_add(&words, "--");
    word_list_add(&words, "%s", log->path);
    if (word_list_end(&words))
        r = python_write((const char *const *)words.words, trace->trace, fault);
    else
        r = fault_set(fault, ENOMEM, "out of memory");
    word_list_fini(&words);
    return r;
}

int simulating_log(
    const struct simulated_log *log, struct fault *fault, struct log_trace *ret_trace)
{
    const char *format = trace_format_of_file(log->path);
    *ret_trace = (struct log_trace){-1, -1};
    if (!format)
        return 0;
    print_error("%s: read as `colloc trace import --from=%s%s` does: each job %s", log->path,
        format, log->keeps_lengths ? " --tasks-out" : "",
        log->keeps_lengths
            ? "keeps its GPUs and its length"
            : "is the task of the catalogue with its GPUs and the nearest length, not its own");
    int r = open_memory(fault, &ret_trace->trace);
    if (r == 0 && log->keeps_lengths)
        r = open_memory(fault, &ret_trace->tasks);
    return r < 0 ? r : write_trace(log, format, ret_trace, fault);
}
