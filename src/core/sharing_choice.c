/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice between time-slicing and MPS, rule by rule in the order of sharing_choose. A reason
 * has a stored name, which does not change, and a text for people.
 *
 * Where no rule forces a mode, SHARING_AUTO follows the interference model. An
 * example: of two recommenders, which keep the GPU busy for a fifth of their time, each runs at
 * 0.92 of its speed in turns and, waiting for its launches, at 0.77 by MPS. The sums are 1.84 and
 * 1.53: in turns. But the first one has started by MPS, when it was alone: its later co-residents
 * are unknown, and most trainings gain from MPS.
 */
#include "core/sharing_choice.h"

#include <errno.h>
#include <string.h>

#include "core/gpu_sharers.h"
#include "core/promise_share.h"
#include "sharing/interference_cache.h"

/* A mode other than MPS has to be predicted to let all together get this many times as much done.
 * The mode stays until the task ends, and its co-residents change meanwhile: on resampled traces
 * 1.02 and 1.05 were worse than 1.1, and 1.15 no better (docs/measured/auto.md, "Rules that were
 * tried and rejected", has the source). */
#define ADVANTAGE_MIN 1.1

/* After this many failures of its MPS server a task runs without MPS. Chosen: one may be chance. */
#define MPS_CHANCES 2

static const struct {
    const char *name, *text;
} reasons[SHARE_REASONS] = {
    [SHARE_AS_ASKED] = {"as-asked", ""},
    [SHARE_ALONE] = {"alone", "no other task is placed on its GPUs, where MPS would only cost"},
    [SHARE_INSTANCE] = {"instance",
        "tasks on a MIG instance, which they fill sooner, are predicted to end no later in turns"},
    [SHARE_ONE_PROCESS] = {"one-process",
        "the compute mode of the GPU admits several processes only through MPS"},
    [SHARE_FILLS] = {"fills", "it nearly fills a GPU: nothing to gain from running side by side"},
    [SHARE_WITH_ROOM] = {"with-room",
        "side by side, tasks get more done than in turns, as far as is known"},
    [SHARE_AS_NEIGHBOURS] = {"as-neighbours",
        "the tasks on the GPU are time-sliced, and so is this one"},
    [SHARE_OTHER_USER] = {"other-user",
        "a task on the GPU is a client of another user's MPS server"},
    [SHARE_BESIDE_FILLER] = {"beside-filler",
        "a task on the GPU nearly fills it and would leave little: they are time-sliced"},
    [SHARE_CAPPED] = {"capped", "it nearly fills a GPU: it leaves some SMs to the tasks on it"},
    [SHARE_FOR_PROMISE] = {"for-promise",
        "a task on the GPU was promised a speed: it leaves some SMs to that task"},
    [SHARE_TURNS_FASTER] = {"turns-faster",
        "it and the tasks on the GPU are predicted to get more done in turns than side by side"},
    [SHARE_MPS_FAILED] = {"mps-failed", "its MPS server has failed before"},
    [SHARE_GPU_WITHOUT_MPS] = {"gpu-without-mps",
        "the setting mps-gpus does not list its GPU: tasks are time-sliced there"},
    [SHARE_POSSIBLE_CAUSE] = {"suspect",
        "a fault under MPS stopped it, its own or another task's: without MPS a fault stays in its own process"},
};

const char *sharing_reason_text(enum share_reason reason)
{
    return reasons[reason].text;
}

const char *sharing_reason_name(enum share_reason reason)
{
    return reasons[reason].name;
}

static struct sharing_mode share_by(enum sharing sharing, enum share_reason reason)
{
    return (struct sharing_mode){.sharing = sharing, .reason = reason};
}

static bool nearly_fills(const struct core_settings *settings, const struct expectation *expect)
{
    return expect->smact.valid && expect->smact.value > settings->filler_smact;
}

/* How the task can share with the residents of a GPU. Returns SHARE_WITH_ROOM when nothing is
 * against MPS. */
static enum share_reason reason_of_residents(const struct gpu_view *gpu, const struct task *task)
{
    for (int i = 0; i < gpu->n_residents; i++) {
        if (gpu->residents[i].sharing == SHARING_STREAMS)
            return SHARE_AS_NEIGHBOURS;
        if (gpu->residents[i].uid != task->uid)
            return SHARE_OTHER_USER;
    }
    return SHARE_WITH_ROOM;
}

/* Returns the sum of the speeds of all tasks on these GPUs, the task included, for each GPU. */
static double progress_by(const struct cluster_view *view, const struct task *task, const int *gpus,
    int n, const struct sharing_mode *share)
{
    const struct interference_constants *constants = view->constants ? view->constants
                                                                     : &interference_measured;
    struct sharer sharers[GPU_SHARERS_MAX];
    double speeds[GPU_SHARERS_MAX], sum = 0;
    for (int i = 0; i < n; i++) {
        const struct gpu_view *gpu = &view->gpus[gpus[i]];
        gpu_sharers_list(gpu, sharers);
        gpu_sharer_set(&sharers[gpu->n_residents], &task->request.expect, share->sharing,
            share->thread_percent);
        interference_speeds_cached(constants, sharers, gpu->n_residents + 1, speeds);
        for (int k = 0; k <= gpu->n_residents; k++)
            sum += speeds[k];
    }
    return sum / n;
}

/* Is there a resident, and is what all of them do known? */
static bool is_predictable(const struct gpu_view *gpu)
{
    for (int i = 0; i < gpu->n_residents; i++)
        if (!gpu->residents[i].expect.smact.valid)
            return false;
    return gpu->n_residents > 0 && gpu->n_residents < GPU_SHARERS_MAX;
}

