/*
 * Foresee, a policy of this project's own.
 *
 * Memory: what residents have been said to need is theirs from the moment they are placed, whether they have taken it
 * yet or not. A newcomer to others wants the margin more than it needs, and no less than 0.4 of its need: what is free
 * need not be in one piece, and an allocator asks for much at once.
 *
 * Speed: where all who would share a GPU are known by their SM activity, the laws of sharing predict how fast everyone
 * then is (predict.h). A task goes where all together gain most by it; nowhere where somebody would take more than
 * slowdown_max times as long as alone; and nowhere where so little is gained that it had better wait. Where somebody is
 * not known, the thesis's limit on SM activity stands for that, and he is taken to want the whole GPU.
 *
 * Overtaking: what is kept for the first of the queue, and who may pass it, is in policy/overtaking.h.
 */
#include "policy/foresee.h"

#include <math.h>
#include <stddef.h>

#include "policy/conditions.h"
#include "policy/overtaking.h"
#include "policy/policy.h"
#include "policy/predict.h"

/*
 * What the need is more, for memory in pieces. Chosen by simulation, as PREDICT_GAIN_MIN and slowdown_max are, on
 * traces resampled with other seeds than those that foresee is judged by (docs/measured/foresee.md).
 */
#define PIECES_SHARE 0.4
/* With more GPUs than that not all pairs are looked at: a pass must stay short. */
#define PAIRS_MAX 64
/* Sums of the same numbers in another order differ by less. */
#define ROUNDING 1e-9

static const struct verdict fits = {.kind = VERDICT_FITS};

static double wanted_bytes(const struct placement_query *query)
{
    const struct need *need = &query->task->request.need;
    double bytes = (double)need->bytes, more = fmax(PIECES_SHARE * bytes, (double)query->conditions->margin_bytes);
    bool known = need->kind >= NEED_ESTIMATED;
    return fmax(known ? bytes + more : (double)query->conditions->min_free_bytes, query->recovery_free_bytes);
}

/* What of its need the resident has not taken yet. Where the driver does not say, it has once it has settled. */
static double outstanding(const struct resident *resident)
{
    double need = (double)resident->need_bytes;
    return fmax(0, need - reading_or(resident->mem_used_bytes, resident->settled ? need : 0));
}

static struct verdict check_memory(const struct placement_query *query, const struct gpu_view *gpu)
{
    struct reading free_bytes = gpu_view_free_bytes(gpu);
    double left = free_bytes.value, wanted = wanted_bytes(query);
    if (!free_bytes.valid)
        return (struct verdict){.kind = VERDICT_MEMORY_UNKNOWN};
    for (int i = 0; i < gpu->n_residents; i++)
        left -= outstanding(&gpu->residents[i]);
    if (left < wanted)
        return (struct verdict){.kind = VERDICT_MEMORY_SHORT, .have = left, .limit = wanted};
    return fits;
}

/* It stood behind this task, which the GPU is kept for, and what it will take is known: it must not delay it. */
static bool has_overtaken(const struct placement_query *query, const struct gpu_view *gpu,
                          const struct resident *resident)
{
    return gpu->kept_for == query->task->id && resident->task > query->task->id && resident->need_bytes;
}

/* Who still takes his memory holds others off: two who take it at once would leave what is free in smaller pieces. */
static const struct resident *find_rising(const struct placement_query *query, const struct gpu_view *gpu)
{
    for (int i = gpu->n_residents - 1; i >= 0; i--)
        if (!gpu->residents[i].settled && !has_overtaken(query, gpu, &gpu->residents[i]))
            return &gpu->residents[i];
    return NULL;
}

static struct verdict judge(const struct placement_query *query, const struct outlook *outlook)
{
    double slowdown_max = query->conditions->slowdown_max;
    if (outlook->slowdown > slowdown_max)
        return (struct verdict){.kind = VERDICT_SLOWDOWN, .have = outlook->slowdown, .limit = slowdown_max};
    if (outlook->gain < PREDICT_GAIN_MIN)
        return (struct verdict){.kind = VERDICT_NO_GAIN, .have = outlook->gain, .limit = PREDICT_GAIN_MIN};
    return fits;
}

