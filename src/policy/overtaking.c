#include "policy/overtaking.h"

#include <string.h>

#include "policy/foresee.h"
#include "policy/predict.h"

/* A task that wants more GPUs than that is not overtaken. */
enum { KEPT_MAX = 64 };

/* When a GPU lets a task in: at the earliest then, after so many of its residents have left. */
struct opening {
    int gpu;
    int64_t at_us;
    int leavers;
};

/* A GPU by itself, with residents that can be sent away. */
struct stage {
    struct gpu_view gpu;
    struct cluster_view view;
    struct resident residents[PREDICT_RESIDENTS_MAX + 1];
};

/* When it is over at the earliest: sharing only makes it later. Not known: the last to leave. */
static int64_t ends_us(const struct resident *resident, int64_t now_us)
{
    int64_t end = resident->expect.time_us ? resident->since_us + resident->expect.time_us : INT64_MAX;
    return end > now_us ? end : now_us;
}

/* As one who holds nobody off, on this GPU alone. Of what he needs, all is still to come where nothing was seen of it.
 */
static struct resident by_itself(const struct resident *resident)
{
    struct resident copy = *resident;
    double taken = resident->settled ? (double)resident->need_bytes : 0;
    copy.mem_used_bytes = reading_of(reading_or(resident->mem_used_bytes, taken));
    copy.settled = true;
    copy.gpus = 1;
    return copy;
}

/* A sample may be older than the last who left: what those use who are there is what counts, unless others are too. */
static void set_up(struct stage *stage, const struct gpu_view *gpu)
{
    double used = 0;
    stage->gpu = *gpu;
    stage->gpu.residents = stage->residents;
    stage->view = (struct cluster_view){.gpus = &stage->gpu, .n_gpus = 1, .last_placed = -1};
    for (int i = 0; i < gpu->n_residents; i++) {
        stage->residents[i] = by_itself(&gpu->residents[i]);
        used += stage->residents[i].mem_used_bytes.value;
    }
    if (reading_or(gpu->foreign_processes, 1) == 0)
        stage->gpu.mem_used_bytes = reading_of(used);
}

/* What was measured of all of them says nothing of who is left. */
static void forget_activity(struct gpu_view *gpu)
{
    gpu->smact_level = gpu->utilisation_level = READING_NONE;
}

static void add(struct stage *stage, const struct task *task, int64_t now_us)
{
    const struct need *need = &task->request.need;
    stage->residents[stage->gpu.n_residents++] = (struct resident){
        .task = task->id,
        .gpus = 1,
        .settled = true,
        .uid = task->uid,
        .sharing = task->request.sharing,
        .since_us = now_us,
        .need_bytes = need->bytes,
        .mem_used_bytes = reading_of(0),
        .expect = {task->request.expect.smact, task->request.expect.gract, task->request.expect.dram, .time_us = 0},
    };
    forget_activity(&stage->gpu);
}

static void send_away(struct stage *stage, int i)
{
    struct gpu_view *gpu = &stage->gpu;
    const struct resident *leaver = &stage->residents[i];
    if (gpu->mem_used_bytes.valid)
        gpu->mem_used_bytes.value -= reading_or(leaver->mem_used_bytes, 0);
    gpu->n_residents--;
    memmove(&stage->residents[i], &stage->residents[i + 1], (size_t)(gpu->n_residents - i) * sizeof *leaver);
    forget_activity(gpu);
}

static int first_to_leave(const struct stage *stage, int64_t now_us)
{
    int first = 0;
    for (int i = 1; i < stage->gpu.n_residents; i++)
        if (ends_us(&stage->residents[i], now_us) < ends_us(&stage->residents[first], now_us))
            first = i;
    return first;
}

static bool is_open(const struct placement_query *query, const struct stage *stage)
{
    struct task single = *query->task;
    struct placement_query alone = *query;
    if (stage->gpu.n_residents == 0)
        return true;
    if (query->idle_only || stage->gpu.whole_for)
        return false;
    single.request.gpus = 1;
    alone.task = &single;
    alone.view = &stage->view;
    return foresee_check_sharing(&alone, &stage->view, 0).kind == VERDICT_FITS;
}

