/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How `colloc record` feeds a tracker, such as MLflow's. The tracker reads the lines of the CSV
 * from a socket that keeps messages apart, a line each. A line is dropped if the socket is full:
 * sampling never waits for a server.
 */
#include "cli/record_tracker.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/print.h"
#include "cli/python.h"

enum { NOT_STARTED = 127 }; /* the status of python_feed's child when there is no python3 */

/* The stream is line-buffered: `data` is a line. */
static ssize_t write_line(void *context, const char *data, size_t size)
{
    const struct record_tracker *tracker = context;
    if (size)
        send(tracker->socket, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return tracker->also && fwrite(data, 1, size, tracker->also) < size ? 0 : (ssize_t)size;
}

static int start_tracker(const char *places, struct record_tracker *tracker)
{
    const char *const words[] = {"colloc.tracking", "record", places, NULL};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    int r = python_feed(words, ends[1], &tracker->pid);
    close(ends[1]);
    tracker->socket = ends[0];
    if (r < 0)
        close(ends[0]);
    return r;
}

int record_tracker_open(
    const char *places, FILE *also, struct fault *fault, struct record_tracker *tracker)
{
    const cookie_io_functions_t io = {.write = write_line};
    *tracker = (struct record_tracker){.also = also, .socket = -1};
    int r = start_tracker(places, tracker);
    if (r < 0)
        return fault_set(fault, -r, "cannot start python3 -m colloc.tracking: %s", strerror(-r));
    tracker->csv = fopencookie(tracker, "w", io);
    if (tracker->csv) {
        setvbuf(tracker->csv, NULL, _IOLBF, BUFSIZ);
        return 0;
    }
    record_tracker_close(tracker);
    return fault_set(fault, ENOMEM, "out of memory");
}

void record_tracker_close(struct record_tracker *tracker)
{
    int status = 0;
    if (tracker->csv)
        fclose(tracker->csv);
    close(tracker->socket);
    while (waitpid(tracker->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED)
        print_error("nothing was sent: cannot start python3");
}
