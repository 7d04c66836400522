/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foresee, a policy of this project's own.
 *
 * Memory: what residents have been said to need is theirs from the moment they are placed, whether
 * they have taken it yet or not; a newcomer to others wants the margin more than it needs. Where
 * that is known of all who still take theirs, and how busy they will be, nobody has to be waited
 * for.
 *
 * Speed: where all who would share a GPU are known by their SM activity, the laws of sharing
 * predict how fast everyone then is (predict.h). A task goes where all together gain most by it;
 * nowhere where somebody would take more than slowdown_max times as long as alone; and nowhere
 * where so little is gained that it had better wait. Where somebody is not known, the thesis's
 * limit on SM activity stands for that, and he is taken to want the whole GPU.
 *
 * Overtaking: what is kept for the first of the queue, and who may pass it, is in
 * policy/overtaking.h.
 */
#include "policy/foresee.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "policy/conditions.h"
#include "policy/overtaking.h"
#include "policy/policy.h"
#include "policy/predict.h"

/* Sums of the same numbers in another order differ by less. */
#define ROUNDING 1e-9

static const struct verdict fits = {.kind = VERDICT_FITS};

static double wanted_bytes(const struct placement_query *query)
{
    const struct need *need = &query->task->request.need;
    const struct conditions *conditions = query->conditions;
    int64_t wanted = need->kind >= NEED_ESTIMATED ? need->bytes + conditions->margin_bytes
                                                  : conditions->min_free_bytes;
    return fmax((double)wanted, query->recovery_free_bytes);
}

/* What of its need the resident has not taken yet. Where the driver does not say, it has once it
 * has settled. */
