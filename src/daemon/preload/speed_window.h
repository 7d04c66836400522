/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many times as long as alone a training takes: its steps a second of windows in which it was
 * alone on its GPUs, over those of the last window.
 *
 *     alone          alone          beside b       beside b
 *     8.1 steps/s    8.3            5.6            5.7
 *     └── speed alone: 8.2 ──┘      1.46           1.44      times as long
 *
 * A window lasts five seconds, and at least four steps. It begins anew when a task comes to a GPU
 * of it or stops computing there, so each is of one mix. Pure.
 */
#ifndef COLLOC_DAEMON_PRELOAD_SPEED_WINDOW_H
#define COLLOC_DAEMON_PRELOAD_SPEED_WINDOW_H

#include "daemon/job.h"

/* What a window has shown; each not valid: unknown. */
struct speed_report {
    struct reading slowdown; /* times as long as alone */
    struct reading step_us;  /* what a step took */
};

/*
 * Notes the steps up to now; to be called at each poll of a task that runs.
 *
 * steps:        its `alone` is set
 * is_alone:     no other computes on its GPUs
 * is_probe:     that is for a moment only (core/probe.h): a window is shorter
 * since_us:     since when the same tasks have computed there, at the times of `now_us`
 * ret_report:   of the window that ended
 *
 * Returns whether a window ended.
 */
bool speed_window_note(struct job_steps *steps, bool is_alone, bool is_probe, int64_t since_us,
    int64_t now_us, struct speed_report *ret_report);

#endif
