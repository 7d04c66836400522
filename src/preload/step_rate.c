/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The speed is the steps between the oldest and the newest of a few points, over the time that they
 * took by the process's own count, which leaves out breaks. The daemon's clock bounds that count:
 * steps cannot have taken longer than the time between two polls, and no training makes a million
 * of them in a second.
 *
 * A process that makes no steps for long is in an evaluation, suspended, or at its end: its speed
 * is unknown, not zero.
 */
#include "preload/step_rate.h"

#include <string.h>

#include "base/clock.h"

/* Chosen. */
#define POINT_DISTANCE_US (4 * SECOND_US) /* 8 of them are half a minute */
#define STEPS_PER_S_MAX   1e6
#define SLACK_US          (30 * SECOND_US) /* of polls that were late, and of a step under way */
#define SILENT_US         (30 * SECOND_US)
#define SILENT_STEPS      16 /* as a break in step_counter.c */
#define STEPS_MIN         2

struct step_reading step_reading_of(struct preload_page *page)
{
    struct preload_steps *steps = preload_page_steps(page);
    uint32_t source = atomic_load(&steps->source);
    return (struct step_reading){
        .source = source <= PRELOAD_STEPS_MARKED ? source : PRELOAD_STEPS_NONE,
        .unit = atomic_load(&steps->unit),
        .count = atomic_load(&steps->count),
        .timed_us = atomic_load(&steps->timed_us),
        .marked = atomic_load(&steps->marked)};
}

static bool is_possible(
    const struct step_point *last, const struct step_reading *reading, int64_t now_us)
{
    double passed_us = (double)(now_us - last->at_us + SLACK_US);
    if (reading->count < last->count || reading->timed_us < last->timed_us)
        return false;
    double steps = (double)(reading->count - last->count);
    double timed_us = (double)(reading->timed_us - last->timed_us);
    return steps <= STEPS_PER_S_MAX * passed_us / SECOND_US && timed_us <= passed_us;
}

uint64_t step_rate_note(struct step_rate *rate, const struct step_reading *reading, int64_t now_us,
    uint64_t *ret_timed_us)
{
    const struct step_point *last = rate->n ? &rate->points[rate->n - 1] : NULL;
    bool goes_on = last && reading->unit == rate->unit && reading->source != PRELOAD_STEPS_NONE &&
                   is_possible(last, reading, now_us);
    uint64_t steps = goes_on ? reading->count - last->count : 0;
    *ret_timed_us = goes_on ? reading->timed_us - last->timed_us : 0;
    if (!goes_on)
        *rate = (struct step_rate){.unit = reading->unit};
    if (reading->source == PRELOAD_STEPS_NONE || (goes_on && steps == 0))
        return 0;
    if (rate->n > 1 &&
        rate->points[rate->n - 1].at_us - rate->points[rate->n - 2].at_us < POINT_DISTANCE_US)
        rate->n--; /* the newest point moves on until it is far enough from the one before */
    if (rate->n == STEP_RATE_POINTS) {
        memmove(rate->points, rate->points + 1, sizeof rate->points - sizeof *rate->points);
        rate->n--;
    }
    rate->points[rate->n++] = (struct step_point){now_us, reading->count, reading->timed_us};
    rate->moved_us = now_us;
    return steps;
}

bool step_rate_is_silent(double silent_us, double step_us)
{
    return silent_us > SILENT_US && silent_us > SILENT_STEPS * step_us;
}

struct reading step_rate_per_s(const struct step_rate *rate, int64_t now_us)
{
    if (rate->n < 2)
        return READING_NONE;
    const struct step_point *first = &rate->points[0], *last = &rate->points[rate->n - 1];
    if (last->count - first->count < STEPS_MIN || last->timed_us == first->timed_us)
        return READING_NONE;
    double steps = (double)(last->count - first->count);
    double step_us = (double)(last->timed_us - first->timed_us) / steps;
    if (step_rate_is_silent((double)(now_us - rate->moved_us), step_us))
        return READING_NONE;
    return reading_of(SECOND_US / step_us);
}
