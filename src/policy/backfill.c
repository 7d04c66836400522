/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How backfill predicts when a GPU admits a task: a copy of the GPU's view (struct stage) on which
 * residents leave one after the other, and on which the task's policy is asked to place it. No I/O,
 * nothing outlives a call.
 */
#include "policy/backfill.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/top_k.h"
#include "core/policy.h"

/* Chosen: a task that wants more GPUs gets no reservation. */
enum { RESERVED_MAX = 64 };

/* When a GPU is predicted to admit a task, and after how many of its residents have left. */
struct opening {
    int gpu;
    int64_t at_us; /* or START_UNKNOWN */
    int n_left;
};

/* One GPU of which the residents run on and leave. */
struct stage {
    struct gpu_view gpu;
    struct cluster_view view;
    struct resident residents[PREDICT_RESIDENTS_MAX + 1];
    double left_s[PREDICT_RESIDENTS_MAX + 1];    /* work left, alone; INFINITY: not known */
    double ends_s[PREDICT_RESIDENTS_MAX + 1];    /* when its time limit ends it, or INFINITY */
    double speed_max[PREDICT_RESIDENTS_MAX + 1]; /* on the slowest of its other GPUs */
    double passed_s;
};

/* Returns the memory that the resident has taken. Without a reading, one that has not settled has
 * taken nothing yet. */
static double taken_bytes(const struct resident *resident)
{
    double settled = residence_has_settled(resident->residence)
                         ? reading_assume(resident->need_bytes, 0)
                         : 0;
    return reading_assume(resident->mem_used_bytes, settled);
}

/* Returns the resident as if it were on this GPU only and had taken all memory that it needs. */
static struct resident resident_alone(const struct resident *resident)
{
    struct resident copy = *resident;
    copy.mem_used_bytes = reading_of(
        fmax(taken_bytes(resident), reading_assume(resident->need_bytes, 0)));
    copy.residence = RESIDENCE_SETTLED;
    copy.gpus = 1;
    return copy;
}

/* An unknown time, or one without a limit, counts as endless. */
static double expected_s(const struct expectation *expect)
{
    return expect->time_us.valid ? expect->time_us.value / (double)SECOND_US : INFINITY;
}

static double limit_s(const struct task *task)
{
    int64_t limit_us = task->request.time_limit_us;
    return limit_us ? (double)limit_us / (double)SECOND_US : INFINITY;
}

static void stage_speeds(const struct stage *stage, double *ret_speeds)
{
    predict_gpu_speeds(stage->view.constants, &stage->gpu, ret_speeds);
    for (int i = 0; i < stage->gpu.n_residents; i++)
        ret_speeds[i] = fmin(ret_speeds[i], stage->speed_max[i]);
}

/* Returns the work left, as if the resident had always run at its present speed: those that shared
 * the GPU before are not remembered. */
static double work_left_s(const struct resident *resident, double speed, int64_t now_us)
{
    double done_s = speed * (double)(now_us - resident->since_us) / (double)SECOND_US;
    return fmax(0, expected_s(&resident->expect) - done_s);
}

/* An endless limit counts as such. */
static double limit_left_s(const struct resident *resident, int64_t now_us)
{
    return resident->ends_us ? fmax(0, (double)(resident->ends_us - now_us) / (double)SECOND_US)
                             : INFINITY;
}

/* The GPU will be sampled, and what keeps it from tasks at the moment is not considered. */
static struct gpu_view gpu_unmarked(const struct gpu_view *gpu, int64_t now_us)
{
    struct gpu_view copy = *gpu;
    copy.sampled_us = now_us;
    copy.drained_for = copy.reserved_for = copy.set_aside_for = copy.closed_for = 0;
    return copy;
}

/* The sampled memory may include that of a task that has left since. If there are no external
 * processes, the sum over the residents replaces it. */
static void stage_init(struct stage *stage, const struct placement_query *query, int place)
{
    const struct gpu_view *gpu = &query->view->gpus[place];
    double used = 0, promised = 0, speeds[PREDICT_RESIDENTS_MAX + 1];
    stage->gpu = gpu_unmarked(gpu, query->now_us);
    stage->gpu.residents = stage->residents;
    stage->view = (struct cluster_view){.gpus = &stage->gpu,
        .n_gpus = 1,
        .last_placed = -1,
        .has_services = query->view->has_services,
        .constants = query->view->constants};
    for (int i = 0; i < gpu->n_residents; i++) {
        stage->residents[i] = resident_alone(&gpu->residents[i]);
        used += stage->residents[i].mem_used_bytes.value;
        promised += stage->residents[i].mem_used_bytes.value - taken_bytes(&gpu->residents[i]);
        stage->speed_max[i] = predict_speed_elsewhere(query->view, place, &gpu->residents[i]);
        stage->ends_s[i] = limit_left_s(&gpu->residents[i], query->now_us);
    }
    stage->passed_s = 0;
    stage_speeds(stage, speeds);
    for (int i = 0; i < gpu->n_residents; i++)
        stage->left_s[i] = work_left_s(&gpu->residents[i], speeds[i], query->now_us);
    stage->gpu.mem_used_bytes.value += promised;
    if (reading_assume(gpu->external_processes, 1) == 0)
        stage->gpu.mem_used_bytes = reading_of(used);
}

