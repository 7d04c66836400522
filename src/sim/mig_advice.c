/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches for the best way to divide GPUs by MIG for a queue. Each division is judged by a
 * simulation of the queue with the daemon's policy (simulate.h): the fewer tasks fit no place the
 * better, then the earlier the last one ends, then the earlier they end in the mean.
 *
 * All divisions of several GPUs are too many to try: 40 layouts on 8 GPUs are 40^8. So all GPUs get
 * the same layout first. Then the few best of these are tried on each GPU by itself while the
 * others stay, as long as that improves anything (coordinate descent).
 *
 *     eight tasks of 4 GiB and one of 18 GiB on two A100-40GB
 *       the same on both   4g.20gb+1g.5gb+1g.5gb+1g.5gb is best: all fit
 *       GPU 0 alone        seven 1g.5gb there end earlier: the large task has GPU 1
 *
 * A division is worth a change if the queue is done sooner by GAIN_MIN, or a task fits that does
 * not now.
 */
#include "sim/mig_advice.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "policy/policies.h"
#include "sim/simulate.h"

/* Chosen: the simulator's error on mixes that it was not fitted to (docs/measured/sharing.md). */
static const double GAIN_MIN = 0.05;

/* Chosen: a plan for eight GPUs takes a few hundred simulations. */
enum { TRIED_MAX = 8, ROUNDS_MAX = 3 };

struct search {
    const struct mig_question *question;
    struct mig_layout layouts[MIG_LAYOUTS_MAX]; /* of all kinds; the best ones first */
    int n_layouts;
    struct mig_layout chosen[MIG_ADVICE_GPUS_MAX];
    struct mig_outcome outcome; /* of `chosen` */
};

static bool is_better(const struct mig_outcome *a, const struct mig_outcome *b)
{
    if (!a->is_known || !b->is_known)
        return a->is_known;
    if (a->left_out != b->left_out)
        return a->left_out < b->left_out;
    bool is_equal = fabs(a->total_s - b->total_s) <= 1e-6 * b->total_s;
    return is_equal ? a->avg_jct_s < b->avg_jct_s : a->total_s < b->total_s;
}

/* ---- one simulation ---- */

static void write_gpus(
    const struct mig_question *question, const struct mig_layout *layouts, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < question->n_gpus && used < size; i++) {
        const char *layout = layouts ? layouts[i].text : "";
        used += (size_t)snprintf(text + used, size - used, "%s%s%s%s", i ? "," : "",
            question->gpus[i].kind->name, *layout ? ":" : "", layout);
    }
}

/* `layouts`: by GPU; NULL: all are whole. */
static struct mig_outcome simulate_division(const struct mig_question *question,
    const struct mig_layout *layouts, const struct policy *policy, enum sharing sharing)
{
    char text[MIG_ADVICE_GPUS_MAX * (MIG_LAYOUT_SIZE + 40)];
    struct cluster cluster;
    struct fault fault = {0};
    struct simulation_result result = {0};
    struct simulation simulation = {.catalogue = question->queue,
        .cluster = &cluster,
        .laws = &question->kinds->constants,
        .settings = core_settings_default(),
        .sharing = sharing,
        .knows_activity = true};
    simulation.settings.policy = policy;
    write_gpus(question, layouts, text, sizeof text);
    int r = cluster_parse(question->kinds, text, &fault, &cluster);
    if (r == 0)
        r = simulate_trace(&simulation, &fault, &result);
    cluster_fini(&cluster);
    return (struct mig_outcome){r == 0, result.left_out, result.total_s, result.avg_jct_s};
}

/* ---- the search ---- */

static bool may_have(const struct mig_advice_gpu *gpu, const struct mig_layout *layout)
{
    const struct span first = {layout->text, strcspn(layout->text, "+")};
    return gpu->can_change && gpu_kind_find_profile(gpu->kind, first) >= 0;
}

static void try_division(
    struct search *search, const struct mig_layout *division, struct mig_outcome *ret_outcome)
{
    const struct mig_question *question = search->question;
    *ret_outcome = simulate_division(question, division, question->policy, question->sharing);
    if (!is_better(ret_outcome, &search->outcome))
        return;
    search->outcome = *ret_outcome;
    memcpy(search->chosen, division, (size_t)question->n_gpus * sizeof *division);
}

static bool is_listed(const struct mig_question *question, int gpu)
{
    for (int i = 0; i < gpu; i++)
        if (question->gpus[i].can_change && question->gpus[i].kind == question->gpus[gpu].kind)
            return true;
    return false;
}

