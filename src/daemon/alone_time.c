/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An example. A task was alone for 60 s, at 10 steps a second, and beside another for 100 s. There
 * it started for 20 s, without steps and with a predicted speed of 0.9, and made 480 steps in 80 s.
 *
 *     alone           60 s                 60 s
 *     start           20 s * 0.9           18 s, predicted
 *     its steps       480 / 10 per s       48 s, measured
 *                    160 s                126 s, of which 80 s were measured
 *
 * A client of MPS that is alone is compared with itself, not with a plain process: how much that
 * would be faster depends on the host, from nothing to what the model says. So the price of being a
 * client widens the interval of a task that was beside others, and only of such a task.
 *
 * The steps a second alone may be known later than the steps, when the others have ended: so both
 * are kept apart until the end.
 */
#include "daemon/alone_time.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clamp.h"
#include "base/clock.h"
#include "core/questions.h"

/* Counted steps agree with the trainings' own within this (docs/measured/steps.md). */
#define MEASURED_ERROR 0.02

/* Of a speed alone of one window, or of an earlier run: windows of a small training on an H200
 * differed by up to that from their mean (docs/measured/promise.md). */
#define ONE_WINDOW_ERROR 0.13

/* The standard deviation of normal numbers over their mean deviation. */
#define DEVIATION_RATIO 1.25

/* The 90th percentile of the error of a predicted speed, of clients of MPS with a limit; without a
 * limit it is half of that (docs/measured/sharing.md). */
#define PREDICTED_ERROR 0.22

/* Steps of another kind have begun: how fast the ones before were is not measured any more. */
static void forget_steps(struct alone_time *time)
{
    time->rest_s += time->steps_s - time->steps_unknown_s;
    time->rest_work_s += time->steps_work_s;
    time->unknown_s += time->steps_unknown_s;
    time->steps = time->steps_s = time->steps_work_s = time->steps_unknown_s = 0;
    time->noted_steps = time->noted_steps_s = 0; /* the sums of the job begin again, too */
}

/* `speed`: relative to that alone. */
static void add_shared(
    struct alone_time *time, struct reading speed, double s, double steps, double steps_s)
{
    double rest_s = s - steps_s; /* a step that ends now may have begun earlier: less than 0 */
    time->shared_s += s;
    time->steps += steps;
    time->steps_s += steps_s;
    if (!speed.valid) {
        time->steps_unknown_s += steps_s;
        time->unknown_s += rest_s;
        return;
    }
    time->steps_work_s += speed.value * steps_s;
    time->rest_s += rest_s;
    time->rest_work_s += speed.value * rest_s;
}

static void begin_note(struct alone_time *time, const struct job *job, int64_t now_us)
{
    time->noted_us = now_us;
    time->noted_steps = job->steps.total;
    time->noted_steps_s = job->steps.timed_s;
    time->noted_units = job->steps.alone ? job->steps.alone->units : 0;
}

static void note_task(
    const struct core *core, const struct task *task, struct job *job, int64_t now_us)
{
    if (!job->alone_time) {
        job->alone_time = calloc(1, sizeof *job->alone_time);
        if (!job->alone_time)
            return;
        begin_note(job->alone_time, job, task_runs_since_us(task));
    }
    struct alone_time *time = job->alone_time;
    int64_t since_us = max_int64(time->noted_us, task_runs_since_us(task));
    double s = (double)(now_us - since_us) / (double)SECOND_US;
    struct speed_now now = core_speed_now(core, task);
    if (job->steps.alone && time->noted_units != job->steps.alone->units)
        forget_steps(time);
    if (time->noted_us && s > 0) {
        time->held_s += s;
        bool is_paused = task->state != TASK_RUNNING;
        time->price_s += (1 - now.alone) * s;
        now.speed.value /= now.alone;
        if (now.is_shared)
            add_shared(time, now.speed, s, job->steps.total - time->noted_steps,
                job->steps.timed_s - time->noted_steps_s);
        else if (!is_paused)
            time->own_s += s;
    }
    begin_note(time, job, now_us);
}

static bool has_gpus(const struct task *task)
{
    return task->n_gpus > 0 && (task->state == TASK_RUNNING || task->state == TASK_PAUSED);
}

void alone_time_note_all(const struct core *core, const struct jobs *jobs, int64_t now_us)
{
    const struct cluster_view *view = core_view(core);
    for (int i = 0; i < view->n_gpus; i++) {
        for (int k = 0; k < view->gpus[i].n_residents; k++) {
            const struct resident *resident = &view->gpus[i].residents[k];
            const struct task *task = core_task(core, resident->task);
            struct job *job = resident->places[0] == i ? jobs_find(jobs, resident->task) : NULL;
            if (job && has_gpus(task))
                note_task(core, task, job, now_us);
        }
    }
}

void alone_time_note_end(
    const struct core *core, const struct task *task, struct job *job, int64_t now_us)
{
    if (job && has_gpus(task))
        note_task(core, task, job, now_us);
}

