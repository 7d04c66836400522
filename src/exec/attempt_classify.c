/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out why an attempt ended, from its output. The output of an attempt may be on a file system
 * that no longer answers. So a child that runs as the user reads it and reports through a pipe. If
 * it takes too long, it is killed and not waited for, and the end is classified without the output.
 */
#include "exec/attempt_classify.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "exec/identity.h"

/* Chosen: two logs of LOGSCAN_WINDOW are read in milliseconds; a file system that hangs is not
 * waited for. */
#define READ_LIMIT_MS 5000

/* The attempt's output in FILE.1 comes before the output in the file. */
static void scan_before(
    struct logscan *scan, const struct attempt_spec *spec, enum output_renewal renewal)
{
    struct stat status;
    int fd = renewal == OUTPUT_DROPPED ? -1 : output_open_before(spec);
    if (renewal == OUTPUT_MOVED)
        scan->offset = 0;
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > scan->offset) {
        logscan_update(scan, fd);
        logscan_next_file(scan);
    }
    scan->offset = 0;
    if (fd >= 0)
        close(fd);
}

static void scan_stream(struct logscan *scan, const char *folder, const struct attempt_spec *spec,
    int stream, const struct output_file *file)
{
    int fd = file->is_regular ? output_open_again(folder, spec, stream, file) : -1;
    scan->offset = file->offset;
    if (fd >= 0) {
        if (file->renewal != OUTPUT_NOT_RENEWED)
            scan_before(scan, spec, file->renewal);
        logscan_update(scan, fd);
        close(fd);
    }
    logscan_finish(scan);
}

static _Noreturn void run_child(const char *folder, const struct attempt_spec *spec,
    const struct output_file file[OUTPUT_STREAMS], const struct attempt_end *end, int report)
{
    static struct logscan out, err;
    struct failure failure;
    struct identity identity;
    memset(&failure, 0, sizeof failure);
    if (identity_init(&identity, spec->uid, spec->gid) == 0 && identity_become(&identity) == 0) {
        scan_stream(&err, folder, spec, OUTPUT_STDERR, &file[OUTPUT_STDERR]);
        if (!output_is_shared(spec))
            scan_stream(&out, folder, spec, OUTPUT_STDOUT, &file[OUTPUT_STDOUT]);
    }
    failure_classify(end, &out, &err, &failure);
    file_write_fd(report, &failure, sizeof failure);
    _exit(0);
}

static bool read_report(int from, struct failure *ret_failure)
{
    struct pollfd news = {.fd = from, .events = POLLIN};
    return poll(&news, 1, READ_LIMIT_MS) == 1 &&
           read(from, ret_failure, sizeof *ret_failure) == (ssize_t)sizeof *ret_failure;
}

static void classify_without_output(const struct attempt_end *end, struct failure *ret_failure)
{
    static const struct logscan nothing;
    failure_classify(end, &nothing, &nothing, ret_failure);
    if (ret_failure->class == FAILURE_PROGRAM)
        snprintf(ret_failure->evidence, sizeof ret_failure->evidence,
            "its output could not be read: the file system did not answer");
}

void attempt_classify(const char *folder, const struct attempt_spec *spec,
    const struct output_file file[OUTPUT_STREAMS], const struct attempt_end *end,
    struct failure *ret_failure)
{
    int ends[2];
    bool done = false;
    if (pipe2(ends, O_CLOEXEC) == 0) {
        pid_t child = fork();
        if (child == 0)
            run_child(folder, spec, file, end, ends[1]);
        close(ends[1]);
        done = child > 0 && read_report(ends[0], ret_failure);
        close(ends[0]);
        if (child > 0)
            kill(child, SIGKILL);
    }
    if (!done)
        classify_without_output(end, ret_failure);
}
