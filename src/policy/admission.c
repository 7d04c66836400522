/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admission test of the policy predictive, in this order:
 *
 *   1. MPS, compute mode and the limit of tasks allow the task beside the residents.
 *      A service there admits it (service_guard.c), and so do promises of speed
 *      (promise_guard.c).
 *   2. No resident's memory is still rising, unless its requirement and its activity are known, or
 *      tasks may start beside it (starting.c).
 *   3. Memory: free memory, minus the known requirements that residents have not taken yet, and
 *      minus what they have given back since they were sampled, is at least the task's requirement
 *      and the margin. In 2 and 3 the residents are those of the memory domain
 *      (core/memory_domain.h).
 *   4. Speed: predicted by the interference model where the activity of every task is known, else
 *      the dissertation's limit on SM activity.
 *
 * An example. A GPU of 40 GiB runs one resident that declared 20 GiB and has taken 5 GiB so far; 35
 * GiB are free. A task that declares 15 GiB arrives. Free memory alone would admit it. But 15 GiB
 * of the free memory will be taken by the resident, so 20 GiB are left. The task requires its 15
 * GiB and the margin of 2 GiB: it fits. A task of 19 GiB does not: "1.0 GiB short".
 */
#include "policy/admission.h"

#include <stddef.h>

#include "core/memory_domain.h"
#include "policy/conditions.h"
#include "policy/promise_guard.h"
#include "policy/service_guard.h"
#include "policy/starting.h"

static bool has_memory(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    struct reading free_bytes = gpu_view_free_bytes(gpu);
    double left = free_bytes.value;
    if (!free_bytes.valid) {
        *ret_verdict = (struct verdict){.kind = VERDICT_MEMORY_UNKNOWN};
        return false;
    }
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk)))
        left -= resident_outstanding_bytes(resident);
    left -= gpu_view_returned_bytes(gpu);
    return conditions_check_left(query, gpu, left, ret_verdict);
}

bool admission_check_effect(const struct placement_query *query, const struct prediction *effect,
    struct verdict *ret_verdict)
{
    double slowdown_max = query->conditions->slowdown_max;
    if (effect->slowdown > slowdown_max)
        *ret_verdict = (struct verdict){
            .kind = VERDICT_SLOWDOWN, .have = effect->slowdown, .limit = slowdown_max};
    else if (effect->gain < PREDICT_GAIN_MIN)
        *ret_verdict = (struct verdict){
            .kind = VERDICT_NO_GAIN, .have = effect->gain, .limit = PREDICT_GAIN_MIN};
    else
        return true;
    return false;
}

/* The effect of a task of several GPUs is tested on all of them together: see predictive.c. */
static bool is_fast_enough(const struct placement_query *query, struct predictor *predictor, int i,
    struct verdict *ret_verdict)
{
    struct prediction effect = predictor_join(predictor, &i, 1);
    if (!effect.known)
        return conditions_check_activity(query, &predictor->view->gpus[i], ret_verdict);
    bool has_several = placement_wanted(query) > 1;
    return has_several || admission_check_effect(query, &effect, ret_verdict);
}

bool admission_check(const struct placement_query *query, struct predictor *predictor, int i,
    struct verdict *ret_verdict)
{
    const struct gpu_view *gpu = &predictor->view->gpus[i];
    if (!conditions_check_free(query, gpu, ret_verdict) ||
        !conditions_check_coresidents(query, gpu, ret_verdict) ||
        !service_guard_admits(query, i, ret_verdict) ||
        !promise_guard_admits(query, i, ret_verdict))
        return false;
    return starting_admits(query, gpu, true, ret_verdict) && has_memory(query, gpu, ret_verdict) &&
           is_fast_enough(query, predictor, i, ret_verdict);
}
