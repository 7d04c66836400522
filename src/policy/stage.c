/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts one GPU: its residents continue at the speeds of the interference model and leave one
 * after the other, those of unknown time last, the oldest first. No I/O, nothing outlives a call.
 *
 * Tasks on other places that share the GPU's memory (core/memory_domain.h) continue at their
 * present speeds, which the GPU's residents do not change. They hold what they need, until they
 * leave.
 *
 * The model is the most expensive part. Only a resident of known time needs a speed: work without a
 * known end has none at any speed. So a GPU without residents of known time is predicted without
 * the model.
 */
#include "policy/stage.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "core/core.h"
#include "core/memory_domain.h"

/* Returns the memory that the resident has taken. Without a reading, a resident that has not
 * settled counts as having taken nothing. */
static double taken_bytes(const struct resident *resident)
{
    double settled = residence_has_settled(resident->residence)
                         ? reading_assume(resident->need_bytes, 0)
                         : 0;
    return reading_assume(resident->mem_used_bytes, settled);
}

double stage_held_bytes(const struct resident *resident)
{
    return fmax(taken_bytes(resident), reading_assume(resident->need_bytes, 0));
}

/* Returns the resident as if it were on this GPU only and had taken all memory that it needs. */
static struct resident resident_alone(const struct resident *resident)
{
    struct resident copy = *resident;
    copy.mem_used_bytes = reading_of(stage_held_bytes(resident));
    copy.residence = RESIDENCE_SETTLED;
    copy.gpus = 1;
    return copy;
}

/* An unknown time, or one without a limit, counts as endless. */
double stage_expected_s(const struct expectation *expect)
{
    return expect->time_us.valid ? expect->time_us.value / (double)SECOND_US : INFINITY;
}

double stage_limit_s(const struct task *task)
{
    int64_t limit_us = task->request.time_limit_us;
    return limit_us ? (double)limit_us / (double)SECOND_US : INFINITY;
}

/* Does the speed of any resident matter? */
static bool is_any_work_known(const struct stage *stage)
{
    for (int i = 0; i < stage->gpu.n_residents; i++)
        if (isfinite(stage->left_s[i]))
            return true;
    return false;
}

/* Speeds that do not matter are set to 1. */
static void stage_speeds(const struct stage *stage, double *ret_speeds)
{
    if (!is_any_work_known(stage)) {
        for (int i = 0; i < stage->gpu.n_residents; i++)
            ret_speeds[i] = 1;
        return;
    }
    predict_gpu_speeds(stage->view.constants, &stage->gpu, ret_speeds);
    for (int i = 0; i < stage->gpu.n_residents; i++)
        ret_speeds[i] = fmin(ret_speeds[i], stage->speed_max[i]) *
                        (stage->residents[i].kind_speed > 0 ? stage->residents[i].kind_speed : 1);
}

/* Returns the work left, as if the resident had always run at its present speed: those that shared
 * the GPU before are not remembered. `expected_s`: its work in all. */
static double work_left_s(
    const struct resident *resident, double expected_s, double speed, int64_t now_us)
{
    double done_s = speed * (double)(now_us - resident->since_us) / (double)SECOND_US;
    return fmax(0, expected_s - done_s);
}

/* An endless limit counts as such. */
static double limit_left_s(const struct resident *resident, int64_t now_us)
{
    return resident->ends_us ? fmax(0, (double)(resident->ends_us - now_us) / (double)SECOND_US)
                             : INFINITY;
}

/* The GPU will be sampled, and what keeps it from tasks at the moment is not considered. */
static void unmark_gpu(struct gpu_view *gpu, int64_t now_us)
{
    gpu->sampled_us = now_us;
    claims_drop(gpu->claims, CLAIMS_PASSING);
}

static struct reading expected_smact(const struct gpu_view *gpu)
{
    struct reading sum = reading_of(0);
    for (int i = 0; i < gpu->n_residents; i++) {
        sum.valid &= gpu->residents[i].expect.smact.valid;
        sum.value += gpu->residents[i].is_stopped ? 0 : gpu->residents[i].expect.smact.value;
    }
    return sum;
}