/* Other residents than were measured: the activity is the sum of what is expected of them, if that
 * is known. */
static void predict_activity(struct gpu_view *gpu)
{
    struct reading sum = reading_of(0);
    for (int i = 0; i < gpu->n_residents; i++) {
        sum.valid &= gpu->residents[i].expect.smact.valid;
        sum.value += gpu->residents[i].is_stopped ? 0 : gpu->residents[i].expect.smact.value;
    }
    gpu->smact_level = sum.valid ? reading_of(fmin(1, sum.value)) : READING_NONE;
    gpu->utilisation_level = READING_NONE;
}

static void stage_add_task(struct stage *stage, const struct task *task, int64_t now_us)
{
    const struct need *need = &task->request.need;
    int n = stage->gpu.n_residents++;
    double bytes = (double)(need->kind >= NEED_ESTIMATED ? need->bytes
                                                         : stage->gpu.id.mem_total_bytes);
    stage->speed_max[n] = 1;
    stage->left_s[n] = expected_s(&task->request.expect);
    stage->ends_s[n] = limit_s(task);
    stage->residents[n] = (struct resident){
        .task = task->id,
        .gpus = 1,
        .residence = RESIDENCE_SETTLED,
        .uid = task->uid,
        .sharing = task->request.sharing,
        .thread_percent = task->request.thread_percent,
        .since_us = now_us,
        .need_bytes = reading_of(bytes),
        .mem_used_bytes = reading_of(bytes),
        .expect = {task->request.expect.smact, task->request.expect.gract,
            task->request.expect.dram, READING_NONE},
    };
    stage->gpu.mem_used_bytes.value += bytes;
    predict_activity(&stage->gpu);
}

static void stage_remove_resident(struct stage *stage, int i)
{
    struct gpu_view *gpu = &stage->gpu;
    const struct resident *leaver = &stage->residents[i];
    if (gpu->mem_used_bytes.valid)
        gpu->mem_used_bytes.value -= reading_assume(leaver->mem_used_bytes, 0);
    size_t n_behind = (size_t)(--gpu->n_residents - i);
    memmove(&stage->residents[i], &stage->residents[i + 1], n_behind * sizeof *leaver);
    memmove(&stage->left_s[i], &stage->left_s[i + 1], n_behind * sizeof *stage->left_s);
    memmove(&stage->ends_s[i], &stage->ends_s[i + 1], n_behind * sizeof *stage->ends_s);
    memmove(&stage->speed_max[i], &stage->speed_max[i + 1], n_behind * sizeof *stage->speed_max);
    predict_activity(gpu);
}

/* How long the resident still takes, at this speed. */
static double stage_rest_s(const struct stage *stage, int i, double speed)
{
    return fmin(stage->left_s[i] / speed, fmax(0, stage->ends_s[i] - stage->passed_s));
}

/* Runs until the next resident leaves. Residents of unknown time leave last, the oldest first. */
static void stage_advance(struct stage *stage)
{
    int n = stage->gpu.n_residents, next = 0;
    double speeds[PREDICT_RESIDENTS_MAX + 1];
    stage_speeds(stage, speeds);
    for (int i = 1; i < n; i++)
        if (stage_rest_s(stage, i, speeds[i]) < stage_rest_s(stage, next, speeds[next]))
            next = i;
    double takes_s = stage_rest_s(stage, next, speeds[next]);
    stage->passed_s += takes_s;
    for (int i = 0; i < n && isfinite(takes_s); i++)
        stage->left_s[i] = fmax(0, stage->left_s[i] - speeds[i] * takes_s);
    stage_remove_resident(stage, next);
}

/* Would the policy place the task beside those that are there now? Of a task of several GPUs one
 * part is placed. */
static bool stage_admits(const struct placement_query *query, const struct stage *stage)
{
    struct placement_query alone = *query;
    struct verdict verdict;
    int gpu;
    if (stage->gpu.n_residents == 0)
        return true;
    if (query->idle_only || stage->gpu.exclusive_for)
        return false;
    alone.view = &stage->view;
    alone.on_one_gpu = true;
    alone.head = NULL;
    alone.node_check = NULL;
    alone.first_gpu = alone.end_gpu = 0;
    return query->policy->choose(&alone, &gpu, &verdict) == PLACE_NOW;
}