static double outstanding(const struct resident *resident)
{
    double need = (double)resident->need_bytes;
    return fmax(0, need - reading_assume(resident->mem_used_bytes, resident->settled ? need : 0));
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

/* It came to the GPU although that was kept for this task, and what it will take is known: it must
 * not delay it. */
static bool has_overtaken(const struct placement_query *query, const struct resident *resident)
{
    return resident->overtook == query->task->id && resident->need_bytes;
}

static bool is_foreseen(const struct resident *resident)
{
    return resident->need_bytes && resident->expect.smact.valid;
}

/* Who still takes his memory holds others off, unless it is known how much that will be, and how
 * busy he will be. */
static const struct resident *find_rising(
    const struct placement_query *query, const struct gpu_view *gpu)
{
    for (int i = gpu->n_residents - 1; i >= 0; i--)
        if (!gpu->residents[i].settled && !is_foreseen(&gpu->residents[i]) &&
            !has_overtaken(query, &gpu->residents[i]))
            return &gpu->residents[i];
    return NULL;
}

static struct verdict judge(const struct placement_query *query, const struct outlook *outlook)
{
    double slowdown_max = query->conditions->slowdown_max;
    if (outlook->slowdown > slowdown_max)
        return (struct verdict){
            .kind = VERDICT_SLOWDOWN, .have = outlook->slowdown, .limit = slowdown_max};
    if (outlook->gain < PREDICT_GAIN_MIN)
        return (struct verdict){
            .kind = VERDICT_NO_GAIN, .have = outlook->gain, .limit = PREDICT_GAIN_MIN};
    return fits;
}

static struct verdict check_speed(
    const struct placement_query *query, struct prediction *prediction, int i)
{
    struct outlook outlook = predict_joining(prediction, &i, 1);
    if (!outlook.known)
        return conditions_check_activity(query, &prediction->view->gpus[i]);
    bool counts_together = prediction->query->task->request.gpus > 1; /* all its GPUs: see choose */
    return counts_together ? fits : judge(query, &outlook);
}

struct verdict foresee_check_sharing(
    const struct placement_query *query, struct prediction *prediction, int i)
{
    const struct gpu_view *gpu = &prediction->view->gpus[i];
    struct verdict company = conditions_check_company(query, gpu);
    if (company.kind != VERDICT_FITS)
        return company;
    const struct resident *rising = find_rising(query, gpu);
    if (rising)
        return (struct verdict){.kind = VERDICT_HOLD_OFF, .task = rising->task};
    struct verdict memory = check_memory(query, gpu);
    return memory.kind == VERDICT_FITS ? check_speed(query, prediction, i) : memory;
}

/* Whom it would delay comes last: that is most to find out. */
static struct verdict check(
    const struct placement_query *query, struct prediction *prediction, int i)
{
    bool decided;
    struct verdict place = conditions_check_place(query, i, &decided);
    if (!decided)
        place = foresee_check_sharing(query, prediction, i);
    uint64_t delayed = place.kind == VERDICT_FITS ? overtaking_delays(query, prediction, i) : 0;
    return delayed ? (struct verdict){.kind = VERDICT_KEPT, .task = delayed} : place;
}

/* Nowhere is more gained than on GPUs that nobody is on: the first of them, without a look at the
 * others. */
static bool pick_idle(
    const struct placement_query *query, struct prediction *prediction, int *ret_gpus)
{
    int n = 0;
    for (int i = 0; i < query->view->n_gpus && n < query->task->request.gpus; i++)
        if (gpu_view_is_idle(&query->view->gpus[i]) &&
            check(query, prediction, i).kind == VERDICT_FITS)
            ret_gpus[n++] = i;
    return n == query->task->request.gpus;
}

static double gain_of(struct prediction *prediction, const int *gpus, int n)
{
    return predict_joining(prediction, gpus, n).gain;
}

/* One more of those that fit: the one with which all those chosen gain most together. Of equal ones
 * the first. */
static bool add_best(
    struct prediction *prediction, const struct verdict *verdicts, int *chosen, int n)
{
    double best_gain = -INFINITY;
    int best = -1;
    for (int i = 0; i < prediction->view->n_gpus; i++) {
        bool open = verdicts[i].kind == VERDICT_FITS;
        for (int k = 0; k < n; k++)
            open &= chosen[k] != i;
        chosen[n] = i;
        double gain = open ? gain_of(prediction, chosen, n + 1) : -INFINITY;
        if (open && gain > best_gain + ROUNDING) {
            best_gain = gain;
            best = i;
        }
    }
    chosen[n] = best;
    return best >= 0;
}

static bool complete(
    struct prediction *prediction, const struct verdict *verdicts, int *chosen, int n)
{
    for (; n < prediction->query->task->request.gpus; n++)
        if (!add_best(prediction, verdicts, chosen, n))
            return false;
    return true;
}

/*
 * The best set of GPUs, nearly: one after the other the best one; for a pair, all pairs. Those of a
 * pair are worth more together than one by one where another pair is on both, which is slowed down
 * once.
 */
static bool pick_of_few(
    struct prediction *prediction, const struct verdict *verdicts, int *ret_gpus)
{
    double best_gain;
    int wanted = prediction->query->task->request.gpus, n_gpus = prediction->view->n_gpus;
    if (!complete(prediction, verdicts, ret_gpus, 0))
        return false;
    best_gain = gain_of(prediction, ret_gpus, wanted);
    for (int i = 0; i < n_gpus && wanted == 2; i++) {
        int pair[2] = {i};
        if (verdicts[i].kind != VERDICT_FITS || !complete(prediction, verdicts, pair, 1))
            continue;
        double gain = gain_of(prediction, pair, 2);
        if (gain <= best_gain + ROUNDING)
            continue;
        best_gain = gain;
        ret_gpus[0] = pair[0];
        ret_gpus[1] = pair[1];
    }
    return true;
}

/* Of many those on which most is gained one by one, by insertion. */
static bool pick_of_many(
    const struct placement_query *query, const struct verdict *verdicts, int *ret_gpus)
{
    int n = 0, most = query->task->request.gpus;
    for (int i = 0; i < query->view->n_gpus; i++) {
        int at = n;
        if (verdicts[i].kind != VERDICT_FITS)
            continue;
        while (at > 0 && verdicts[i].have > verdicts[ret_gpus[at - 1]].have + ROUNDING)
            at--;
        if (at == most)
            continue;
        int last = n < most ? n : most - 1;
        memmove(&ret_gpus[at + 1], &ret_gpus[at], (size_t)(last - at) * sizeof *ret_gpus);
        ret_gpus[at] = i;
        n += n < most;
    }
    return n == most;
}

/* What stands against each GPU; of one that fits `have` is what would be gained by that one alone.
 */
static void check_all(const struct placement_query *query, struct prediction *prediction,
    struct verdict *ret_verdicts)
{
    for (int i = 0; i < query->view->n_gpus; i++) {
        ret_verdicts[i] = check(query, prediction, i);
        if (ret_verdicts[i].kind == VERDICT_FITS)
            ret_verdicts[i].have = gain_of(prediction, &i, 1);
    }
}

static bool pick(const struct placement_query *query, struct prediction *prediction,
    const struct verdict *verdicts, int *ret_gpus)
{
    if (query->view->n_gpus > PREDICT_KEPT)
        return pick_of_many(query, verdicts, ret_gpus);
    return query->task->request.gpus <= query->view->n_gpus &&
           pick_of_few(prediction, verdicts, ret_gpus);
}

static enum placement_answer choose(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    struct prediction prediction;
    int wanted = query->task->request.gpus;
    predict_start(&prediction, query, query->view);
    if (pick_idle(query, &prediction, ret_gpus))
        return PLACE_NOW;
    check_all(query, &prediction, ret_verdicts);
    if (!pick(query, &prediction, ret_verdicts, ret_gpus))
        return PLACE_WAIT;
    struct outlook outlook = predict_joining(&prediction, ret_gpus, wanted);
    struct verdict together = outlook.known && wanted > 1 ? judge(query, &outlook) : fits;
    for (int i = 0; i < wanted && together.kind != VERDICT_FITS; i++)
        ret_verdicts[ret_gpus[i]] = together;
    return together.kind == VERDICT_FITS ? PLACE_NOW : PLACE_WAIT;
}

const struct policy policy_foresee = {
    .name = "foresee",
    .help =
        "where all tasks together are predicted to gain most; others may overtake a task that has to wait",
    .choose = choose,
    .keep = overtaking_keep,
};
