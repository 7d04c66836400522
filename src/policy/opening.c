/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a GPU admits the head of the queue is predicted on a copy of the GPU's view (struct stage):
 * its residents leave one after the other, and before each the head's policy is asked whether it
 * would place the head there.
 *
 * A pass tries up to 64 tasks behind the head, and tests each on each of the head's GPUs: does the
 * head still start in time? Two things make that cheap:
 *
 *   1. After how many residents the head is admitted without the task is the same for all tasks. It
 *      is noted for the rest of the pass (struct head_outlook).
 *   2. Most answers follow from the memory alone: even if the largest residents left, too little
 *      would be free beside the task. Then nothing is predicted.
 *   3. The prediction with the task ends where its answer is certain: the head is not admitted
 *      although as many residents have left as without the task, and its start has passed.
 *
 * An example. GPU 0 has residents A, B and C, which leave in this order; their times are not known.
 * Without a further task the head is admitted when A has left. Of 60 tasks behind it:
 *
 *     without:     A B C: no     B C: yes              noted: after 1; not predicted again
 *     with task 1: A B C 1: no   B C 1: yes            after 1, too: task 1 may start
 *     with task 2: A B C 2: no   B C 2: no             after 2 at least: it waits, whatever follows
 *
 * When GPUs are reserved, all are compared, and those that open first are taken. A prediction ends
 * when the GPU opens no sooner than those found before; most GPUs of a full cluster need none.
 */
#include "policy/opening.h"

#include <math.h>

#include "base/clock.h"
#include "base/top_k.h"
#include "core/kind_speed.h"
#include "core/memory_domain.h"
#include "policy/memory_conditions.h"

static int64_t time_of(const struct placement_query *query, const struct stage *stage)
{
    return isfinite(stage->passed_s) ? query->now_us + llround(stage->passed_s * (double)SECOND_US)
                                     : START_UNKNOWN;
}

bool opening_is_before(const struct opening *one, const struct opening *other)
{
    if (one->at_us != other->at_us)
        return one->at_us < other->at_us;
    return one->n_left != other->n_left ? one->n_left < other->n_left : one->speed > other->speed;
}

/* A predicted time differs from that of a time limit by rounding. Chosen: far more than that. */
#define ROUNDING_US MS_US

/* The soonest that the GPU may open once a resident has left: at the first time limit, if it is not
 * known how long its residents take. A resident of known time may end at any time. */
static struct opening soonest_opening(const struct placement_query *query, int gpu)
{
    struct opening soonest = {gpu, START_UNKNOWN, 1, kind_speed_of(query->view, gpu)};
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(&query->view->gpus[gpu]);
    while ((resident = memory_domain_resident(&walk))) {
        if (resident->expect.time_us.valid)
            soonest.at_us = query->now_us;
        else if (resident->ends_us && resident->ends_us - ROUNDING_US < soonest.at_us)
            soonest.at_us = resident->ends_us - ROUNDING_US;
    }
    return soonest;
}

/* Is it certain without a prediction that the GPU opens no sooner than `before`? Most do not: their
 * memory is short now, and the first of their residents leaves later. */
static bool opens_no_sooner(
    const struct placement_query *query, int gpu, const struct opening *before)
{
    const struct gpu_view *view = &query->view->gpus[gpu];
    struct opening soonest = soonest_opening(query, gpu);
    bool is_empty = view->n_residents == 0 && !memory_domain_has_others(view);
    if (is_empty || opening_is_before(&soonest, before))
        return false;
    struct reading used = stage_used_bytes(view);
    return used.valid &&
           (double)view->id.mem_total_bytes - used.value < conditions_wanted_bytes(query);
}

