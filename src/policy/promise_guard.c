/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What promises of speed demand before a task shares a GPU (docs/promise.md). Each task there that
 * was promised a speed has to be predicted to keep it with the newcomer, and the newcomer to have
 * the speed that it was promised itself. Where the speed of a task is measured to be lower than
 * predicted, the prediction starts from that: the model says how many times slower it becomes. One
 * that is measured to be higher does not count: it may be of a moment when the tasks there had not
 * begun to compute, or have an error, and a newcomer is tried until one is low enough. What the
 * measurements have in common corrects the model (core/state/delays.c).
 *
 * An example. A task was promised 1.3, and takes 1.1 times as long as alone, as measured; the model
 * says 1.08. Beside a newcomer it is predicted to take 1.15 times as long as now: 1.27, so the
 * newcomer is admitted. One of unknown activity counts as a whole GPU, and waits.
 */
#include "policy/promise_guard.h"

#include <math.h>

#include "policy/predict.h"

static bool keeps_promise(const struct placement_query *query, int gpu,
    const struct resident *resident, struct verdict *ret_verdict)
{
    const struct resident_promise *promise = &resident->promise;
    bool is_measured = promise->measured.valid && query->now_us <= promise->until_us;
    if (query->now_us < promise->opens_us) {
        *ret_verdict = (struct verdict){
            .kind = promise->slowdown_max > 0 ? VERDICT_PROMISE : VERDICT_CROWDED,
            .task = resident->task};
        return false;
    }
    if (promise->slowdown_max <= 0)
        return true;
    double slower, in_all = predict_slowdown_beside(query, gpu, resident, &slower);
    double expected = is_measured ? fmax(in_all, promise->measured.value * slower) : in_all;
    if (expected <= promise->slowdown_max && promise->slowdown_max > 1) /* 1: to itself */
        return true;
    *ret_verdict = (struct verdict){.kind = VERDICT_PROMISE_SLOWED,
        .task = resident->task,
        .have = expected,
        .limit = promise->slowdown_max};
    return false;
}

bool promise_guard_ask_all(
    const struct placement_query *query, int gpu, struct verdict *ret_verdict)
{
    const struct gpu_view *view = &query->view->gpus[gpu];
    struct reading own_max = query->task->request.slowdown_max;
    for (int i = 0; i < view->n_residents; i++) {
        const struct resident *resident = &view->residents[i];
        if (!resident->is_stopped && !keeps_promise(query, gpu, resident, ret_verdict))
            return false;
    }
    double own = own_max.valid && view->n_residents > 0 ? predict_own_slowdown(query, gpu) : 1;
    bool is_to_itself = own_max.valid && own_max.value <= 1 && view->n_residents > 0;
    if (!own_max.valid || (own <= own_max.value && !is_to_itself))
        return true;
    *ret_verdict = (struct verdict){
        .kind = VERDICT_PROMISE_OWN, .have = own, .limit = own_max.value};
    return false;
}
