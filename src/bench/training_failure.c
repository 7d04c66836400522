/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies a failed training as `collocd` would (exec/failure_classify.h). Out of GPU memory is a
 * result of the experiment; any other failure, such as a missing Python module, says nothing about
 * sharing a GPU, and the last line of its standard error, or else of its output, is the cause.
 */
#include "bench/training_failure.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/failure_classify.h"

static void read_log(const char *path, struct logscan *scan)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    logscan_update(scan, fd);
    logscan_finish(scan);
    close(fd);
}

static void describe_exit(const struct training_result *ended, int signal, char *text, size_t size)
{
    if (signal)
        snprintf(text, size, "ended by signal %d", signal);
    else
        snprintf(text, size, "exit status %d", ended->exit_code);
}

void training_failure_explain(
    int status, const char *output_path, const char *log_path, struct training_result *result)
{
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result->exit_code = signal ? 128 + signal : WEXITSTATUS(status);
    if (!result->exit_code)
        return;
    char how[32];
    describe_exit(result, signal, how, sizeof how);
    struct logscan *scans = calloc(2, sizeof *scans), *out = scans, *err = scans + 1;
    if (!scans) {
        snprintf(result->failure, sizeof result->failure, "%s", how);
        return;
    }
    const struct attempt_end ending = {
        .exit_code = signal ? -1 : result->exit_code, .signal = signal};
    struct failure failure = {0};
    read_log(output_path, out);
    read_log(log_path, err);
    failure_classify(&ending, out, err, &failure);
    result->out_of_gpu_memory = failure.class == FAILURE_GPU_OOM;
    const char *cause = result->out_of_gpu_memory ? failure.evidence
                        : *err->last_line         ? err->last_line
                                                  : out->last_line;
    snprintf(result->failure, sizeof result->failure, "%s%s%s",
        result->out_of_gpu_memory ? "out of GPU memory" : how, *cause ? ": " : "", cause);
    free(scans);
}
