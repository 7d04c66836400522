/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output is read once a second, at most for a twentieth of the time, and the steps of a reading
 * are reported together: the preloaded library divides the time by them. What a task prints at its
 * end counts no more, as its speed is over.
 */
#include "cli/step_follow.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/output_lines.h"
#include "cli/session.h"

enum {
    PAUSE_MS = 1000, /* chosen: as often as the daemon samples */
    PAUSE_MAX_MS = 60000,
    PAUSE_TIMES = 20 /* chosen: reading takes a twentieth of the time at most */
};

struct counting {
    const struct step_follow *follow;
    struct step_count count;
    struct output_lines lines;
    int64_t steps; /* not reported yet */
};

static bool take_line(void *context, struct span line)
{
    struct counting *counting = context;
    counting->steps += step_count_line(&counting->count, counting->follow->pattern, line);
    return true;
}

static void report_steps(struct counting *counting)
{
    int64_t steps = counting->steps < LINE_STEPS_MAX ? counting->steps : LINE_STEPS_MAX;
    if (steps > 0)
        counting->follow->report(
            (long)steps); /* refused: the daemon is away; the next ones count */
    counting->steps = 0;
}

static int64_t read_once(struct counting *counting)
{
    int64_t start_us = clock_monotonic_us();
    int code = output_lines_read(&counting->lines);
    if (code != EXIT_OK && code != EXIT_UNREACHABLE)
        return -1;
    report_steps(counting);
    int64_t pause_ms = (clock_monotonic_us() - start_us) / 1000 * PAUSE_TIMES;
    pause_ms = pause_ms < PAUSE_MS ? PAUSE_MS : pause_ms;
    return pause_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause_ms;
}

/* Waits for the end of the process, or that long. Returns whether it has ended. */
static bool wait_for_end(int pidfd, int64_t pause_ms)
{
    struct pollfd poll_fd = {pidfd, POLLIN, 0};
    return poll(&poll_fd, 1, (int)pause_ms) > 0;
}

int step_follow_run(const struct step_follow *follow)
{
    struct counting counting = {.follow = follow, .lines = {.on_line = take_line}};
    struct client *client = NULL;
    struct fault fault;
    counting.lines.context = &counting;
    signal(SIGTERM, SIG_IGN); /* the end of the process is its end; the shim sends both */
    int pidfd = (int)syscall(SYS_pidfd_open, follow->until, 0);
    bool has_ended = pidfd < 0;
    while (!has_ended && client_open(NULL, &fault, &client) < 0)
        has_ended = wait_for_end(pidfd, PAUSE_MS);
    output_lines_init(&counting.lines, client, follow->task);
    while (!has_ended) {
        int64_t pause_ms = read_once(&counting);
        has_ended = pause_ms < 0 || wait_for_end(pidfd, pause_ms);
    }
    client_close(client);
    if (pidfd >= 0)
        close(pidfd);
    return EXIT_OK;
}
