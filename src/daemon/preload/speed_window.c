/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before the first window alone the speed alone is that of earlier runs of the same command
 * (command_history.h); without any, the slowdown is unknown. Windows alone are averaged, with a
 * weight for a new one that does not get below an eighth: speeds drift.
 */
#include "daemon/preload/speed_window.h"

#include <math.h>

#include "base/clock.h"
#include "core/probe.h"

/* Chosen. */
#define WINDOW_US     (5 * SECOND_US)
#define WINDOW_STEPS  4
#define WINDOW_MAX_US (600 * SECOND_US) /* then it makes no steps: an evaluation, perhaps */
#define OTHER_STEPS   1.1               /* faster than alone: an earlier run made other steps */

static void begin_window(struct job_steps *steps, bool is_alone, int64_t now_us)
{
    struct speed_alone *alone = steps->alone;
    alone->steps = steps->total;
    alone->timed_s = steps->timed_s;
    alone->begun_us = now_us;
    alone->begun_units = alone->units;
    alone->is_alone = is_alone;
}

/* Of the n-th window in a mean. */
static double weight_of(int n)
{
    return 1.0 / (n < SPEED_ALONE_WINDOWS ? n : SPEED_ALONE_WINDOWS);
}

static void note_alone(struct speed_alone *alone, double per_s)
{
    double before = reading_or(alone->per_s, 0);
    double mean = before + weight_of(alone->windows + 1) * (per_s - before);
    if (alone->windows > 0)
        alone->spread += weight_of(alone->windows) * (fabs(per_s / mean - 1) - alone->spread);
    alone->per_s = reading_of(mean);
    alone->windows++;
}

/* Of a probe: a second, as a timer sees it, and as many steps as that takes. */
static const struct bounds {
    int64_t least_us;
    int steps;
} usual = {WINDOW_US, WINDOW_STEPS},
  of_probe = {PROBE_MEASURE_US - PROBE_PERIOD_US / 2, PROBE_STEPS};

/* A window has ended. Returns what it has shown. */
static struct speed_report end_window(const struct job_steps *steps)
{
    struct speed_alone *alone = steps->alone;
    double n = steps->total - alone->steps, s = steps->timed_s - alone->timed_s;
    if (n < WINDOW_STEPS || s <= 0)
        return (struct speed_report){READING_NONE, READING_NONE};
    if (alone->windows == 0 && alone->per_s.valid && n / s > OTHER_STEPS * alone->per_s.value)
        alone->per_s = READING_NONE;
    if (alone->is_alone)
        note_alone(alone, n / s);
    return (struct speed_report){
        .slowdown = alone->per_s.valid ? reading_of(alone->per_s.value * s / n) : READING_NONE,
        .step_us = reading_of(s / n * (double)SECOND_US)};
}

bool speed_window_note(struct job_steps *steps, bool is_alone, bool is_probe, int64_t since_us,
    int64_t now_us, struct speed_report *ret_report)
{
    const struct bounds *bounds = is_probe ? &of_probe : &usual;
    struct speed_alone *alone = steps->alone;
    if (alone->begun_units != alone->units) /* of other steps nothing is known */
        *alone = (struct speed_alone){.per_s = READING_NONE};
    if (!alone->begun_us || alone->begun_us < since_us || is_alone != alone->is_alone) {
        begin_window(steps, is_alone, now_us);
        return false;
    }
    bool has_steps = steps->total - alone->steps >= bounds->steps;
    int64_t lasts_us = now_us - alone->begun_us;
    if (lasts_us < bounds->least_us || (!has_steps && lasts_us < WINDOW_MAX_US))
        return false;
    *ret_report = end_window(steps);
    begin_window(steps, is_alone, now_us);
    return true;
}
