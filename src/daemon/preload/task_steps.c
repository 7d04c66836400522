/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The speed of tasks in steps a second, from the pages of their processes. Ranks of one training
 * make the same steps, so a task's speed is the mean of its processes that make any; so is that of
 * a task that runs several trainings. A process without steps (an evaluation beside the training)
 * does not count. Where one process reports its steps, those that are found in the calls of the
 * others do not count.
 *
 * `colloc step` is one more process, whose page has one report when it ends. The daemon's clock
 * says how long the steps took.
 */
#include "daemon/preload/preload_state.h"

#include "base/clock.h"

#define BREAK_TIMES 16  /* a longer step is a break, as in step_counter.c */
#define STEPS_MAX   1e6 /* that one command may report; more is no count */
#define MEAN_WEIGHT 0.25

static void begin_sums(struct job_steps *steps)
{
    steps->sum_per_s = steps->sum_steps = steps->sum_s = 0;
    steps->processes = 0;
}

/* From now on a step is something else. What was counted before says nothing of it: a sum, and a
 * mean, of both would be of nothing. */
static void begin_other_steps(struct job_steps *steps)
{
    if (steps->alone)
        steps->alone->units++;
    steps->total = steps->timed_s = 0;
    begin_sums(steps);
}

/* The first reported steps. */
static void take_marks(struct job_steps *steps)
{
    if (steps->source == PRELOAD_STEPS_CALLS)
        begin_other_steps(steps);
    steps->source = PRELOAD_STEPS_MARKED;
}

static void add_process(struct job_steps *steps, struct preload_process *process,
    struct step_rate *rate, int64_t now_us)
{
    struct step_reading reading = step_reading_of(process->page);
    bool is_marked = reading.source == PRELOAD_STEPS_MARKED,
         was_marked = steps->source == PRELOAD_STEPS_MARKED;
    if (rate->n > 0 && reading.unit != rate->unit && (is_marked || !was_marked))
        begin_other_steps(steps);
    if (is_marked && !was_marked)
        take_marks(steps);
    uint64_t timed_us = 0, count = step_rate_note(rate, &reading, now_us, &timed_us);
    struct reading per_s = step_rate_per_s(rate, now_us);
    if (was_marked && !is_marked)
        return;
    steps->sum_steps += (double)count;
    steps->sum_s += (double)timed_us / SECOND_US;
    if (!per_s.valid)
        return;
    steps->sum_per_s += per_s.value;
    steps->processes++;
    steps->source = (short)reading.source;
}

/* Steps that `colloc step` reports, with the time since its last report. */
static struct reading command_rate(const struct job_steps *steps, int64_t now_us)
{
    if (steps->command_step_us <= 0 ||
        step_rate_is_silent((double)(now_us - steps->command_us), steps->command_step_us))
        return READING_NONE;
    return reading_of(SECOND_US / steps->command_step_us);
}

static void end_sums(struct job_steps *steps, int64_t now_us)
{
    int n = steps->processes > 0 ? steps->processes : 1;
    steps->total += steps->sum_steps / n;
    steps->timed_s += steps->sum_s / n;
    steps->per_s = steps->command_us       ? command_rate(steps, now_us)
                   : steps->processes == 0 ? READING_NONE
                                           : reading_of(steps->sum_per_s / n);
    begin_sums(steps);
}

/* With the last of its processes a task's sums are whole. */
void task_steps_note_all(struct preload_manager *manager)
{
    struct preload_process *process = NULL;
    int64_t now_us = clock_monotonic_us();
    while ((process = preload_next_process(manager->listener, process))) {
        struct known_process *known = process->data;
        struct job *job = jobs_find(manager->parts.jobs, process->peer.task);
        if (job)
            job->steps.left++;
        if (job && known)
            add_process(&job->steps, process, &known->rate, now_us);
    }
    while ((process = preload_next_process(manager->listener, process))) {
        struct job *job = jobs_find(manager->parts.jobs, process->peer.task);
        if (job && --job->steps.left == 0)
            end_sums(&job->steps, now_us);
    }
}

static void note_command(struct job_steps *steps, double count, int64_t now_us)
{
    double step_us = (double)(now_us - steps->command_us) / count;
    bool is_first = steps->command_us == 0;
    bool is_break = steps->command_step_us > 0 && step_us > BREAK_TIMES * steps->command_step_us;
    steps->source = PRELOAD_STEPS_MARKED;
    steps->command_us = now_us;
    if (is_first)
        return;
    if (!is_break)
        steps->command_step_us += (step_us - steps->command_step_us) *
                                  (steps->command_step_us > 0 ? MEAN_WEIGHT : 1);
    steps->total += count;
    steps->timed_s += count * (is_break ? steps->command_step_us : step_us) / SECOND_US;
    steps->per_s = command_rate(steps, now_us);
}

void task_steps_note_end(struct preload_manager *manager, struct preload_process *process)
{
    struct job *job = jobs_find(manager->parts.jobs, process->peer.task);
    struct known_process *known = process->data;
    struct step_reading reading = step_reading_of(process->page);
    int64_t now_us = clock_monotonic_us();
    if (!job || !known)
        return;
    bool is_command = reading.source == PRELOAD_STEPS_MARKED && reading.count == 0 &&
                      reading.marked > 0 && (double)reading.marked <= STEPS_MAX;
    if (is_command)
        note_command(&job->steps, (double)reading.marked, now_us);
    else
        add_process(&job->steps, process, &known->rate, now_us);
    if (!job->steps.command_us)
        job->steps.per_s = READING_NONE; /* until the next poll, if there are others */
}
