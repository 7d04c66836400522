/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a GPU admits the head of the queue is predicted on a copy of the GPU's view (struct stage):
 * its residents leave one after the other, and before each the head's policy is asked whether it
 * would place the head there.
 *
 * A pass tries up to 64 tasks behind the head, and asks about each on each of the head's GPUs: does
 * the head still start in time? What makes that cheap:
 *
 *   1. After how many residents the head is admitted without the task is the same for all tasks. It
 *      is noted for the rest of the pass (struct head_outlook).
 *   2. The prediction with the task ends where its answer is certain: the head is not admitted
 *      although as many residents have left as without the task, and its start has passed.
 *
 * An example. GPU 0 has residents A, B and C, which leave in this order; their times are not known.
 * Without a further task the head is admitted when A has left. Of 60 tasks behind it:
 *
 *     without:     A B C: no     B C: yes              noted: after 1; not predicted again
 *     with task 1: A B C 1: no   B C 1: yes            after 1, too: task 1 may start
 *     with task 2: A B C 2: no   B C 2: no             after 2 at least: it waits, whatever follows
 */
#include "policy/opening.h"

#include <math.h>

#include "base/clock.h"
#include "core/kind_speed.h"
#include "policy/stage.h"

static int64_t time_of(const struct placement_query *query, const struct stage *stage)
{
    return isfinite(stage->passed_s) ? query->now_us + llround(stage->passed_s * (double)SECOND_US)
                                     : START_UNKNOWN;
}

struct opening opening_predict(const struct placement_query *query, int gpu)
{
    int n_residents = query->view->gpus[gpu].n_residents;
    struct opening opening = {gpu, START_UNKNOWN, 0, kind_speed_of(query->view, gpu)};
    struct stage stage;
    if (n_residents > PREDICT_RESIDENTS_MAX) {
        opening.n_left = n_residents;
        return opening;
    }
    stage_init(&stage, query, gpu);
    for (; !stage_admits(query, &stage); opening.n_left++) {
        if (stage.gpu.n_residents == 0) {
            opening.n_left = OPENING_NEVER;
            return opening;
        }
        stage_advance(&stage);
    }
    opening.at_us = time_of(query, &stage);
    return opening;
}

/* How many residents have to leave when no further task comes, or OPENING_NEVER. */
static int count_leaving(const struct placement_query *query, int gpu)
{
    struct head_outlook *outlook = query->outlooks ? &query->outlooks[gpu] : NULL;
    if (outlook && outlook->is_noted)
        return outlook->n_left;
    int n_left = opening_predict(query, gpu).n_left;
    if (outlook)
        *outlook = (struct head_outlook){.is_noted = true, .n_left = n_left};
    return n_left;
}

bool opening_lasts(
    const struct placement_query *query, int gpu, const struct task *joining, int64_t start_us)
{
    struct stage stage;
    int without = count_leaving(query, gpu);
    stage_init(&stage, query, gpu);
    stage_add_task(&stage, joining, kind_speed_at(query->view, joining, gpu), query->now_us);
    for (int n_left = 0;; n_left++) {
        bool is_in_time = start_us != START_UNKNOWN && time_of(query, &stage) <= start_us;
        if (stage_admits(query, &stage))
            return n_left == 0 || n_left == without || is_in_time;
        if (stage.gpu.n_residents == 0 || (n_left >= without && !is_in_time))
            return false;
        stage_advance(&stage);
    }
}
