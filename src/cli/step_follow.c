/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output is read now and then (followed_process.h), and the steps of a reading are reported
 * together: the preloaded library divides the time by them. What a task prints at its end counts no
 * more, as its speed is over.
 */
#include "cli/step_follow.h"

#include "base/clock.h"
#include "cli/command.h"
#include "cli/followed_process.h"
#include "cli/output_lines.h"

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

/* Returns how long to pause, in ms; -1: there is nothing more to read. */
static int64_t read_once(struct counting *counting)
{
    int64_t start_us = clock_monotonic_us();
    int code = output_lines_read(&counting->lines);
    if (code != EXIT_OK && code != EXIT_UNREACHABLE)
        return -1;
    report_steps(counting);
    return reading_pause_ms(start_us);
}

int step_follow_run(const struct step_follow *follow)
{
    struct counting counting = {.follow = follow, .lines = {.on_line = take_line}};
    struct followed_process process;
    counting.lines.context = &counting;
    followed_process_init(&process, follow->until);
    struct client *client = followed_process_open_client(&process);
    output_lines_init(&counting.lines, client, follow->task);
    while (!process.has_ended) {
        int64_t pause_ms = read_once(&counting);
        if (pause_ms < 0)
            break;
        followed_process_wait(&process, pause_ms);
    }
    client_close(client);
    followed_process_fini(&process);
    return EXIT_OK;
}