/* For query->task, with `newcomer` there too, unless NULL. */
static struct opening opening_of(const struct placement_query *query, int i, const struct task *newcomer)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    struct opening opening = {i, query->now_us, 0};
    struct stage stage;
    if (gpu->n_residents > PREDICT_RESIDENTS_MAX)
        return (struct opening){i, INT64_MAX, gpu->n_residents};
    set_up(&stage, gpu);
    if (newcomer)
        add(&stage, newcomer, query->now_us);
    while (!is_open(query, &stage)) {
        int first = first_to_leave(&stage, query->now_us);
        opening.at_us = ends_us(&stage.residents[first], query->now_us);
        send_away(&stage, first);
        opening.leavers++;
    }
    return opening;
}

static bool opens_before(const struct opening *a, const struct opening *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->leavers < b->leavers;
}

static bool may_open(const struct placement_query *query, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    return gpu->health == VIEW_OK && !gpu->drained_for && cluster_view_suits(query->view, i, query->task);
}

/* Among the best `most` in order, by insertion. Returns how many there are now. */
static int insert(struct opening *best, int n, int most, struct opening opening)
{
    int at = n;
    while (at > 0 && opens_before(&opening, &best[at - 1]))
        at--;
    if (at == most)
        return n;
    int last = n < most ? n : most - 1;
    memmove(&best[at + 1], &best[at], (size_t)(last - at) * sizeof *best);
    best[at] = opening;
    return n < most ? n + 1 : most;
}

bool overtaking_keep(const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us)
{
    int n = 0, wanted = query->task->request.gpus;
    struct opening best[KEPT_MAX];
    if (wanted > KEPT_MAX)
        return false;
    for (int i = 0; i < query->view->n_gpus; i++)
        if (may_open(query, i))
            n = insert(best, n, wanted, opening_of(query, i, NULL));
    if (n < wanted)
        return false;
    for (int i = 0; i < wanted; i++)
        ret_gpus[i] = best[i].gpu;
    *ret_start_us = best[wanted - 1].at_us;
    return true;
}

/* ---- who may pass ---- */

static bool is_for_another(const struct gpu_view *gpu, const struct task *task)
{
    return gpu->kept_for && gpu->kept_for != task->id;
}

/* The task for which a GPU is kept that the resident is on too, or 0. */
static uint64_t awaiting(const struct placement_query *query, const struct resident *resident)
{
    for (int i = 0; resident->gpus > 1 && i < query->view->n_gpus; i++) {
        const struct gpu_view *gpu = &query->view->gpus[i];
        if (is_for_another(gpu, query->task) && gpu_view_resident(gpu, resident->task))
            return gpu->kept_for;
    }
    return 0;
}

/* Somebody there would be slowed down on a kept GPU too. */
static uint64_t delays_elsewhere(const struct placement_query *query, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    for (int k = 0; k < gpu->n_residents; k++) {
        uint64_t first = awaiting(query, &gpu->residents[k]);
        if (first && predict_slows(query, i, &gpu->residents[k]))
            return first;
    }
    return 0;
}

static bool is_over_in_time(const struct placement_query *query, const struct gpu_view *gpu)
{
    const struct task_request *request = &query->task->request;
    int64_t longest = request->expect.time_us ? request->expect.time_us : request->time_limit_us;
    bool known = longest > 0 && query->view->kept_until_us != INT64_MAX;
    return known && gpu->n_residents == 0 && query->now_us + longest <= query->view->kept_until_us;
}

static bool leaves_it_open(const struct placement_query *query, int i)
{
    struct placement_query of_first = *query;
    of_first.task = query->first;
    of_first.idle_only = query->first->request.exclusive;
    bool known = query->task->request.need.kind >= NEED_ESTIMATED;
    if (!known || query->view->gpus[i].n_residents >= PREDICT_RESIDENTS_MAX)
        return false;
    struct opening without = opening_of(&of_first, i, NULL), with = opening_of(&of_first, i, query->task);
    return with.leavers == without.leavers;
}

uint64_t overtaking_delays(const struct placement_query *query, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    if (!is_for_another(gpu, query->task))
        return delays_elsewhere(query, i);
    bool harmless =
        query->first && query->first->id == gpu->kept_for && (is_over_in_time(query, gpu) || leaves_it_open(query, i));
    return harmless ? 0 : gpu->kept_for;
}