static struct verdict check_speed(const struct placement_query *query, const struct cluster_view *view, int i)
{
    struct outlook outlook = predict_joining(query, view, &i, 1);
    if (!outlook.known)
        return conditions_check_activity(query, &view->gpus[i]);
    bool counts_together = query->task->request.gpus > 1; /* all its GPUs: see choose */
    return counts_together ? fits : judge(query, &outlook);
}

struct verdict foresee_check_sharing(const struct placement_query *query, const struct cluster_view *view, int i)
{
    const struct gpu_view *gpu = &view->gpus[i];
    struct verdict company = conditions_check_company(query, gpu);
    if (company.kind != VERDICT_FITS)
        return company;
    const struct resident *rising = find_rising(query, gpu);
    if (rising)
        return (struct verdict){.kind = VERDICT_HOLD_OFF, .task = rising->task};
    struct verdict memory = check_memory(query, gpu);
    return memory.kind == VERDICT_FITS ? check_speed(query, view, i) : memory;
}

static struct verdict check(const struct placement_query *query, int i)
{
    bool decided;
    struct verdict place = conditions_check_place(query, i, &decided);
    if (decided && place.kind != VERDICT_FITS)
        return place;
    uint64_t delayed = overtaking_delays(query, i);
    if (delayed)
        return (struct verdict){.kind = VERDICT_KEPT, .task = delayed};
    return decided ? place : foresee_check_sharing(query, query->view, i);
}

static double gain_of(const struct placement_query *query, const int *gpus, int n)
{
    return predict_joining(query, query->view, gpus, n).gain;
}

/* One more of those that fit: the one with which all those chosen gain most together. Of equal ones the first. */
static bool add_best(const struct placement_query *query, const struct verdict *verdicts, int *chosen, int n)
{
    double best_gain = -INFINITY;
    int best = -1;
    for (int i = 0; i < query->view->n_gpus; i++) {
        bool open = verdicts[i].kind == VERDICT_FITS;
        for (int k = 0; k < n; k++)
            open &= chosen[k] != i;
        chosen[n] = i;
        double gain = open ? gain_of(query, chosen, n + 1) : -INFINITY;
        if (open && gain > best_gain + ROUNDING) {
            best_gain = gain;
            best = i;
        }
    }
    chosen[n] = best;
    return best >= 0;
}

static bool complete(const struct placement_query *query, const struct verdict *verdicts, int *chosen, int n)
{
    for (; n < query->task->request.gpus; n++)
        if (!add_best(query, verdicts, chosen, n))
            return false;
    return true;
}

/*
 * The best set of GPUs, nearly: one after the other the best one; for a pair, all pairs. Those of a pair are worth more
 * together than one by one where another pair is on both, which is slowed down once.
 */
static bool pick(const struct placement_query *query, const struct verdict *verdicts, int *ret_gpus)
{
    double best_gain;
    if (!complete(query, verdicts, ret_gpus, 0))
        return false;
    best_gain = gain_of(query, ret_gpus, query->task->request.gpus);
    bool is_pair = query->task->request.gpus == 2 && query->view->n_gpus <= PAIRS_MAX;
    for (int i = 0; i < query->view->n_gpus && is_pair; i++) {
        int pair[2] = {i};
        if (verdicts[i].kind != VERDICT_FITS || !complete(query, verdicts, pair, 1))
            continue;
        double gain = gain_of(query, pair, 2);
        if (gain <= best_gain + ROUNDING)
            continue;
        best_gain = gain;
        ret_gpus[0] = pair[0];
        ret_gpus[1] = pair[1];
    }
    return true;
}

static enum placement_answer choose(const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    int wanted = query->task->request.gpus;
    for (int i = 0; i < query->view->n_gpus; i++)
        ret_verdicts[i] = check(query, i);
    if (wanted > query->view->n_gpus || !pick(query, ret_verdicts, ret_gpus))
        return PLACE_WAIT;
    struct outlook outlook = predict_joining(query, query->view, ret_gpus, wanted);
    struct verdict together = outlook.known && wanted > 1 ? judge(query, &outlook) : fits;
    for (int i = 0; i < wanted && together.kind != VERDICT_FITS; i++)
        ret_verdicts[ret_gpus[i]] = together;
    return together.kind == VERDICT_FITS ? PLACE_NOW : PLACE_WAIT;
}

const struct policy policy_foresee = {
    .name = "foresee",
    .help = "where all tasks together are predicted to gain most; others may overtake a task that has to wait",
    .choose = choose,
    .keep = overtaking_keep,
};