/* Profiles of two kinds may have the same names: a layout is of each kind that has its profiles. */
static void list_layouts(struct search *search)
{
    const struct mig_question *question = search->question;
    struct mig_layout layouts[MIG_LAYOUTS_MAX];
    for (int i = 0; i < question->n_gpus; i++) {
        bool is_new = question->gpus[i].can_change && !is_listed(question, i);
        int n = is_new ? mig_layouts_list(question->gpus[i].kind, layouts) : 0;
        for (int k = 0; k < n && search->n_layouts < MIG_LAYOUTS_MAX; k++)
            search->layouts[search->n_layouts++] = layouts[k];
    }
}

/* Gives the same layout to all GPUs that may have it, and sorts the layouts by what that gives. */
static void try_on_all(struct search *search)
{
    struct mig_outcome outcomes[MIG_LAYOUTS_MAX];
    struct mig_layout division[MIG_ADVICE_GPUS_MAX];
    for (int i = 0; i < search->n_layouts; i++) {
        const struct mig_layout layout = search->layouts[i];
        struct mig_outcome outcome;
        for (int g = 0; g < search->question->n_gpus; g++) {
            const struct mig_advice_gpu *gpu = &search->question->gpus[g];
            division[g] = may_have(gpu, &layout) ? layout : gpu->now;
        }
        try_division(search, division, &outcome);
        int at = i;
        for (; at > 0 && is_better(&outcome, &outcomes[at - 1]); at--) {
            outcomes[at] = outcomes[at - 1];
            search->layouts[at] = search->layouts[at - 1];
        }
        outcomes[at] = outcome;
        search->layouts[at] = layout;
    }
}

/* Returns whether another layout of this GPU is better. */
static bool try_on_one(struct search *search, int gpu)
{
    struct mig_layout division[MIG_ADVICE_GPUS_MAX];
    struct mig_outcome outcome, before = search->outcome;
    int tried = 0;
    for (int i = 0; i < search->n_layouts && tried < TRIED_MAX; i++) {
        if (!may_have(&search->question->gpus[gpu], &search->layouts[i]))
            continue;
        tried++;
        memcpy(division, search->chosen, sizeof division);
        division[gpu] = search->layouts[i];
        try_division(search, division, &outcome);
    }
    return is_better(&search->outcome, &before);
}

static void find_best(struct search *search)
{
    bool has_improved = true;
    list_layouts(search);
    try_on_all(search);
    for (int round = 0; round < ROUNDS_MAX && has_improved; round++) {
        has_improved = false;
        for (int gpu = 0; gpu < search->question->n_gpus; gpu++)
            has_improved |= search->question->n_gpus > 1 && try_on_one(search, gpu);
    }
}

static bool is_worth_changing(const struct mig_outcome *now, const struct mig_outcome *best)
{
    if (!best->is_known || !now->is_known)
        return best->is_known;
    if (best->left_out != now->left_out)
        return best->left_out < now->left_out;
    return best->total_s < (1 - GAIN_MIN) * now->total_s;
}

/* A GPU with MIG on that has no instances runs nothing: no simulation of it as it is now. */
static bool is_usable_now(const struct mig_question *question)
{
    for (int i = 0; i < question->n_gpus; i++)
        if (question->gpus[i].can_change && !*question->gpus[i].now.text)
            return false;
    return true;
}

int mig_advise(
    const struct mig_question *question, struct fault *fault, struct mig_advice *ret_advice)
{
    struct search search = {.question = question};
    if (question->n_gpus < 1 || question->n_gpus > MIG_ADVICE_GPUS_MAX || question->queue->n == 0)
        return fault_set(
            fault, EINVAL, "a plan needs 1 to %d GPUs and a task that waits", MIG_ADVICE_GPUS_MAX);
    for (int i = 0; i < question->n_gpus; i++)
        search.chosen[i] = question->gpus[i].now;
    *ret_advice = (struct mig_advice){
        .exclusive = simulate_division(question, NULL, &policy_exclusive, SHARING_STREAMS),
        .mps = simulate_division(question, NULL, question->policy, SHARING_MPS)};
    if (is_usable_now(question))
        ret_advice->now = search.outcome = simulate_division(
            question, search.chosen, question->policy, question->sharing);
    find_best(&search);
    memcpy(ret_advice->layouts, search.chosen, sizeof search.chosen);
    ret_advice->best = search.outcome;
    ret_advice->is_worth_it = is_worth_changing(&ret_advice->now, &ret_advice->best);
    return 0;
}
