/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakes the controller when Slurm's scripts have written to the wake file. The folder is watched
 * instead of the file: slurmctld creates the file, and truncates it when it has become large. The
 * contents of the lines do not matter: Slurm is read.
 */
#include "slurm/wake_watch.h"

#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct wake_watch *watch = poll->data;
    alignas(struct inotify_event) char buffer[4096];
    bool is_woken = false;
    ssize_t n;
    while ((n = read(watch->fd, buffer, sizeof buffer)) > 0) {
        for (char *at = buffer; at < buffer + n;) {
            const struct inotify_event *event = (const void *)at;
            is_woken |= event->mask & IN_Q_OVERFLOW ||
                        (event->len > 0 && strcmp(event->name, watch->name) == 0);
            at += sizeof *event + event->len;
        }
    }
    if (is_woken)
        watch->on_wake(watch->context);
}

int wake_watch_start(struct wake_watch *watch, uv_loop_t *loop, const char *path,
    void (*on_wake)(void *context), void *context, struct fault *fault)
{
    char folder[512];
    const char *slash = strrchr(path, '/');
    *watch = (struct wake_watch){.fd = -1, .on_wake = on_wake, .context = context};
    if (strcmp(path, "none") == 0)
        return 0;
    if (!slash || !slash[1])
        return fault_set(fault, EINVAL, "wake-file: %s: give an absolute path", path);
    snprintf(watch->name, sizeof watch->name, "%s", slash + 1);
    snprintf(folder, sizeof folder, "%.*s", slash > path ? (int)(slash - path) : 1, path);
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0 || inotify_add_watch(fd, folder, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return fault_set(fault, error, "wake-file: %s: %s", folder, strerror(error));
    }
    watch->fd = fd;
    uv_poll_init(loop, &watch->poll, fd);
    watch->poll.data = watch;
    uv_poll_start(&watch->poll, UV_READABLE, on_readable);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct wake_watch *watch = handle->data;
    close(watch->fd);
    watch->fd = -1;
}

void wake_watch_stop(struct wake_watch *watch)
{
    if (watch->fd >= 0 && !uv_is_closing((uv_handle_t *)&watch->poll))
        uv_close((uv_handle_t *)&watch->poll, on_closed);
}