/* When GPU `i` admits query->task. `backfilled`: a task that is on the GPU then, too; or NULL. */
static struct opening predict_opening(
    const struct placement_query *query, int i, const struct task *backfilled)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    struct opening opening = {i, query->now_us, 0};
    struct stage stage;
    if (gpu->n_residents > PREDICT_RESIDENTS_MAX)
        return (struct opening){i, START_UNKNOWN, gpu->n_residents};
    stage_init(&stage, query, i);
    if (backfilled)
        stage_add_task(&stage, backfilled, query->now_us);
    for (; !stage_admits(query, &stage); opening.n_left++)
        stage_advance(&stage);
    opening.at_us = isfinite(stage.passed_s)
                        ? query->now_us + llround(stage.passed_s * (double)SECOND_US)
                        : START_UNKNOWN;
    return opening;
}

static bool opens_before(const void *a, const void *b, const void *context)
{
    (void)context;
    const struct opening *x = a, *y = b;
    return x->at_us != y->at_us ? x->at_us < y->at_us : x->n_left < y->n_left;
}

static bool may_open(const struct placement_query *query, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    return gpu->health == VIEW_OK && !gpu->drained_for && !gpu->set_aside_for &&
           cluster_view_suits(query->view, i, query->task) &&
           placement_ask_node(query, i) != NODE_NEVER;
}

bool backfill_reserve(const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us)
{
    int wanted = query->task->request.gpus;
    size_t n = 0;
    struct opening best[RESERVED_MAX];
    if (wanted > RESERVED_MAX)
        return false;
    for (int i = query->first_gpu; i < placement_end_gpu(query); i++) {
        if (!may_open(query, i))
            continue;
        struct opening opening = predict_opening(query, i, NULL);
        n = top_k_insert(best, n, (size_t)wanted, sizeof *best, &opening, opens_before, NULL);
    }
    if (n < (size_t)wanted)
        return false;
    for (int i = 0; i < wanted; i++)
        ret_gpus[i] = best[i].gpu;
    *ret_start_us = best[wanted - 1].at_us;
    return true;
}

/* ---- which task may be backfilled ---- */

static bool is_reserved_for_another(const struct gpu_view *gpu, const struct task *task)
{
    return gpu->reserved_for && gpu->reserved_for != task->id;
}

/* Returns the task for which another GPU of the resident is reserved, or 0. */
static uint64_t reservation_of_resident(
    const struct placement_query *query, const struct resident *resident)
{
    for (int i = 0; resident->gpus > 1 && i < resident->gpus; i++) {
        const struct gpu_view *gpu = &query->view->gpus[resident->places[i]];
        if (is_reserved_for_another(gpu, query->task))
            return gpu->reserved_for;
    }
    return 0;
}

/* Rule 1: a resident that is slowed down here leaves its reserved GPU later. */
static uint64_t delays_on_other_gpu(
    const struct placement_query *query, struct predictor *predictor, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    for (int k = 0; k < gpu->n_residents; k++) {
        uint64_t head = reservation_of_resident(query, &gpu->residents[k]);
        if (head && predictor_slows_resident(predictor, i, &gpu->residents[k]))
            return head;
    }
    return 0;
}

/* Will the query's task be over by then, as far as is known? */
static bool is_over_by(const struct placement_query *query, int64_t at_us)
{
    const struct task *task = query->task;
    double takes_s = fmin(expected_s(&task->request.expect), limit_s(task));
    return at_us != START_UNKNOWN && takes_s <= (double)(at_us - query->now_us) / (double)SECOND_US;
}

/* Rules 2 and 3. */
static bool leaves_room_for_head(const struct placement_query *query, int i)
{
    struct placement_query of_head = *query;
    of_head.task = query->head;
    of_head.policy = query->head_policy;
    of_head.idle_only = query->head->request.exclusive || query->head_policy->exclusive_gpus;
    int64_t start_us = query->view->reservation_start_us;
    if (query->node_check && !is_over_by(query, start_us))
        return false;
    if (query->view->gpus[i].n_residents >= PREDICT_RESIDENTS_MAX)
        return false;
    struct opening with = predict_opening(&of_head, i, query->task);
    if (with.n_left == 0 || (start_us != START_UNKNOWN && with.at_us <= start_us))
        return true;
    return with.n_left == predict_opening(&of_head, i, NULL).n_left;
}

uint64_t backfill_delayed_task(
    const struct placement_query *query, struct predictor *predictor, int i)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    if (query->passes_reservation)
        return 0;
    if (!is_reserved_for_another(gpu, query->task))
        return delays_on_other_gpu(query, predictor, i);
    bool is_for_head = query->head && query->head->id == gpu->reserved_for;
    return is_for_head && leaves_room_for_head(query, i) ? 0 : gpu->reserved_for;
}