/* The measured activity beyond the expected one of the residents. */
static struct reading unexpected_smact(const struct gpu_view *gpu)
{
    struct reading expected = expected_smact(gpu);
    return gpu->smact_level.valid && expected.valid
               ? reading_of(fmax(0, gpu->smact_level.value - expected.value))
               : READING_NONE;
}

/* Is it known that no external process is in the memory domain? */
static bool is_without_external(const struct gpu_view *gpu)
{
    const struct gpu_view *at = gpu;
    do {
        if (reading_assume(at->external_processes, 1) != 0)
            return false;
        at = memory_domain_next(at);
    } while (at != gpu);
    return true;
}

/* The sampled memory may include that of a task that has left since. If there are no external
 * processes, the sum over the residents replaces it. It is no less than that: a resident of another
 * place may have given memory back since it was sampled. */
struct reading stage_used_bytes(const struct gpu_view *gpu)
{
    struct reading used = gpu->mem_used_bytes;
    double held = 0, promised = 0;
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk))) {
        held += stage_held_bytes(resident);
        promised += stage_held_bytes(resident) - taken_bytes(resident);
    }
    used.value = fmax(used.value + promised, held);
    return is_without_external(gpu) ? reading_of(held) : used;
}

/* ---- tasks on other places ---- */

static void add_other(struct stage *stage, const struct stage_other *other)
{
    if (stage->n_others < STAGE_OTHERS_MAX)
        stage->others[stage->n_others++] = *other;
    else
        stage->has_more_others = true;
}

/* Those of one place. */
static void add_others_of(
    struct stage *stage, const struct placement_query *query, const struct gpu_view *there)
{
    double speeds[PREDICT_RESIDENTS_MAX + 1];
    if (there->n_residents > PREDICT_RESIDENTS_MAX) {
        stage->has_more_others = true;
        return;
    }
    predict_gpu_speeds(query->view->constants, there, speeds);
    for (int i = 0; i < there->n_residents; i++) {
        const struct resident *resident = &there->residents[i];
        double speed = speeds[i] * (resident->kind_speed > 0 ? resident->kind_speed : 1);
        double work_s = stage_expected_s(&resident->expect);
        double left_s = work_left_s(resident, work_s, speed, query->now_us) / speed;
        add_other(stage, &(struct stage_other){stage_held_bytes(resident),
                             fmin(left_s, limit_left_s(resident, query->now_us)),
                             there->claims[CLAIM_EXCLUSIVE] == resident->task});
    }
}

static void add_others(
    struct stage *stage, const struct placement_query *query, const struct gpu_view *gpu)
{
    stage->n_others = 0;
    stage->has_more_others = false;
    for (const struct gpu_view *at = memory_domain_next(gpu); at != gpu;
         at = memory_domain_next(at))
        add_others_of(stage, query, at);
}

void stage_add_other(
    struct stage *stage, const struct task *task, double kind_speed, bool is_exclusive)
{
    double bytes = stage_task_bytes(&stage->gpu, task);
    double takes_s = fmin(
        stage_expected_s(&task->request.expect) / kind_speed, stage_limit_s(task));
    stage->gpu.mem_used_bytes.value += bytes;
    add_other(stage, &(struct stage_other){bytes, stage->passed_s + takes_s, is_exclusive});
}

static bool is_any_other_exclusive(const struct stage *stage)
{
    for (int i = 0; i < stage->n_others; i++)
        if (stage->others[i].is_exclusive)
            return true;
    return false;
}

/* How long the one that leaves next still stays, or INFINITY. */
static double other_rest_s(const struct stage *stage, int *ret_other)
{
    double least_s = INFINITY;
    *ret_other = 0;
    for (int i = 0; i < stage->n_others; i++) {
        double rest_s = fmax(0, stage->others[i].leaves_s - stage->passed_s);
        if (rest_s < least_s) {
            least_s = rest_s;
            *ret_other = i;
        }
    }
    return least_s;
}

static void remove_other(struct stage *stage, int i)
{
    size_t n_behind = (size_t)(--stage->n_others - i);
    if (stage->gpu.mem_used_bytes.valid)
        stage->gpu.mem_used_bytes.value -= stage->others[i].bytes;
    memmove(&stage->others[i], &stage->others[i + 1], n_behind * sizeof *stage->others);
}

