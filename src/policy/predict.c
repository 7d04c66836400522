#include "policy/predict.h"

#include <math.h>
#include <stddef.h>

#include "core/share.h"
#include "sharing/sharing.h"

/* Speeds that were solved for anew differ by less. */
#define ROUNDING 1e-6

/*
 * Progress of all, in GPUs: sum over tasks of speed x GPUs. A newcomer adds its own and takes from those beside it;
 * where sharing lets a GPU do more than one task can ask of it, the sum grows, and gain is by how much for each GPU
 * taken.
 */
static struct sharer sharer_of(const struct expectation *expect, enum sharing sharing, int thread_percent)
{
    struct demand demand = {reading_or(expect->gract, NAN), reading_or(expect->smact, 1), NAN,
                            reading_or(expect->dram, NAN), 0};
    demand_complete(&demand, 0);
    return (struct sharer){.demand = demand, .mps = sharing != SHARING_STREAMS, .cap = thread_percent / 100.0};
}

/* As the core will decide it once these GPUs are the task's. */
static struct sharer newcomer_of(const struct placement_query *query, const struct cluster_view *view, const int *gpus,
                                 int n)
{
    const struct task_request *request = &query->task->request;
    struct sharing_mode share = {.sharing = request->sharing, .thread_percent = request->thread_percent};
    if (request->sharing == SHARING_AUTO && query->settings)
        share = share_choose(query->settings, view, query->task, gpus, n, false);
    return sharer_of(&request->expect, share.sharing, share.thread_percent);
}

/* The speed on one GPU of its resident `which`, or of the newcomer (which = n_residents); NULL: nobody comes. */
static double speed_at(const struct gpu_view *gpu, const struct sharer *newcomer, int which)
{
    struct sharer sharers[PREDICT_RESIDENTS_MAX + 1];
    int n = gpu->n_residents;
    for (int i = 0; i < n; i++)
        sharers[i] = sharer_of(&gpu->residents[i].expect, gpu->residents[i].sharing, gpu->residents[i].thread_percent);
    if (newcomer)
        sharers[n++] = *newcomer;
    sharing_solve(&sharing_laws_measured, 1, 1, sharers, n);
    return sharers[which].speed;
}

static bool is_among(int gpu, const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        if (gpus[i] == gpu)
            return true;
    return false;
}

struct change {
    double before, after;
};

/* Of a resident of the GPU `at`, wherever else it is too. */
static struct change change_of(const struct cluster_view *view, const struct sharer *newcomer, const int *gpus, int n,
                               int at, const struct resident *resident)
{
    struct change change = {INFINITY, INFINITY};
    bool elsewhere = resident->gpus > 1;
    for (int i = elsewhere ? 0 : at; i < (elsewhere ? view->n_gpus : at + 1); i++) {
        const struct gpu_view *gpu = &view->gpus[i];
        const struct resident *here = gpu_view_resident(gpu, resident->task);
        if (!here || gpu->n_residents > PREDICT_RESIDENTS_MAX)
            continue;
        int which = (int)(here - gpu->residents);
        double alone = speed_at(gpu, NULL, which);
        change.before = fmin(change.before, alone);
        change.after = fmin(change.after, is_among(i, gpus, n) ? speed_at(gpu, newcomer, which) : alone);
    }
    return change;
}

static bool is_counted(const struct cluster_view *view, uint64_t task, const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        if (gpu_view_resident(&view->gpus[gpus[i]], task))
            return true;
    return false;
}

struct outlook predict_joining(const struct placement_query *query, const struct cluster_view *view, const int *gpus,
                               int n)
{
    struct outlook outlook = {.known = query->task->request.expect.smact.valid};
    struct sharer newcomer = newcomer_of(query, view, gpus, n);
    double own = INFINITY;
    for (int i = 0; i < n; i++) {
        const struct gpu_view *gpu = &view->gpus[gpus[i]];
        if (gpu->n_residents > PREDICT_RESIDENTS_MAX)
            return (struct outlook){.known = false};
        own = fmin(own, speed_at(gpu, &newcomer, gpu->n_residents));
        for (int k = 0; k < gpu->n_residents; k++) {
            const struct resident *resident = &gpu->residents[k];
            outlook.known &= resident->expect.smact.valid;
            if (is_counted(view, resident->task, gpus, i))
                continue;
            struct change change = change_of(view, &newcomer, gpus, n, gpus[i], resident);
            outlook.gain -= (change.before - change.after) * resident->gpus;
            outlook.slowdown = fmax(outlook.slowdown, 1 / change.after);
        }
    }
    outlook.gain = (outlook.gain + own * n) / n;
    outlook.slowdown = fmax(outlook.slowdown, 1 / own);
    return outlook;
}

bool predict_slows(const struct placement_query *query, int gpu, const struct resident *resident)
{
    const struct gpu_view *there = &query->view->gpus[gpu];
    struct sharer newcomer = newcomer_of(query, query->view, &gpu, 1);
    bool known = query->task->request.expect.smact.valid && there->n_residents <= PREDICT_RESIDENTS_MAX;
    for (int i = 0; i < there->n_residents; i++)
        known &= there->residents[i].expect.smact.valid;
    struct change change = change_of(query->view, &newcomer, &gpu, 1, gpu, resident);
    return !known || change.after < change.before - ROUNDING;
}
