/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/conditions.h"

#include <string.h>

#include "policy/predict.h"

static struct verdict verdict(enum verdict_kind kind, uint64_t task, double have, double limit)
{
    return (struct verdict){.kind = kind, .task = task, .have = have, .limit = limit};
}

static const struct verdict fits = {.kind = VERDICT_FITS};

static struct verdict check_place(const struct placement_query *query, const struct gpu_view *gpu)
{
    if (!gpu->id.is_place)
        return verdict(VERDICT_NOT_A_PLACE, 0, 0, 0);
    if (gpu->health == VIEW_LOST)
        return verdict(VERDICT_LOST, 0, 0, 0);
    if (gpu->health == VIEW_FAULTY)
        return verdict(VERDICT_FAULTY, 0, 0, 0);
    if (gpu->health == VIEW_UNSEEN ||
        query->now_us - gpu->sampled_us > query->conditions->sample_valid_us)
        return verdict(VERDICT_NO_SAMPLE, 0, 0, 0);
    if (gpu->id.is_mig_instance && query->task->request.gpus > 1)
        return verdict(VERDICT_MIG_ONE_ONLY, 0, 0, 0);
    if (gpu->whole_for)
        return verdict(VERDICT_TAKEN, gpu->whole_for, 0, 0);
    if (gpu->drained_for && gpu->drained_for != query->task->id)
        return verdict(VERDICT_DRAINED, gpu->drained_for, 0, 0);
    return fits;
}

static struct verdict check_size(const struct placement_query *query, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    if (cluster_view_suits(query->view, i, query->task))
        return fits;
    return verdict(VERDICT_MEMORY_SHORT, 0, (double)gpu->id.mem_total_bytes,
        (double)query->task->request.need.bytes);
}

static struct verdict check_idle(const struct gpu_view *gpu)
{
    if (gpu_view_is_idle(gpu))
        return fits;
    double foreign = gpu->foreign_processes.valid ? gpu->foreign_processes.value : 0;
    return verdict(VERDICT_NOT_IDLE, 0, gpu->n_residents, foreign);
}

static struct verdict check_memory(const struct placement_query *query, const struct gpu_view *gpu)
{
    const struct need *need = &query->task->request.need;
    bool known = need->kind == NEED_ESTIMATED || need->kind == NEED_DECLARED;
    double wanted = known ? (double)need->bytes + (double)query->conditions->margin_bytes
                          : (double)query->conditions->min_free_bytes;
    struct reading free_bytes = gpu_view_free_bytes(gpu);
    if (wanted < query->recovery_free_bytes)
        wanted = query->recovery_free_bytes;
    if (wanted > (double)gpu->id.mem_total_bytes)
        return check_idle(gpu);
    if (!free_bytes.valid)
        return verdict(VERDICT_MEMORY_UNKNOWN, 0, 0, 0);
    double left = free_bytes.value - gpu_view_awaited_bytes(gpu);
    if (left < wanted)
        return verdict(VERDICT_MEMORY_SHORT, 0, left, wanted);
    return fits;
}

struct verdict conditions_check_activity(
    const struct placement_query *query, const struct gpu_view *gpu)
{
    double max = query->conditions->smact_max;
    bool has_smact = gpu->smact_level.valid;
    struct reading activity = has_smact ? gpu->smact_level : gpu->utilisation_level;
    if (!activity.valid)
        return verdict(VERDICT_SMACT_UNKNOWN, 0, 0, max);
    if (activity.value > max + POLICY_ROUNDING)
        return verdict(
            has_smact ? VERDICT_SMACT_HIGH : VERDICT_UTILISATION_HIGH, 0, activity.value, max);
    return fits;
}

/* May the task join `resident` on a GPU? Not when MPS, which serves one user at a time, or the
 * compute mode forbids. */
static struct verdict check_resident(const struct placement_query *query,
    const struct gpu_view *gpu, const struct resident *resident)
{
    const struct task *task = query->task;
    bool both_mps = task->request.sharing != SHARING_STREAMS && resident->sharing == SHARING_MPS;
    bool other_user = resident->uid != task->uid;
    if (gpu->id.one_process && (!both_mps || other_user))
        return verdict(VERDICT_ONE_PROCESS, resident->task, 0, 0);
    if (task->request.sharing == SHARING_MPS && both_mps && other_user &&
        !query->conditions->mps_users_together)
        return verdict(VERDICT_OTHER_MPS_USER, resident->task, 0, 0);
    return fits;
}

