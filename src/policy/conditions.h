/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conditions that a GPU must meet before it may take a task under any policy, and the choice of
 * the best GPUs that meet them. A policy is then little more than an order among GPUs.
 */
#ifndef COLLOC_POLICY_CONDITIONS_H
#define COLLOC_POLICY_CONDITIONS_H

#include "core/policy.h"
#include "policy/starting.h"

/*
 * All conditions for one GPU: those of the dissertation, section 6.2.2, and three more
 * (conditions.c lists them in order, with an example).
 *
 * Returns VERDICT_FITS, or the first condition that is not met.
 */
struct verdict conditions_check(const struct placement_query *query, int gpu);

/*
 * The following are parts of it, for policies that replace the others. Each returns whether its
 * conditions are met, and sets `ret_verdict` only if not.
 */

/*
 * The conditions on the GPU itself: the task may be placed on it, it is healthy, recently sampled
 * and large enough, and no other task has it exclusively.
 *
 * ret_is_final: true when no more is to be tested: the GPU cannot take the task, or it is idle, or
 *               the task takes only idle ones. False: the conditions on sharing remain.
 */
bool conditions_check_place(
    const struct placement_query *query, int gpu, bool *ret_is_final, struct verdict *ret_verdict);

/* Returns the bytes that must be free for the query's task on a GPU with residents. */
double conditions_wanted_bytes(const struct placement_query *query);

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

/* May the task run beside the residents at all? VERDICT_ONE_PROCESS, VERDICT_OTHER_MPS_USER or
 * VERDICT_FULL if not. */
bool conditions_check_coresidents(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict);

/* Is the activity at most conditions->smact_max? VERDICT_SMACT_UNKNOWN, VERDICT_SMACT_HIGH or
 * VERDICT_UTILISATION_HIGH (utilisation replaces an unknown SMACT) if not. */
bool conditions_check_activity(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict);

/* Does its server admit the task? VERDICT_NODE if not. To be tested last: it is the most expensive
 * condition. */
bool conditions_check_node(
    const struct placement_query *query, int gpu, struct verdict *ret_verdict);

/* Is GPU `a` better than `b`? Both fit. A strict order; of equal ones the lower index wins. */
typedef bool conditions_before(const struct placement_query *query, int a, int b);

/* Tests whether no GPU of a higher index can be better: those are not tested then. */
typedef bool conditions_unbeaten(const struct placement_query *query, int gpu);

/*
 * A policy's `choose` (core/policy.h): the best of the GPUs that fit.
 *
 * before:   the order; NULL: by index.
 * unbeaten: may be NULL.
 */
enum placement_answer conditions_choose(const struct placement_query *query,
    conditions_before *before, conditions_unbeaten *unbeaten, int *ret_gpus,
    struct verdict *ret_verdicts);

#endif
