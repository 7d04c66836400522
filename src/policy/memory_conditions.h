/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conditions on memory, for the conditions of all policies (conditions.c, admission.c) and for
 * what predicts when they are met (opening.c).
 */
#ifndef COLLOC_POLICY_MEMORY_CONDITIONS_H
#define COLLOC_POLICY_MEMORY_CONDITIONS_H

#include "core/policy.h"
#include "policy/starting.h"

/* Returns the bytes that must be free for the query's task on a GPU with residents. */
static inline double conditions_wanted_bytes(const struct placement_query *query)
{
    const struct need *need = &query->task->request.need;
    const struct conditions *conditions = query->conditions;
    double wanted = need->kind >= NEED_ESTIMATED
                        ? (double)need->bytes + (double)conditions->margin_bytes
                        : (double)conditions->min_free_bytes;
    return wanted < query->recovery_free_bytes ? query->recovery_free_bytes : wanted;
}

/* Returns the memory of a GPU that is not taken, and where tasks start beside others also not
 * reserved for those that are starting: the policies order GPUs by it. */
static inline struct reading conditions_left_bytes(
    const struct placement_query *query, const struct gpu_view *gpu)
{
    struct reading left = gpu_view_free_bytes(gpu);
    if (query->conditions->starting_max > 0)
        left.value -= starting_promised_bytes(query, gpu) + starting_kept_bytes(query, gpu);
    return left;
}

/* Is the free memory enough if the residents take no more? Returns false with a verdict if not. */
bool conditions_has_free(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict);

/* Is `left` enough for the task, and also without what is kept for residents of unknown memory that
 * are starting? Returns false with VERDICT_MEMORY_SHORT or VERDICT_MEMORY_KEPT if not. */
bool conditions_check_left(const struct placement_query *query, const struct gpu_view *gpu,
    double left, struct verdict *ret_verdict);

/*
 * Refuses, where the query is unexplained, a GPU of which the free memory is short even if its
 * residents take no more. Most GPUs of a full cluster are such, and no resident is read for that.
 * The memory is tested again where this does not refuse.
 *
 * Returns false with a verdict where it refuses.
 */
static inline bool conditions_check_free(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    return !query->is_unexplained || conditions_has_free(query, gpu, ret_verdict);
}

/* The same from the view's list of open capacity, without the view of the GPU. */
struct conditions_filter {
    const double *open_bytes; /* NULL: reasons are read, or nothing is noted */
    double wanted_bytes;
};

struct conditions_filter conditions_filter_of(const struct placement_query *query);

/* Returns true with a verdict where the GPU is not idle and its free memory is short. */
static inline bool conditions_filter_refuses(
    const struct conditions_filter *filter, int gpu, struct verdict *ret_verdict)
{
    if (!filter->open_bytes || !(filter->open_bytes[gpu] < filter->wanted_bytes))
        return false;
    *ret_verdict = (struct verdict){
        VERDICT_MEMORY_SHORT, 0, filter->open_bytes[gpu], filter->wanted_bytes};
    return true;
}

#endif