/* ---- the stage ---- */

void stage_init(struct stage *stage, const struct placement_query *query, int place)
{
    const struct gpu_view *gpu = &query->view->gpus[place];
    double speeds[PREDICT_RESIDENTS_MAX + 1];
    stage->gpu = *gpu;
    unmark_gpu(&stage->gpu, query->now_us);
    stage->gpu.residents = stage->residents;
    stage->view = (struct cluster_view){.gpus = &stage->gpu,
        .n_gpus = 1,
        .last_placed = -1,
        .is_mps_on_some = query->view->is_mps_on_some,
        .has_services = query->view->has_services,
        .has_promises = query->view->has_promises,
        .constants = query->view->constants};
    for (int i = 0; i < gpu->n_residents; i++) {
        stage->residents[i] = resident_alone(&gpu->residents[i]);
        stage->left_s[i] = stage_expected_s(&gpu->residents[i].expect);
        stage->speed_max[i] = isfinite(stage->left_s[i])
                                  ? predict_speed_elsewhere(query->view, place, &gpu->residents[i])
                                  : 1;
        stage->ends_s[i] = limit_left_s(&gpu->residents[i], query->now_us);
    }
    stage->passed_s = 0;
    stage->is_used_externally = gpu_view_is_used_externally(gpu, query->settings->settle_us);
    stage->external_smact = stage->is_used_externally ? unexpected_smact(gpu) : reading_of(0);
    stage_speeds(stage, speeds);
    for (int i = 0; i < gpu->n_residents; i++)
        stage->left_s[i] = work_left_s(
            &gpu->residents[i], stage->left_s[i], speeds[i], query->now_us);
    stage->gpu.mem_used_bytes = stage_used_bytes(gpu);
    stage->gpu.next_in_domain = 0; /* the others are those of the stage */
    add_others(stage, query, gpu);
}

/* Other residents than were measured: the activity is the sum of what is expected of them, if that
 * is known, and of what was measured beyond it. */
static void predict_activity(struct stage *stage)
{
    struct gpu_view *gpu = &stage->gpu;
    struct reading sum = expected_smact(gpu);
    sum.valid &= stage->external_smact.valid;
    sum.value += stage->external_smact.value;
    gpu->smact_level = sum.valid ? reading_of(fmin(1, sum.value)) : READING_NONE;
    gpu->utilisation_level = READING_NONE;
}

double stage_task_bytes(const struct gpu_view *gpu, const struct task *task)
{
    const struct need *need = &task->request.need;
    return (double)(need->kind >= NEED_ESTIMATED ? need->bytes : gpu->id.mem_total_bytes);
}

void stage_add_task(struct stage *stage, const struct task *task, double kind_speed, int64_t now_us)
{
    int n = stage->gpu.n_residents++;
    double bytes = stage_task_bytes(&stage->gpu, task);
    stage->speed_max[n] = 1;
    stage->left_s[n] = stage_expected_s(&task->request.expect);
    stage->ends_s[n] = stage->passed_s + stage_limit_s(task);
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
        .promise.slowdown_max = reading_assume(task->request.slowdown_max, 0),
        .kind_speed = kind_speed,
    };
    stage->gpu.mem_used_bytes.value += bytes;
    predict_activity(stage);
}

static void stage_remove_resident(struct stage *stage, int i)
{
    struct gpu_view *gpu = &stage->gpu;
    const struct resident *leaver = &stage->residents[i];
    if (gpu->mem_used_bytes.valid)
        gpu->mem_used_bytes.value -= reading_assume(leaver->mem_used_bytes, 0);
    size_t n_behind = (size_t)(--gpu->n_residents - i);
    if (gpu->n_residents == 0)
        gpu->claims[CLAIM_EXCLUSIVE] = 0;
    memmove(&stage->residents[i], &stage->residents[i + 1], n_behind * sizeof *leaver);
    memmove(&stage->left_s[i], &stage->left_s[i + 1], n_behind * sizeof *stage->left_s);
    memmove(&stage->ends_s[i], &stage->ends_s[i + 1], n_behind * sizeof *stage->ends_s);
    memmove(&stage->speed_max[i], &stage->speed_max[i + 1], n_behind * sizeof *stage->speed_max);
    predict_activity(stage);
}

