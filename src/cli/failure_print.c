/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies a failure as collocd does (exec/failure_classify.h):
 *
 *     $ colloc --failure 1 logs/3-1.0.out logs/3-1.0
 *     {"class":"gpu-oom","cause":"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried ..."}
 *
 * STATUS is -N for signal N, as Python has it. A log that cannot be read counts as empty. The cause
 * is the line that proves a lack of GPU memory, else the last line of standard error, or else of
 * output.
 */
#include "cli/failure_print.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"
#include "exec/failure_classify.h"

bool failure_print_is(const char *const *words, int count)
{
    return count == 4 && strcmp(words[0], "--failure") == 0;
}

static void read_log(const char *path, struct logscan *scan)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    logscan_update(scan, fd);
    logscan_finish(scan);
    close(fd);
}

static const char *cause_of(
    const struct failure *failure, const struct logscan *out, const struct logscan *err)
{
    if (failure->class == FAILURE_GPU_OOM)
        return failure->evidence;
    return *err->last_line ? err->last_line : out->last_line;
}

int failure_print(const char *const *words)
{
    int64_t status;
    if (parse_int64(words[1], -255, 255, &status) < 0) {
        print_error("--failure: %.20s: no exit status", words[1]);
        return EXIT_USAGE;
    }
    struct logscan *scans = calloc(2, sizeof *scans);
    if (!scans) {
        print_error("out of memory");
        return EXIT_REFUSED;
    }
    const struct attempt_end end = {
        .exit_code = status < 0 ? -1 : (int)status, .signal = status < 0 ? (int)-status : 0};
    struct failure failure = {0};
    read_log(words[2], &scans[0]);
    read_log(words[3], &scans[1]);
    failure_classify(&end, &scans[0], &scans[1], &failure);
    json_t *found = json_pack("{ss,ss}", "class", failure_name(failure.class), "cause",
        cause_of(&failure, &scans[0], &scans[1]));
    json_dumpf(found, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(found);
    free(scans);
    return EXIT_OK;
}
