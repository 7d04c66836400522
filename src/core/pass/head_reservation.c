/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserves GPUs for the head of the main queue, which has to wait: those on which its policy
 * predicts that it starts first. Tasks behind it may then start where that does not delay it
 * (policy/backfill.h has the rules and an example).
 *
 * The choice stands as long as it can serve the head. What may have changed the prediction releases
 * it (core_release_reservation), and the next pass chooses again.
 */
#include "core/pass/head_reservation.h"

#include "core/ask/placement.h"
#include "core/ask/queue_head.h"
#include "core/ask/servable.h"
#include "core/ask/set_aside.h"
#include "core/memory_domain.h"
#include "core/node_choice.h"
#include "core/questions.h"
#include "core/state/claims.h"
#include "core/state/state.h"

/* If it is not known when the head can start, any GPU that suits it, and is not kept from it by a
 * reservation in advance, may be the first to admit it.
 * (A policy that takes the longest task first has times, and takes that risk. A head that was run
 * again has had its turn.) */
static bool may_get_any_gpu(const struct core *core, const struct task *head)
{
    return core->view.reservation_start_us == START_UNKNOWN &&
           !core_task_policy(core, head)->longest_first && !core_queue_goes_on(core, head);
}

/* In a cluster the CPUs of a node are as scarce as its GPUs: a GPU is reserved with all others of
 * its node. */
static void reserve_whole_nodes(struct core *core, uint64_t id)
{
    struct gpu_view *gpus = core->view.gpus;
    for (int first = 0, end; first < core->view.n_gpus; first = end) {
        bool any = false;
        end = cluster_view_node_end(&core->view, first);
        for (int i = first; i < end; i++)
            any |= gpus[i].claims[CLAIM_HEAD] == id;
        for (int i = first; i < end && any; i++)
            if (!placement_sets_aside(&core->placement, i))
                gpus[i].claims[CLAIM_HEAD] = id;
    }
}

/* A task on a place that shares the memory of a reserved one would take that, too. */
static void reserve_whole_domains(struct core *core, uint64_t id)
{
    for (int i = 0; i < core->view.n_gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[i], *at = memory_domain_next(gpu);
        for (; gpu->is_choice_of_head && at != gpu; at = memory_domain_next(at))
            if (!placement_sets_aside(&core->placement, (int)(at - core->view.gpus)))
                at->claims[CLAIM_HEAD] = id;
    }
}

/* The value that a later sample is compared with (apply_sample.c). */
static void note_external_memory(struct core *core)
{
    for (int i = 0; i < core->view.n_gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[i];
        if (gpu->claims[CLAIM_HEAD])
            gpu->unaccounted_when_reserved = gpu_view_unaccounted_bytes(gpu);
    }
}

/* Can the GPUs that were chosen for the head still serve it? One may have failed or stopped
 * answering, or be kept from it by a reservation in advance. */
static bool does_choice_hold(struct core *core, const struct task *head, int64_t now_us)
{
    int left = head->request.gpus;
    core_set_aside(core, head, NULL, now_us, &core->placement);
    for (int i = 0; i < core->view.n_gpus && left > 0; i++) {
        if (!core->view.gpus[i].is_choice_of_head)
            continue;
        if (!core_can_serve(core, i, head, &core->placement, now_us))
            return false;
        left--;
    }
    return true;
}

bool core_reserve_gpus(struct core *core, const struct task *task, int64_t now_us)
{
    if (core->reserved_for == task->id && does_choice_hold(core, task, now_us))
        return true;
    core_release_reservation(core);
    struct placement_query query = core_query(core, task, NULL, now_us, &core->placement);
    if (!node_choice_reserve(core_task_policy(core, task), &query, core->placement.gpus,
            &core->view.reservation_start_us))
        return false;
    for (int i = 0; i < task->request.gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[core->placement.gpus[i]];
        gpu->claims[CLAIM_HEAD] = task->id;
        gpu->is_choice_of_head = true;
    }
    for (int i = 0; i < core->view.n_gpus && may_get_any_gpu(core, task); i++)
        if (cluster_view_suits(&core->view, i, task) && !placement_sets_aside(&core->placement, i))
            core->view.gpus[i].claims[CLAIM_HEAD] = task->id;
    if (core->node_check.ask)
        reserve_whole_nodes(core, task->id);
    reserve_whole_domains(core, task->id);
    note_external_memory(core);
    core->reserved_for = task->id;
    core->n_choices++;
    return true;
}