/* How long the resident still takes, at this speed. */
static double stage_rest_s(const struct stage *stage, int i, double speed)
{
    return fmin(stage->left_s[i] / speed, fmax(0, stage->ends_s[i] - stage->passed_s));
}

/* Which resident leaves next, and in which time. Those of unknown time leave last, the oldest
 * first. */
static int find_next_leaver(const struct stage *stage, const double *speeds, double *ret_rest_s)
{
    int next = 0;
    for (int i = 1; i < stage->gpu.n_residents; i++)
        if (stage_rest_s(stage, i, speeds[i]) < stage_rest_s(stage, next, speeds[next]))
            next = i;
    *ret_rest_s = stage_rest_s(stage, next, speeds[next]);
    return next;
}

static void run_for(struct stage *stage, const double *speeds, double time_s)
{
    stage->passed_s += time_s;
    for (int i = 0; i < stage->gpu.n_residents && isfinite(time_s); i++)
        stage->left_s[i] = fmax(0, stage->left_s[i] - speeds[i] * time_s);
}

/* The next task to leave: a resident, or one on another place. */
struct leaver {
    int index;
    bool is_other;
    double rest_s; /* how long it still stays */
};

/* Of those of unknown time the residents come first. */
static struct leaver find_leaver(const struct stage *stage, const double *speeds)
{
    struct leaver other = {.is_other = true}, own = {.rest_s = INFINITY};
    other.rest_s = other_rest_s(stage, &other.index);
    if (stage->gpu.n_residents > 0)
        own.index = find_next_leaver(stage, speeds, &own.rest_s);
    return stage->gpu.n_residents == 0 || other.rest_s < own.rest_s ? other : own;
}

static void remove_leaver(struct stage *stage, const struct leaver *leaver)
{
    if (leaver->is_other)
        remove_other(stage, leaver->index);
    else
        stage_remove_resident(stage, leaver->index);
}

void stage_advance(struct stage *stage)
{
    double speeds[PREDICT_RESIDENTS_MAX + 1];
    stage_speeds(stage, speeds);
    struct leaver leaver = find_leaver(stage, speeds);
    run_for(stage, speeds, leaver.rest_s);
    remove_leaver(stage, &leaver);
}

void stage_run_until(struct stage *stage, double at_s)
{
    double speeds[PREDICT_RESIDENTS_MAX + 1];
    while (stage_can_advance(stage)) {
        stage_speeds(stage, speeds);
        struct leaver leaver = find_leaver(stage, speeds);
        if (stage->passed_s + leaver.rest_s > at_s) {
            run_for(stage, speeds, at_s - stage->passed_s);
            return;
        }
        run_for(stage, speeds, leaver.rest_s);
        remove_leaver(stage, &leaver);
    }
    stage->passed_s = at_s;
}

void stage_copy(const struct stage *stage, struct stage *ret_copy)
{
    *ret_copy = *stage;
    ret_copy->gpu.residents = ret_copy->residents;
    ret_copy->view.gpus = &ret_copy->gpu;
}

/* Would the policy place the task beside the present residents? Of a task of several GPUs one part
 * is placed. */
bool stage_admits(const struct placement_query *query, const struct stage *stage)
{
    struct placement_query alone = *query;
    struct verdict verdict;
    int gpu;
    if (!stage_can_advance(stage) && !stage->has_more_others && !stage->is_used_externally)
        return true;
    if (query->idle_only || stage->gpu.claims[CLAIM_EXCLUSIVE] || is_any_other_exclusive(stage))
        return false;
    alone.view = &stage->view;
    alone.on_one_gpu = true;
    alone.is_unexplained = true;
    alone.head = NULL;
    alone.node_check = NULL;
    alone.set_aside = NULL;
    alone.first_gpu = alone.end_gpu = 0;
    return query->policy->choose(&alone, &gpu, &verdict) == PLACE_NOW;
}