/* ---- what it comes to ---- */

/* What a plain process is predicted to take alone, of the time of this one alone. */
static double plain_part(const struct alone_time *time)
{
    double runs_s = time->own_s + time->shared_s;
    return time->shared_s > 0 ? 1 - fmin(1, fmax(0, time->price_s / runs_s)) : 1;
}

/* How far measured work may be off, as a part of it: the count of steps, and two standard errors of
 * the speed alone. */
static double measured_error(const struct speed_alone *alone)
{
    double n = fmin(alone->windows, SPEED_ALONE_WINDOWS);
    double of_speed = n < 2 ? ONE_WINDOW_ERROR : 2 * DEVIATION_RATIO * alone->spread / sqrt(n);
    return MEASURED_ERROR + of_speed;
}

static double clamp_s(double s, double most)
{
    return fmax(0, fmin(s, most));
}

/* Steps that were measured, in seconds alone. The task counts them itself, and no training is
 * faster beside others than alone: what is beyond that, by more than the error, was not measured.
 */
static bool measure_work(const struct alone_time *time, const struct speed_alone *alone,
    double limit_s, double *ret_s, double *ret_error)
{
    *ret_s = *ret_error = 0;
    if (!alone || !alone->per_s.valid || alone->per_s.value <= 0 || time->steps <= 0)
        return false;
    double s = time->steps / alone->per_s.value, error = measured_error(alone);
    if (!(s <= (1 + error) * limit_s))
        return false;
    *ret_s = fmin(s, limit_s);
    *ret_error = fmin(1, error);
    return true;
}

struct alone_estimate alone_time_estimate(
    const struct alone_time *time, const struct speed_alone *alone)
{
    double limit_s = clamp_s(time->steps_s, time->shared_s), measured, error;
    bool is_measured = measure_work(time, alone, limit_s, &measured, &error);
    double guessed_s = time->rest_s, guessed = time->rest_work_s;
    if (!is_measured) {
        guessed_s += time->steps_s - time->steps_unknown_s;
        guessed += time->steps_work_s;
    }
    guessed_s = clamp_s(guessed_s, time->shared_s - (is_measured ? limit_s : 0));
    guessed = clamp_s(guessed, guessed_s);
    double sure = time->own_s;
    double plain = plain_part(time);
    return (struct alone_estimate){.held_s = time->held_s,
        .shared_s = time->shared_s,
        .measured_s = is_measured ? limit_s : 0,
        .unknown_s = clamp_s(
            time->unknown_s + (is_measured ? 0 : time->steps_unknown_s), time->shared_s),
        .alone_s = sure + measured + guessed,
        .low_s = plain * (sure + (1 - error) * measured + (1 - PREDICTED_ERROR) * guessed),
        .high_s = sure + fmin(limit_s, (1 + error) * measured) +
                  fmin(guessed_s, (1 + PREDICTED_ERROR) * guessed)};
}

json_t *alone_time_json(const struct job *job)
{
    if (!job || !job->alone_time || job->alone_time->held_s <= 0)
        return json_null();
    struct alone_estimate e = alone_time_estimate(job->alone_time, job->steps.alone);
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "held_s", e.held_s, "shared_s",
        e.shared_s, "measured_s", e.measured_s, "unknown_s", e.unknown_s, "alone_s", e.alone_s,
        "alone_low_s", e.low_s, "alone_high_s", e.high_s);
}

/* ---- the file ---- */

static const size_t saved_members[] = {offsetof(struct alone_time, held_s),
    offsetof(struct alone_time, shared_s), offsetof(struct alone_time, unknown_s),
    offsetof(struct alone_time, own_s), offsetof(struct alone_time, steps),
    offsetof(struct alone_time, steps_s), offsetof(struct alone_time, steps_work_s),
    offsetof(struct alone_time, steps_unknown_s), offsetof(struct alone_time, rest_s),
    offsetof(struct alone_time, rest_work_s), offsetof(struct alone_time, price_s)};

/* A file that an earlier version wrote is without the last one. */
enum { SAVED_LEAST = ARRAY_SIZE(saved_members) - 1 };

static double *member_of(struct alone_time *time, size_t i)
{
    return (double *)((char *)time + saved_members[i]);
}

json_t *alone_time_save(const struct job *job)
{
    if (!job->alone_time)
        return json_null();
    json_t *saved = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(saved_members); i++)
        json_array_append_new(saved, json_real(*member_of(job->alone_time, i)));
    return saved;
}

void alone_time_load(struct job *job, const json_t *saved)
{
    if (json_array_size(saved) < SAVED_LEAST || job->alone_time ||
        !(job->alone_time = calloc(1, sizeof *job->alone_time)))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(saved_members); i++)
        *member_of(job->alone_time, i) = json_number_value(json_array_get(saved, i));
}