struct verdict conditions_check_company(
    const struct placement_query *query, const struct gpu_view *gpu)
{
    bool has_foreign = gpu->foreign_processes.valid && gpu->foreign_processes.value > 0;
    if (gpu->id.one_process && has_foreign)
        return verdict(VERDICT_ONE_PROCESS, 0, 0, 0);
    for (int i = 0; i < gpu->n_residents; i++) {
        struct verdict company = check_resident(query, gpu, &gpu->residents[i]);
        if (company.kind != VERDICT_FITS)
            return company;
    }
    int most = query->conditions->tasks_per_gpu_max;
    if (most && gpu->n_residents >= most)
        return verdict(VERDICT_FULL, 0, gpu->n_residents, most);
    return fits;
}

/*
 * Whoever leaves the choice to colloc is put beside others only where all together gain by it, as
 * far as it is known what everyone asks of the GPU: otherwise they are done sooner one after the
 * other.
 */
static struct verdict check_gain(const struct placement_query *query, int i)
{
    if (query->task->request.sharing != SHARING_AUTO)
        return fits;
    struct outlook outlook = predict_joining_one(query, i);
    if (outlook.known && outlook.gain < PREDICT_GAIN_MIN)
        return verdict(VERDICT_NO_GAIN, 0, outlook.gain, PREDICT_GAIN_MIN);
    return fits;
}

static struct verdict check_sharing(const struct placement_query *query, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    struct verdict company = conditions_check_company(query, gpu);
    if (company.kind != VERDICT_FITS)
        return company;
    const struct resident *newest = gpu_view_unsettled(gpu);
    if (newest)
        return verdict(VERDICT_HOLD_OFF, newest->task, 0, 0);
    struct verdict memory = check_memory(query, gpu);
    struct verdict activity = memory.kind == VERDICT_FITS ? conditions_check_activity(query, gpu)
                                                          : memory;
    return activity.kind == VERDICT_FITS ? check_gain(query, i) : activity;
}

struct verdict conditions_check_place(const struct placement_query *query, int i, bool *ret_decided)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    struct verdict place = check_place(query, gpu);
    struct verdict size = place.kind == VERDICT_FITS ? check_size(query, i) : place;
    *ret_decided = true;
    if (size.kind != VERDICT_FITS)
        return size;
    if (gpu_view_is_idle(gpu))
        return fits;
    if (query->idle_only)
        return check_idle(gpu);
    *ret_decided = false;
    return fits;
}

struct verdict conditions_check(const struct placement_query *query, int i)
{
    bool decided;
    const struct gpu_view *gpu = &query->view->gpus[i];
    if (gpu->kept_for && gpu->kept_for != query->task->id && !query->before_all)
        return verdict(VERDICT_KEPT, gpu->kept_for, 0, 0);
    struct verdict place = conditions_check_place(query, i, &decided);
    return decided ? place : check_sharing(query, i);
}

/*
 * Keeps the best `most` so far in order: by insertion, since tasks take few GPUs. GPUs come by
 * rising index, so that of equal ones the lower index stays in front. Returns how many there are
 * now.
 */
static int insert(const struct placement_query *query, conditions_before *before, int *best, int n,
    int most, int gpu)
{
    int at = n;
    while (at > 0 && before && before(query, gpu, best[at - 1]))
        at--;
    if (at == most)
        return n;
    int last = n < most ? n : most - 1;
    memmove(&best[at + 1], &best[at], (size_t)(last - at) * sizeof *best);
    best[at] = gpu;
    return n < most ? n + 1 : most;
}

/* The last of the best is: then all of them are. */
static bool are_unbeaten(const struct placement_query *query, conditions_before *before,
    conditions_unbeaten *unbeaten, const int *best, int n)
{
    return !before || (unbeaten && unbeaten(query, best[n - 1]));
}

enum placement_answer conditions_choose(const struct placement_query *query,
    conditions_before *before, conditions_unbeaten *unbeaten, int *ret_gpus,
    struct verdict *ret_verdicts)
{
    int wanted = query->task->request.gpus, n = 0;
    int most = wanted < query->view->n_gpus ? wanted : query->view->n_gpus;
    for (int i = 0; i < query->view->n_gpus; i++) {
        ret_verdicts[i] = conditions_check(query, i);
        if (ret_verdicts[i].kind != VERDICT_FITS)
            continue;
        n = insert(query, before, ret_gpus, n, most, i);
        if (n == wanted && are_unbeaten(query, before, unbeaten, ret_gpus, n))
            return PLACE_NOW;
    }
    return n == wanted ? PLACE_NOW : PLACE_WAIT;
}