/* Beside residents that are clients of MPS. A limit of SMs that the user named holds for MPS: then
 * colloc sets no other. */
static struct sharing_mode choose_by_prediction(const struct core_settings *settings,
    const struct cluster_view *view, const struct task *task, const int *gpus, int n)
{
    struct sharing_mode mps = share_by(SHARING_MPS, SHARE_WITH_ROOM),
                        capped = share_by(SHARING_MPS, SHARE_CAPPED),
                        turns = share_by(SHARING_STREAMS, SHARE_TURNS_FASTER);
    mps.thread_percent = task->request.thread_percent;
    double enough = ADVANTAGE_MIN * progress_by(view, task, gpus, n, &mps);
    double in_turns = progress_by(view, task, gpus, n, &turns), limited = 0;
    bool is_promised = task->request.slowdown_max.valid; /* a limit would break that */
    capped.thread_percent = mps.thread_percent || is_promised ? 0 : settings->filler_percent;
    if (capped.thread_percent && nearly_fills(settings, &task->request.expect))
        limited = progress_by(view, task, gpus, n, &capped);
    if (limited > enough && limited >= in_turns)
        return capped;
    return in_turns > enough ? turns : mps;
}

/* On an instance without a resident. Time-slicing ended resampled traces as soon as MPS, and the
 * mean task up to 6 % sooner (docs/measured/auto.md, "MIG", has the source). */
static bool is_idle_instance(const struct gpu_view *gpu)
{
    return gpu->id.is_mig_instance && gpu->n_residents == 0;
}

static struct sharing_mode choose_automatically(const struct core_settings *settings,
    const struct cluster_view *view, const struct task *task, const int *gpus, int n)
{
    bool can_predict = task->request.expect.smact.valid;
    for (int i = 0; i < n; i++) {
        const struct gpu_view *gpu = &view->gpus[gpus[i]];
        if (is_idle_instance(gpu))
            return share_by(SHARING_STREAMS, SHARE_INSTANCE);
        enum share_reason reason = reason_of_residents(gpu, task);
        if (reason != SHARE_WITH_ROOM)
            return share_by(SHARING_STREAMS, reason);
        can_predict &= is_predictable(gpu);
    }
    return can_predict ? choose_by_prediction(settings, view, task, gpus, n)
                       : share_by(SHARING_MPS, SHARE_WITH_ROOM);
}

/* Its requirement and the margin are kept free for it; more belongs to other tasks. */
static int64_t memory_limit(const struct core_settings *settings, const struct cluster_view *view,
    const struct task *task, const int *gpus, int n)
{
    const struct need *need = &task->request.need;
    if (!settings->mps_mem_limit || need->kind < NEED_ESTIMATED || task->oom_count > 0 ||
        task->run->need_is_least)
        return 0;
    int64_t margin = settings->conditions.margin_bytes;
    for (int i = 0; i < n; i++)
        if (need->bytes >= view->gpus[gpus[i]].id.mem_total_bytes - margin)
            return 0;
    return need->bytes + margin;
}

/* What holds for any of the GPUs: a task has one MPS server for all of them, or none. */
struct gpu_limits {
    bool without_mps, one_process;
};

static struct gpu_limits limits_of(const struct cluster_view *view, const int *gpus, int n)
{
    struct gpu_limits limits = {.one_process = false};
    for (int i = 0; i < n; i++) {
        const struct gpu_identity *id = &view->gpus[gpus[i]].id;
        limits.without_mps |= id->without_mps;
        limits.one_process |= id->one_process;
    }
    return limits;
}

/* The share of the SMs: as the user says, or so that promises of speed are kept. */
static void limit_threads(const struct cluster_view *view, const struct task *task, const int *gpus,
    int n, struct sharing_mode *share)
{
    int own = task->request.thread_percent, before = share->thread_percent;
    share->thread_percent = own                  ? own
                            : view->has_promises ? promise_share_limit(view, task, gpus, n, before)
                                                 : before;
    if (!own && share->thread_percent != before)
        share->reason = SHARE_FOR_PROMISE;
}

bool sharing_rules_out_mps(const struct task *task)
{
    return task->request.sharing == SHARING_STREAMS || task->state == TASK_SUSPENDED ||
           task->possible_cause || task->mps_failures >= MPS_CHANCES;
}

struct sharing_mode sharing_choose(const struct core_settings *settings,
    const struct cluster_view *view, const struct task *task, const int *gpus, int n,
    bool exclusive)
{
    enum sharing asked = task->request.sharing;
    const struct gpu_limits limits = limits_of(view, gpus, n);
    struct sharing_mode share = share_by(asked, SHARE_AS_ASKED);
    if (asked == SHARING_STREAMS)
        return share;
    if (limits.without_mps)
        return share_by(SHARING_STREAMS, SHARE_GPU_WITHOUT_MPS);
    if (task->possible_cause)
        return share_by(SHARING_STREAMS, SHARE_POSSIBLE_CAUSE);
    if (task->mps_failures >= MPS_CHANCES)
        return share_by(SHARING_STREAMS, SHARE_MPS_FAILED);
    if (asked == SHARING_AUTO)
        share = exclusive            ? share_by(SHARING_STREAMS, SHARE_ALONE)
                : limits.one_process ? share_by(SHARING_MPS, SHARE_ONE_PROCESS)
                                     : choose_automatically(settings, view, task, gpus, n);
    if (share.sharing == SHARING_MPS) {
        limit_threads(view, task, gpus, n, &share);
        share.mem_limit_bytes = exclusive ? 0 : memory_limit(settings, view, task, gpus, n);
    }
    return share;
}
