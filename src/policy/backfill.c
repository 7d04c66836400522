/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPUs are reserved for the head of the queue, and which tasks behind it leave them in time:
 * the rules of backfill.h. When a GPU admits the head is predicted by opening.c.
 */
#include "policy/backfill.h"

#include <math.h>

#include "base/clock.h"
#include "base/top_k.h"
#include "core/kind_speed.h"
#include "policy/opening.h"
#include "policy/stage.h"

/* Chosen: a task that wants more GPUs gets no reservation. */
enum { RESERVED_MAX = 64 };

static bool opens_before(const void *a, const void *b, const void *context)
{
    (void)context;
    return opening_is_before(a, b);
}

static bool may_open(const struct placement_query *query, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    return query->now_us - gpu->sampled_us <= query->conditions->sample_valid_us &&
           cluster_view_is_available(query->view, i, query->task, CLAIMS_DRAIN, query->set_aside);
}

bool backfill_reserve(const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us)
{
    int wanted = placement_wanted(query);
    size_t n = 0;
    struct opening best[RESERVED_MAX];
    if (wanted > RESERVED_MAX)
        return false;
    for (int i = query->first_gpu; i < placement_end_gpu(query); i++) {
        if (!may_open(query, i))
            continue;
        struct opening opening, *last = n == (size_t)wanted ? &best[n - 1] : NULL;
        if (!opening_predict(query, i, last, &opening) ||
            placement_ask_node(query, i) == NODE_NEVER)
            continue;
        n = top_k_insert(best, n, (size_t)wanted, sizeof *best, &opening, opens_before, NULL);
    }
    if (n < (size_t)wanted)
        return false;
    for (int i = 0; i < wanted; i++)
        ret_gpus[i] = best[i].gpu;
    *ret_start_us = best[wanted - 1].at_us;
    return true;
}

/* ---- which task may be backfilled ---- */

static bool is_reserved_for_another(const struct gpu_view *gpu, const struct task *task)
{
    return gpu->claims[CLAIM_HEAD] && gpu->claims[CLAIM_HEAD] != task->id;
}

/* Returns the task for which another GPU of the resident is reserved, or 0. */
static uint64_t reservation_of_resident(
    const struct placement_query *query, const struct resident *resident)
{
    for (int i = 0; resident->gpus > 1 && i < resident->gpus; i++) {
        const struct gpu_view *gpu = &query->view->gpus[resident->places[i]];
        if (is_reserved_for_another(gpu, query->task))
            return gpu->claims[CLAIM_HEAD];
    }
    return 0;
}

/* Rule 1: a resident that is slowed down here leaves its reserved GPU later. */
static uint64_t delays_on_other_gpu(
    const struct placement_query *query, struct predictor *predictor, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    for (int k = 0; k < gpu->n_residents; k++) {
        uint64_t head = reservation_of_resident(query, &gpu->residents[k]);
        if (head && predictor_slows_resident(predictor, i, &gpu->residents[k]))
            return head;
    }
    return 0;
}

/* Will the query's task be over by then on GPU `i`, as far as is known? */
static bool is_over_by(const struct placement_query *query, int i, int64_t at_us)
{
    const struct task *task = query->task;
    double expected_s = stage_expected_s(&task->request.expect) /
                        kind_speed_at(query->view, task, i);
    double takes_s = fmin(expected_s, stage_limit_s(task));
    return at_us != START_UNKNOWN && takes_s <= (double)(at_us - query->now_us) / (double)SECOND_US;
}

/* Rule 4. Returns when the head may start at the latest, or START_UNKNOWN. */
static int64_t latest_start_us(const struct placement_query *query)
{
    int64_t start_us = query->view->reservation_start_us;
    struct reading takes_us = query->head->request.expect.time_us;
    if (start_us == START_UNKNOWN || !takes_us.valid || !query->task->request.slowdown_max.valid)
        return start_us;
    int64_t waited_us = query->head->submitted_us + llround(takes_us.value);
    return waited_us > start_us ? waited_us : start_us;
}

/* Rules 2 to 4. */
static bool leaves_room_for_head(const struct placement_query *query, int i)
{
    struct placement_query of_head = *query;
    of_head.task = query->head;
    of_head.array_left = 0; /* of the query's task; of the head it is not known */
    of_head.policy = query->head_policy;
    of_head.idle_only = query->head->request.exclusive || query->head_policy->exclusive_gpus;
    int64_t start_us = query->view->reservation_start_us;
    if (query->node_check && !is_over_by(query, i, start_us))
        return false;
    if (query->view->gpus[i].n_residents >= PREDICT_RESIDENTS_MAX)
        return false;
    return opening_lasts(&of_head, i, query->task, latest_start_us(query));
}

uint64_t backfill_delayed_task(
    const struct placement_query *query, struct predictor *predictor, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    if (query->passes_reservation)
        return 0;
    if (!is_reserved_for_another(gpu, query->task))
        return delays_on_other_gpu(query, predictor, i);
    bool is_for_head = query->head && query->head->id == gpu->claims[CLAIM_HEAD];
    return is_for_head && leaves_room_for_head(query, i) ? 0 : gpu->claims[CLAIM_HEAD];
}
