/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The setting record-inputs: everything that the core is fed and decides goes to a file, too, for
 * `colloc replay`. It never gets in the way: what cannot be written, or is beyond the size wanted,
 * ends the recording and is said so.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/daemon.h"
#include "replay/input_line.h"

#define BUFFER_BYTES (1 << 16)

static void end_recording(struct daemon *daemon, const char *why)
{
    log_warning("%s: inputs are recorded no further: %s", daemon->config.record_inputs, why);
    inputs_close(daemon);
}

/* A line that a killed daemon left unfinished is ended: the next start is on a line of its own. */
static int end_last_line(int fd, off_t size)
{
    char last;
    if (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n' && write(fd, "\n", 1) != 1)
        return -errno;
    return 0;
}

int inputs_open(struct daemon *daemon, struct fault *fault)
{
    const char *path = daemon->config.record_inputs;
    struct stat status;
    if (!*path)
        return 0;
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstat(fd, &status) < 0 || end_last_line(fd, status.st_size) < 0) {
        int errnum = errno;
        if (fd >= 0)
            close(fd);
        return fault_set(fault, errnum, "%s: %s", path, strerror(errnum));
    }
    daemon->inputs = fdopen(fd, "a");
    if (!daemon->inputs)
        return fault_set(fault, ENOMEM, "out of memory");
    setvbuf(daemon->inputs, NULL, _IOFBF, BUFFER_BYTES);
    int r = input_line_write_begin(daemon->inputs, &daemon->config.core);
    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 0;
}

/* To be called when a step and its decisions are written: a reader finds them together, or neither.
 */
static void flush(struct daemon *daemon, int r)
{
    if (r < 0 || fflush(daemon->inputs) != 0) {
        end_recording(daemon, r == -EINVAL ? "an event cannot be written" : strerror(errno));
        return;
    }
    off_t at = ftello(daemon->inputs);
    if (at > daemon->config.record_inputs_max)
        end_recording(daemon, "the file has the size of record-inputs-max");
}

void inputs_note_applied(struct daemon *daemon, const struct event *event)
{
    if (daemon->inputs &&
        input_line_write_event(daemon->inputs, INPUT_LINE_APPLY, 0, event, NULL) < 0)
        end_recording(daemon, "an event cannot be written");
}

void inputs_note_settings(struct daemon *daemon)
{
    if (daemon->inputs)
        flush(daemon, input_line_write_settings(daemon->inputs, &daemon->config.core));
}

void inputs_note_forgotten(struct daemon *daemon, uint64_t task)
{
    if (daemon->inputs && input_line_write_forget(daemon->inputs, task) < 0)
        end_recording(daemon, strerror(errno));
}

void inputs_note_step(struct daemon *daemon, const struct event *event, int answer)
{
    if (!daemon->inputs)
        return;
    int n = 0, r = input_line_write_event(daemon->inputs, INPUT_LINE_STEP, answer, event, NULL);
    const struct effect *effects = answer == 0 ? core_effects(daemon->core, &n) : NULL;
    for (int i = 0; i < n && r == 0; i++)
        if (effects[i].kind == EFFECT_APPEND)
            r = input_line_write_event(
                daemon->inputs, INPUT_LINE_DECISION, 0, &effects[i].event, NULL);
    flush(daemon, r);
}

void inputs_close(struct daemon *daemon)
{
    if (daemon->inputs)
        fclose(daemon->inputs);
    daemon->inputs = NULL;
}