/* While residents leave, the time passes and more have left: it gets no earlier. */
bool opening_predict(const struct placement_query *query, int gpu, const struct opening *before,
    struct opening *ret_opening)
{
    int n_residents = query->view->gpus[gpu].n_residents;
    struct opening *opening = ret_opening;
    struct stage stage;
    *opening = (struct opening){gpu, START_UNKNOWN, n_residents, kind_speed_of(query->view, gpu)};
    if (n_residents > PREDICT_RESIDENTS_MAX)
        return !before || opening_is_before(opening, before);
    if (before && opens_no_sooner(query, gpu, before))
        return false;
    stage_init(&stage, query, gpu);
    opening->n_left = 0;
    for (;; opening->n_left++) {
        opening->at_us = time_of(query, &stage);
        if (before && !opening_is_before(opening, before))
            return false;
        if (stage_admits(query, &stage))
            return true;
        if (!stage_can_advance(&stage))
            break;
        stage_advance(&stage);
    }
    opening->at_us = START_UNKNOWN;
    opening->n_left = OPENING_NEVER;
    return !before || opening_is_before(opening, before);
}

/* Sums of the same numbers in another order differ by less. Chosen: far more than that. */
#define ROUNDING_BYTES 1.0

static bool is_larger(const void *a, const void *b, const void *context)
{
    (void)context;
    return *(const double *)a > *(const double *)b;
}

/* How many residents have to leave when no further task comes, or OPENING_NEVER. */
static int count_leaving(const struct placement_query *query, int gpu)
{
    struct head_outlook *outlook = query->outlooks ? &query->outlooks[gpu] : NULL;
    if (outlook && outlook->is_noted)
        return outlook->n_left;
    struct opening opening;
    opening_predict(query, gpu, NULL, &opening);
    if (outlook)
        *outlook = (struct head_outlook){.is_noted = true, .n_left = opening.n_left};
    return opening.n_left;
}

/* The most that `n` of the tasks of the memory domain and the joining one hold together. */
static double most_held_bytes(const struct gpu_view *gpu, double joining_bytes, int n)
{
    double most[PREDICT_RESIDENTS_MAX + 1], sum = 0;
    size_t count = top_k_insert(most, 0, (size_t)n, sizeof *most, &joining_bytes, is_larger, NULL);
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk))) {
        double bytes = stage_held_bytes(resident);
        count = top_k_insert(most, count, (size_t)n, sizeof *most, &bytes, is_larger, NULL);
    }
    for (size_t i = 0; i < count; i++)
        sum += most[i];
    return sum;
}

bool opening_is_ruled_out(
    const struct placement_query *query, int gpu, const struct task *joining, int n_left)
{
    const struct gpu_view *view = &query->view->gpus[gpu];
    struct reading used = stage_used_bytes(view);
    double joining_bytes = stage_task_bytes(view, joining);
    bool may_leave = joining->request.expect.time_us.valid || joining->request.time_limit_us;
    if (!used.valid || n_left > PREDICT_RESIDENTS_MAX)
        return false;
    double left = used.value + joining_bytes -
                  most_held_bytes(view, may_leave ? joining_bytes : 0, n_left);
    return (double)view->id.mem_total_bytes - left + ROUNDING_BYTES <
           conditions_wanted_bytes(query);
}

bool opening_lasts(
    const struct placement_query *query, int gpu, const struct task *joining, int64_t start_us)
{
    struct stage stage;
    int without = count_leaving(query, gpu);
    if (start_us == START_UNKNOWN && opening_is_ruled_out(query, gpu, joining, without))
        return false;
    stage_init(&stage, query, gpu);
    stage_add_task(&stage, joining, kind_speed_at(query->view, joining, gpu), query->now_us);
    for (int n_left = 0;; n_left++) {
        bool is_in_time = start_us != START_UNKNOWN && time_of(query, &stage) <= start_us;
        if (stage_admits(query, &stage))
            return n_left == 0 || n_left == without || is_in_time;
        if (!stage_can_advance(&stage) || (n_left >= without && !is_in_time))
            return false;
        stage_advance(&stage);
    }
}
