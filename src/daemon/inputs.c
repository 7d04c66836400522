/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The setting record-inputs: each input and decision of the core also goes to a file, for `colloc
 * replay`. A line that cannot be written, or a file beyond its size limit, ends the recording with
 * a warning; the daemon continues.
 */
#include "daemon/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "replay/input_line.h"

#define BUFFER_BYTES (1 << 16) /* chosen */

struct inputs {
    const struct config *config;
    FILE *file; /* NULL: the recording has ended */
};

static bool is_recording(const struct inputs *inputs)
{
    return inputs && inputs->file;
}

static void end_recording(struct inputs *inputs, const char *why)
{
    log_warning("%s: inputs are recorded no further: %s", inputs->config->record_inputs, why);
    fclose(inputs->file);
    inputs->file = NULL;
}

/* A line that a killed daemon left unfinished is ended, so that the next begins on its own line. */
static int end_last_line(int fd, off_t size)
{
    char last;
    if (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n' && write(fd, "\n", 1) != 1)
        return -errno;
    return 0;
}

/* Returns a descriptor at the file's end, or -errno. */
static int open_file(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int r = fstat(fd, &status) < 0 ? -errno : end_last_line(fd, status.st_size);
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

int inputs_open(const struct config *config, struct fault *fault, struct inputs **ret_inputs)
{
    const char *path = config->record_inputs;
    *ret_inputs = NULL;
    if (!*path)
        return 0;
    int fd = open_file(path);
    if (fd < 0)
        return fault_set(fault, -fd, "%s: %s", path, strerror(-fd));
    struct inputs *inputs = calloc(1, sizeof *inputs);
    FILE *file = inputs ? fdopen(fd, "a") : NULL;
    if (!file) {
        free(inputs);
        close(fd);
        return fault_set(fault, ENOMEM, "out of memory");
    }
    *inputs = (struct inputs){config, file};
    *ret_inputs = inputs;
    setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
    int r = input_line_write_begin(file, &config->core);
    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 0;
}

/* To be called when a step and its decisions are written: a reader finds both, or neither. */
static void flush_file(struct inputs *inputs, int r)
{
    if (r < 0 || fflush(inputs->file) != 0) {
        end_recording(inputs, r == -EINVAL ? "an event cannot be written" : strerror(errno));
        return;
    }
    if (ftello(inputs->file) > inputs->config->record_inputs_max)
        end_recording(inputs, "the file has the size of record-inputs-max");
}

void inputs_note_applied(struct inputs *inputs, const struct event *event)
{
    if (is_recording(inputs) &&
        input_line_write_event(inputs->file, INPUT_LINE_APPLY, 0, event, NULL) < 0)
        end_recording(inputs, "an event cannot be written");
}

void inputs_note_settings(struct inputs *inputs)
{
    if (is_recording(inputs))
        flush_file(inputs, input_line_write_settings(inputs->file, &inputs->config->core));
}

void inputs_note_forgotten(struct inputs *inputs, uint64_t task)
{
    if (is_recording(inputs) && input_line_write_forget(inputs->file, task) < 0)
        end_recording(inputs, strerror(errno));
}

void inputs_note_step(
    struct inputs *inputs, const struct core *core, const struct event *event, int answer)
{
    if (!is_recording(inputs))
        return;
    int n = 0, r = input_line_write_event(inputs->file, INPUT_LINE_STEP, answer, event, NULL);
    const struct effect *effects = answer == 0 ? core_effects(core, &n) : NULL;
    for (int i = 0; i < n && r == 0; i++)
        if (effects[i].kind == EFFECT_APPEND)
            r = input_line_write_event(
                inputs->file, INPUT_LINE_DECISION, 0, &effects[i].event, NULL);
    flush_file(inputs, r);
}

void inputs_close(struct inputs *inputs)
{
    if (is_recording(inputs))
        fclose(inputs->file);
    free(inputs);
}
