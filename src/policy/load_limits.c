/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's power. A GPU whose tasks have settled counts with its power draw. A task that has
 * not settled, or is about to start, may still bring its GPU to more: it counts with its expected
 * SM activity as a part of the GPU's own limit, or, if that is not known, with all of the limit.
 *
 *     server-power-max: 900, two GPUs with a limit of 400 W each
 *       GPU 0 draws 310 W, its tasks have settled         310 W
 *       GPU 1 is idle and draws 50 W                       50 W
 *       a task of unknown activity would start on GPU 1   400 W instead: 710 W in all, it starts
 *       one with an SMACT of 0.5 beside those on GPU 0    310 + 200 W, at most 400: 450 W in all
 *
 * A task that would bring even an idle server over the limit never starts: the least that all GPUs
 * would draw counts for that (POWER_NEVER). A GPU with tasks, or whose idle power is not known,
 * counts there with nothing but the task's power.
 *
 * What a task draws on each of several GPUs counts for each of them. Tasks that draw more after
 * they have settled, and external processes, may bring the server over the limit: no task is
 * stopped for that, but none starts until it is under the limit again.
 */
#include "policy/load_limits.h"

#include "core/core.h"

static bool refuse_load(
    struct verdict *ret_verdict, enum verdict_kind kind, double have, double limit)
{
    *ret_verdict = (struct verdict){.kind = kind, .have = have, .limit = limit};
    return false;
}

static double at_most(double value, double limit)
{
    return value < limit ? value : limit;
}

/* Its power draw. A GPU without a recent sample may draw its whole limit. The power of a MIG
 * instance is part of its card's; a GPU that is not listed does not exist. */
static struct reading drawn_power(const struct placement_query *query, const struct gpu_view *gpu)
{
    bool is_stale = query->now_us - gpu->sampled_us > query->conditions->sample_valid_us;
    double limit_w = gpu->id.power_limit_w;
    if (gpu->id.is_mig_instance || !gpu->is_listed)
        return reading_of(0);
    if (is_stale || gpu->health == VIEW_LOST)
        return limit_w > 0 ? reading_of(limit_w) : READING_NONE;
    return gpu->power_level;
}

/* The present or near power draw of the GPU, without further tasks. */
static struct reading gpu_power(const struct placement_query *query, const struct gpu_view *gpu)
{
    struct reading drawn = drawn_power(query, gpu);
    double limit_w = gpu->id.power_limit_w, unsettled_w = 0;
    bool has_settled = true;
    for (int k = 0; k < gpu->n_residents; k++) {
        if (residence_has_settled(gpu->residents[k].residence))
            continue;
        has_settled = false;
        unsettled_w += gpu_view_expected_w(gpu, &gpu->residents[k].expect);
    }
    if (has_settled)
        return drawn;
    if (limit_w <= 0)
        return READING_NONE;
    return reading_of(at_most(reading_assume(drawn, limit_w) + unsettled_w, limit_w));
}

/* How many GPUs of one server the query is about. */
static int gpus_on_server(const struct placement_query *query)
{
    const struct task_request *request = &query->task->request;
    return request->nodes > 1 ? request->gpus / request->nodes : placement_wanted(query);
}

/* The power that the task may add on each of its GPUs of a server, one of which is this GPU. */
static struct reading added_power(const struct placement_query *query, const struct gpu_view *gpu)
{
    struct reading power = gpu_power(query, gpu);
    double limit_w = gpu->id.power_limit_w;
    if (!power.valid || limit_w <= 0)
        return READING_NONE;
    double left_w = limit_w > power.value ? limit_w - power.value : 0;
    double more_w = at_most(gpu_view_expected_w(gpu, &query->task->request.expect), left_w);
    return reading_of(more_w * gpus_on_server(query));
}

/* The first GPU of the node of GPU `i`. */
static int node_begin(const struct cluster_view *view, int i)
{
    while (i > 0 && view->gpus[i - 1].id.node == view->gpus[i].id.node)
        i--;
    return i;
}

/* What the GPU draws without tasks; 0, the lowest possible, unless it is known to be idle. */
static double idle_power_w(const struct placement_query *query, const struct gpu_view *gpu)
{
    bool is_idle = gpu_view_is_idle(gpu) &&
                   !gpu_view_draws_for_tasks(gpu, query->settings->settle_us);
    bool is_stale = query->now_us - gpu->sampled_us > query->conditions->sample_valid_us;
    struct reading drawn = is_idle && !is_stale ? drawn_power(query, gpu) : READING_NONE;
    return reading_assume(drawn, 0);
}

/* The least that the GPUs of the server (from `begin` to `end`) draw while the task has all of them
 * to itself: no GPU takes it above its own limit. */
static double least_power_w(const struct placement_query *query, int i, int begin, int end)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    double sum_w = 0, highest_w = 0;
    for (int k = begin; k < end; k++) {
        double idle_w = idle_power_w(query, &query->view->gpus[k]);
        sum_w += idle_w;
        highest_w = idle_w > highest_w ? idle_w : highest_w;
    }
    double limit_w = gpu->id.power_limit_w, left_w = limit_w > highest_w ? limit_w - highest_w : 0;
    double task_w = at_most(gpu_view_expected_w(gpu, &query->task->request.expect), left_w);
    return sum_w + task_w * gpus_on_server(query);
}

static bool is_server_under_limit(
    const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    double limit_w = query->conditions->server_power_max_w;
    struct reading sum = added_power(query, &query->view->gpus[i]);
    int begin = node_begin(query->view, i), end = cluster_view_node_end(query->view, begin);
    for (int k = begin; k < end; k++) {
        struct reading power = gpu_power(query, &query->view->gpus[k]);
        sum.valid &= power.valid;
        sum.value += power.value;
    }
    if (!sum.valid)
        return refuse_load(ret_verdict, VERDICT_POWER_UNKNOWN, 0, limit_w);
    if (sum.value <= limit_w)
        return true;
    double least_w = least_power_w(query, i, begin, end);
    return least_w > limit_w ? refuse_load(ret_verdict, VERDICT_POWER_NEVER, least_w, limit_w)
                             : refuse_load(ret_verdict, VERDICT_SERVER_POWER, sum.value, limit_w);
}

static bool is_under_power_limit(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    double limit_w = query->conditions->power_max * gpu->id.power_limit_w;
    if (!gpu->power_level.valid || limit_w <= 0)
        return refuse_load(ret_verdict, VERDICT_POWER_UNKNOWN, 0, limit_w);
    return gpu->power_level.value <= limit_w ||
           refuse_load(ret_verdict, VERDICT_POWER_HIGH, gpu->power_level.value, limit_w);
}

static bool is_under_pcie_limit(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    double limit = (double)query->conditions->pcie_max_bytes;
    if (!gpu->pcie_level.valid)
        return refuse_load(ret_verdict, VERDICT_PCIE_UNKNOWN, 0, limit);
    return gpu->pcie_level.value <= limit ||
           refuse_load(ret_verdict, VERDICT_PCIE_HIGH, gpu->pcie_level.value, limit);
}

bool load_limits_test(const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    const struct conditions *conditions = query->conditions;
    const struct gpu_view *gpu = &query->view->gpus[i];
    bool has_tasks = gpu->n_residents > 0;
    if (conditions->server_power_max_w && !is_server_under_limit(query, i, ret_verdict))
        return false;
    if (has_tasks && conditions->power_max > 0 && !is_under_power_limit(query, gpu, ret_verdict))
        return false;
    return !has_tasks || !conditions->pcie_max_bytes ||
           is_under_pcie_limit(query, gpu, ret_verdict);
}
