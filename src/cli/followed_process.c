/* SPDX-License-Identifier: Apache-2.0 */
/* The process is a pidfd, whose end poll(2) shows; without one it only pauses. */
#include "cli/followed_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"

enum {
    PAUSE_MS = 1000,      /* chosen: the daemon samples as often, and a step that is judged takes
                             seconds at least */
    PAUSE_MAX_MS = 10000, /* chosen: a reading is slow on a busy machine, too, and what it finds
                             stops a task or is its speed */
    PAUSE_TIMES = 20      /* chosen: reading takes a twentieth of the time at most */
};

void followed_process_init(struct followed_process *process, pid_t pid)
{
    *process = (struct followed_process){.pidfd = -1};
    if (!pid)
        return;
    signal(SIGTERM, SIG_IGN);
    process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    process->has_ended = process->pidfd < 0;
}

void followed_process_fini(struct followed_process *process)
{
    if (process->pidfd >= 0)
        close(process->pidfd);
}

bool followed_process_wait(struct followed_process *process, int64_t ms)
{
    struct pollfd poll_fd = {process->pidfd, POLLIN, 0};
    process->has_ended = poll(&poll_fd, 1, (int)ms) > 0;
    return process->has_ended;
}

struct client *followed_process_open_client(struct followed_process *process)
{
    struct client *client = NULL;
    struct fault fault;
    while (client_open(NULL, &fault, &client) < 0)
        if (process->has_ended || followed_process_wait(process, PAUSE_MS))
            return NULL;
    return client;
}

int64_t reading_pause_ms(int64_t start_us)
{
    int64_t ms = (clock_monotonic_us() - start_us) / MS_US * PAUSE_TIMES;
    ms = ms < PAUSE_MS ? PAUSE_MS : ms;
    return ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : ms;
}
