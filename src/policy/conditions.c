/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conditions, in the order in which they are tested; the first that is not met is the verdict.
 *
 *   1. It is a place for this task, of a kind that the task may have, healthy, recently sampled; no
 *      task has it to itself, and it is not drained for another, nor kept free for a reservation in
 *      advance.
 *   2. It is large enough. An idle GPU then takes the task. So does a GPU that is smaller than an
 *      estimate (not a declaration), when there is no larger one: an estimate may be wrong.
 *   3. MPS, compute mode and the limit of tasks allow the task beside the residents.
 *      A service beside which it would run has met its latency target for long enough, and is
 *      predicted to meet it then, too (service_guard.c). The promises of speed, its own and
 *      those of the residents, are predicted to be kept (promise_guard.c).
 *   4. No resident's memory is still rising to an unknown size, unless a wrong guess only waits;
 *      and not too many residents are starting (starting.c). What they are expected to take counts
 *      in 5 and 6.
 *   5. Free memory, less the requirements of residents that have not allocated yet, is enough for
 *      the task: for its requirement and the margin, or min_free_bytes if its requirement is
 *      unknown.
 *   6. SMACT over the window is at most smact_max, or, beside clients of MPS, together with the
 *      task's own at most smact_sum_max. Utilisation, which is never lower, replaces an unknown
 *      SMACT. The last tasks of an array start beside twice as many of it at any activity.
 *   7. A task of SHARING_AUTO is time-sliced with others only where all together are predicted to
 *      gain.
 *   8. Power and PCIe traffic are below their limits, where these are set (load_limits.c).
 *   9. In a cluster: the GPU's server has the CPUs and the host memory that the task needs.
 *  10. The head of the queue, for which GPUs are reserved, is not delayed (backfill.h).
 *
 * 5 and 6 are the dissertation's (section 6.2.2); 4 and 7 to 10 go beyond it. In 1, 4 and 5 the GPU
 * is its memory domain (core/memory_domain.h): a task on another place of it holds this one, too.
 *
 * An example with the defaults. A task that declares 12 GiB; a GPU of 40 GiB with one resident that
 * holds 30 GiB at 50 % SMACT. 10 GiB are free, 12 GiB and the margin of 2 GiB are needed: "4.0 GiB
 * short", although the activity would admit it.
 */
#include "policy/conditions.h"

#include <math.h>
#include <string.h>

#include "base/top_k.h"
#include "core/memory_domain.h"
#include "core/sharing_choice.h"
#include "policy/backfill.h"
#include "policy/closest.h"
#include "policy/load_limits.h"
#include "policy/predict.h"
#include "policy/promise_guard.h"
#include "policy/service_guard.h"
#include "policy/starting.h"

static const struct verdict fits = {.kind = VERDICT_FITS};

/* Says that a condition is not met. Each test below returns whether its condition is, and writes
 * the verdict only if not: a pass tests all GPUs for each task that it tries. */
static bool refuse_gpu(
    struct verdict *ret_verdict, enum verdict_kind kind, uint64_t task, double have, double limit)
{
    *ret_verdict = (struct verdict){.kind = kind, .task = task, .have = have, .limit = limit};
    return false;
}

/* Is the resident that the GPU is closed for being suspended or moved off it, or does it wait there
 * for memory? */
static enum verdict_kind kind_of_closed(const struct gpu_view *gpu)
{
    bool is_leaving = gpu_view_resident(gpu, gpu->claims[CLAIM_CLOSED])->is_stopped;
    return is_leaving ? VERDICT_LEAVING : VERDICT_HOLD_OFF;
}

/* Is the memory of the GPU kept from all tasks, or from this one, by a task on it? */
static bool is_memory_open(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    if (gpu->claims[CLAIM_EXCLUSIVE])
        return refuse_gpu(ret_verdict, VERDICT_EXCLUSIVE, gpu->claims[CLAIM_EXCLUSIVE], 0, 0);
    if (gpu->claims[CLAIM_DRAIN] && gpu->claims[CLAIM_DRAIN] != query->task->id)
        return refuse_gpu(ret_verdict, VERDICT_DRAINED, gpu->claims[CLAIM_DRAIN], 0, 0);
    if (gpu->claims[CLAIM_CLOSED])
        return refuse_gpu(ret_verdict, kind_of_closed(gpu), gpu->claims[CLAIM_CLOSED], 0, 0);
    if (gpu->claims[CLAIM_RECALL] && gpu->claims[CLAIM_RECALL] != query->task->id)
        return refuse_gpu(ret_verdict, VERDICT_RETURN, gpu->claims[CLAIM_RECALL], 0, 0);
    if (gpu->claims[CLAIM_RETURN] && query->task->state != TASK_SUSPENDED)
        return refuse_gpu(ret_verdict, VERDICT_RETURN, gpu->claims[CLAIM_RETURN], 0, 0);
    return true;
}

static bool is_domain_open(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    const struct gpu_view *at = gpu;
    do {
        if (!is_memory_open(query, at, ret_verdict))
            return false;
        at = memory_domain_next(at);
    } while (at != gpu);
    return true;
}

/* Is the GPU kept from all tasks, or from this one? Most are not: one test finds that. */
static inline bool is_open(const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    uint64_t set_aside = placement_set_aside(query, i);
    if (set_aside)
        return refuse_gpu(ret_verdict, VERDICT_SET_ASIDE, set_aside, 0, 0);
    if (!claims_any(gpu->claims, CLAIMS_BARRING) && !memory_domain_is_shared(gpu))
        return true;
    return is_domain_open(query, gpu, ret_verdict);
}

static enum verdict_kind kind_of_health(enum view_health health)
{
    static const enum verdict_kind kinds[] = {[VIEW_UNSEEN] = VERDICT_NO_SAMPLE,
        [VIEW_OK] = VERDICT_NO_SAMPLE,
        [VIEW_LOST] = VERDICT_LOST,
        [VIEW_FAULTY] = VERDICT_FAULTY,
        [VIEW_OUT_OF_USE] = VERDICT_OUT_OF_USE};
    return kinds[health];
}

/* Inlined: a call for each GPU would be a fifth of a pass. */
static inline __attribute__((always_inline)) bool is_usable(
    const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    if (!gpu->id.is_place)
        return refuse_gpu(ret_verdict, VERDICT_NOT_A_PLACE, 0, 0, 0);
    if (!cluster_view_is_of_kind(query->view, i, query->task))
        return refuse_gpu(ret_verdict, VERDICT_OTHER_KIND, 0, 0, 0);
    if (gpu->health != VIEW_OK ||
        query->now_us - gpu->sampled_us > query->conditions->sample_valid_us)
        return refuse_gpu(ret_verdict, kind_of_health(gpu->health), 0, 0, 0);
    if (gpu->id.is_mig_instance && query->task->request.gpus > 1)
        return refuse_gpu(ret_verdict, VERDICT_MIG_ONE_ONLY, 0, 0, 0);
    return is_open(query, i, ret_verdict);
}

static inline bool is_large_enough(
    const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    return cluster_view_is_large_enough(query->view, i, query->task) ||
           refuse_gpu(ret_verdict, VERDICT_MEMORY_SHORT, 0, (double)gpu->id.mem_total_bytes,
               (double)query->task->request.need.bytes);
}

/* Is the GPU idle to a task that takes only idle ones? Inlined, as is_usable. */
static inline __attribute__((always_inline)) bool is_idle_enough(
    const struct placement_query *query, const struct gpu_view *gpu)
{
    if (gpu->n_residents > 0) /* the first one mostly says it */
        return query->unused_is_idle && resident_is_unused(&gpu->residents[0], query->now_us) &&
               gpu_view_is_unused(gpu, query->now_us);
    return gpu_view_is_idle(gpu) || gpu_view_is_idle_but_for(gpu, query->task);
}

/* The tasks because of which the GPU is not idle. Mostly all that are there: then none is read. */
static int count_users(const struct placement_query *query, const struct gpu_view *gpu)
{
    int n = 0;
    const struct gpu_view *at = gpu;
    do {
        n += at->n_residents;
        for (int i = 0; i < at->n_residents && query->unused_is_idle; i++)
            n -= resident_is_unused(&at->residents[i], query->now_us);
        at = memory_domain_next(at);
    } while (at != gpu);
    return n;
}

static bool refuse_not_idle(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    double external = gpu->external_processes.valid ? gpu->external_processes.value : 0;
    int n_tasks = count_users(query, gpu) + gpu->n_absent;
    return refuse_gpu(ret_verdict, VERDICT_NOT_IDLE, 0, n_tasks, external);
}

static bool has_memory(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    struct reading free_bytes = gpu_view_free_bytes(gpu);
    if (conditions_wanted_bytes(query) > (double)gpu->id.mem_total_bytes)
        return gpu_view_is_idle(gpu) || refuse_not_idle(query, gpu, ret_verdict);
    if (!free_bytes.valid)
        return refuse_gpu(ret_verdict, VERDICT_MEMORY_UNKNOWN, 0, 0, 0);
    double left = free_bytes.value - starting_promised_bytes(query, gpu);
    return conditions_check_left(query, gpu, left, ret_verdict);
}

/* The activity that is measured of a compute instance is that of its GPU instance. Where no process
 * is on it, it is that of others: its own SMs are idle. */
static bool is_activity_of_others(const struct gpu_view *gpu)
{
    return memory_domain_is_shared(gpu) && gpu->n_residents == 0 && gpu->external_processes.valid &&
           gpu->external_processes.value == 0;
}

/* Suspended tasks compute nothing: what is measured was before they were. */
static bool has_contexts_only(const struct gpu_view *gpu)
{
    return gpu->n_absent > 0 && gpu->n_residents == 0 && !memory_domain_has_others(gpu) &&
           gpu->external_processes.valid && gpu->external_processes.value == 0;
}

/* Would the task be a client of MPS beside such clients alone? Their kernels run at one time. */
static bool joins_by_mps(const struct placement_query *query, const struct gpu_view *gpu)
{
    enum sharing wanted = query->task->request.sharing;
    bool is_wanted = wanted == SHARING_MPS || wanted == SHARING_AUTO;
    bool may = is_wanted && !sharing_rules_out_mps(query->task) &&
               reading_assume(gpu->external_processes, 1) == 0;
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while (may && (resident = memory_domain_resident(&walk)))
        may = resident->sharing == SHARING_MPS;
    return may;
}

/* Are all residents tasks of the task's array? */
static bool joins_siblings(const struct placement_query *query, const struct gpu_view *gpu)
{
    uint64_t array = query->task->array.id;
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while (array && (resident = memory_domain_resident(&walk)))
        array = resident->array == array ? array : 0;
    return array > 0;
}

/* The activity beside which the task may start. Example: smact_max 0.8, smact_sum_max 1.4. A task
 * of 0.5 starts up to 0.9, one of 0.6 or of unknown activity up to 0.8. Beside tasks of its array
 * alone it starts until the GPU is full: the array is done soonest then, and none of its tasks is
 * waited for more than the others. */
static double most_activity(const struct placement_query *query, const struct gpu_view *gpu)
{
    const struct conditions *conditions = query->conditions;
    struct reading own = query->task->request.expect.smact;
    double most = conditions->smact_max;
    if (!own.valid || conditions->smact_sum_max <= 0 || !joins_by_mps(query, gpu))
        return most;
    if (joins_siblings(query, gpu))
        return fmax(most, ACTIVITY_FULL);
    return fmax(most, fmin(conditions->smact_sum_max - own.value, ACTIVITY_FULL));
}

/* Is the task one of the last few of an array of which twice as many run there? Then it starts
 * however full the GPU is: all are done a little later than those that run now would be, and the
 * few alone would not fill it afterwards. */
static bool is_of_last_siblings(const struct placement_query *query, const struct gpu_view *gpu)
{
    return query->array_left > 0 && 2 * query->array_left <= gpu->n_residents &&
           query->conditions->smact_sum_max > 0 && joins_siblings(query, gpu) &&
           joins_by_mps(query, gpu);
}

/* Is the task refused only because too many are starting, and one of the last siblings? These need
 * not show their activity before: it does not count. Not inlined: mostly it is not asked. */
static __attribute__((noinline)) bool starts_with_siblings(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    if (ret_verdict->kind != VERDICT_STARTING || !is_of_last_siblings(query, gpu))
        return false;
    *ret_verdict = fits;
    return true;
}

/* Do those that are starting let the task start? */
static inline bool admits_beside_starting(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    return starting_admits(query, gpu, false, ret_verdict) ||
           starts_with_siblings(query, gpu, ret_verdict);
}

bool conditions_check_activity(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    if (is_activity_of_others(gpu) || has_contexts_only(gpu) || is_of_last_siblings(query, gpu))
        return true;
    bool has_smact = gpu->smact_level.valid;
    struct reading activity = has_smact ? gpu->smact_level : gpu->utilisation_level;
    const double usual = query->conditions->smact_max;
    if (!activity.valid)
        return refuse_gpu(ret_verdict, VERDICT_SMACT_UNKNOWN, 0, 0, usual);
    enum verdict_kind kind = has_smact ? VERDICT_SMACT_HIGH : VERDICT_UTILISATION_HIGH;
    double max = has_smact ? most_activity(query, gpu) : usual;
    double level = max > usual ? activity_step(activity.value) : activity.value;
    if (level > max + POLICY_ROUNDING)
        return refuse_gpu(ret_verdict, kind, 0, activity.value, max);
    double expected = starting_expected_activity(query, gpu, level);
    return expected <= max + POLICY_ROUNDING ||
           refuse_gpu(ret_verdict, VERDICT_SMACT_EXPECTED, 0, expected, max);
}

/* An MPS server serves one user at a time; a compute mode may admit a single process, which several
 * tasks of one user can share through MPS. A task of several GPUs is time-sliced on all of them if
 * the setting mps-gpus leaves out one. */
static bool may_join(const struct placement_query *query, const struct gpu_view *gpu,
    const struct resident *resident, struct verdict *ret_verdict)
{
    const struct task *task = query->task;
    bool other_user = resident->uid != task->uid;
    if (!gpu->id.one_process && !other_user)
        return true;
    bool both_mps = !sharing_rules_out_mps(task) && resident->sharing == SHARING_MPS;
    if (gpu->id.one_process && (!both_mps || other_user))
        return refuse_gpu(ret_verdict, VERDICT_ONE_PROCESS, resident->task, 0, 0);
    if (gpu->id.one_process && task->request.gpus > 1 && query->view->is_mps_on_some)
        return refuse_gpu(ret_verdict, VERDICT_MPS_ON_SOME, resident->task, 0, 0);
    if (task->request.sharing == SHARING_MPS && both_mps && other_user &&
        !query->conditions->mps_users_together)
        return refuse_gpu(ret_verdict, VERDICT_OTHER_MPS_USER, resident->task, 0, 0);
    return true;
}

/* Where the compute mode admits one process, that is the MPS server of the clients whose contexts
 * are there. */
static bool may_join_absent(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    for (int i = 0; i < gpu->n_absent; i++)
        if (gpu->absent[i].uid != query->task->uid || sharing_rules_out_mps(query->task))
            return refuse_gpu(ret_verdict, VERDICT_ONE_PROCESS, gpu->absent[i].task, 0, 0);
    return true;
}

/* Is any resident a task of another user? */
static inline bool is_others(const struct gpu_view *gpu, const struct task *task)
{
    for (int i = 0; i < gpu->n_residents; i++)
        if (gpu->residents[i].uid != task->uid)
            return true;
    return false;
}

/* Not inlined: mostly one user's tasks are on a GPU that admits several processes. */
static __attribute__((noinline)) bool may_join_all(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    if (gpu->id.one_process && gpu->external_processes.valid && gpu->external_processes.value > 0)
        return refuse_gpu(ret_verdict, VERDICT_ONE_PROCESS, 0, 0, 0);
    if (gpu->id.one_process && !may_join_absent(query, gpu, ret_verdict))
        return false;
    for (int i = 0; i < gpu->n_residents; i++)
        if (!may_join(query, gpu, &gpu->residents[i], ret_verdict))
            return false;
    return true;
}

/* Can may_join_all refuse? Mostly not: then no task there is read. */
static inline bool may_tasks_refuse(const struct placement_query *query, const struct gpu_view *gpu)
{
    return gpu->id.one_process ||
           (query->task->request.sharing == SHARING_MPS && !query->conditions->mps_users_together &&
               is_others(gpu, query->task));
}

/* MPS serves 48 clients on a GPU: with driver 580.159.04 the context of the 49th fails with error
 * 808, measured on an H200. */
#define MPS_CLIENTS_MAX 48

/* Can has_mps_place refuse? Where no task has had several clients, and the residents are few, it
 * cannot: none is read. */
static inline bool may_clients_fill(const struct placement_query *query, const struct gpu_view *gpu)
{
    return query->view->has_several_clients || gpu->n_residents >= MPS_CLIENTS_MAX ||
           gpu->n_absent > 0;
}

/* The task may have several processes, but one at least. Not inlined: mostly it is not asked. */
static __attribute__((noinline)) bool has_mps_place(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    int clients = gpu_view_mps_clients(gpu);
    return clients < MPS_CLIENTS_MAX || sharing_rules_out_mps(query->task) ||
           gpu_view_has_context(gpu, query->task->id) ||
           refuse_gpu(ret_verdict, VERDICT_MPS_FULL, 0, clients, MPS_CLIENTS_MAX);
}

static inline bool check_coresidents(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    int most = query->conditions->tasks_per_gpu_max;
    if (may_tasks_refuse(query, gpu) && !may_join_all(query, gpu, ret_verdict))
        return false;
    if (may_clients_fill(query, gpu) && !has_mps_place(query, gpu, ret_verdict))
        return false;
    return !most || gpu->n_residents < most ||
           refuse_gpu(ret_verdict, VERDICT_FULL, 0, gpu->n_residents, most);
}

bool conditions_check_coresidents(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    return check_coresidents(query, gpu, ret_verdict);
}

/* Where taking turns gains next to nothing, tasks are done sooner one after the other. */
static bool is_gain_enough(const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    if (query->task->request.sharing != SHARING_AUTO)
        return true;
    struct prediction prediction = predict_join_one(query, i);
    return !prediction.known || prediction.sharing == SHARING_MPS ||
           prediction.gain >= PREDICT_GAIN_MIN ||
           refuse_gpu(ret_verdict, VERDICT_NO_GAIN, 0, prediction.gain, PREDICT_GAIN_MIN);
}

/* Not inlined: the test of an idle GPU is short without it. */
static __attribute__((noinline)) bool may_share(
    const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    if (!conditions_check_free(query, gpu, ret_verdict) ||
        !check_coresidents(query, gpu, ret_verdict) ||
        !service_guard_admits(query, i, ret_verdict) ||
        !promise_guard_admits(query, i, ret_verdict))
        return false;
    return admits_beside_starting(query, gpu, ret_verdict) && has_memory(query, gpu, ret_verdict) &&
           conditions_check_activity(query, gpu, ret_verdict) &&
           is_gain_enough(query, i, ret_verdict);
}

bool conditions_check_node(const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    return placement_ask_node(query, i) == NODE_ADMITS ||
           refuse_gpu(ret_verdict, VERDICT_NODE, 0, 0, 0);
}

/* Tested last: the most expensive condition. Not inlined: a predictor takes much of the stack. */
static __attribute__((noinline)) bool delays_no_task(
    const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    struct predictor predictor;
    predictor_init(&predictor, query, query->view);
    uint64_t delayed = backfill_delayed_task(query, &predictor, i);
    return !delayed || refuse_gpu(ret_verdict, VERDICT_RESERVED, delayed, 0, 0);
}

static bool is_anything_reserved(const struct placement_query *query, int i)
{
    return query->head || query->view->gpus[i].claims[CLAIM_HEAD];
}

/* The conditions behind those of conditions_check_place. Inlined, as is_usable. */
static inline __attribute__((always_inline)) bool are_later_met(
    const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    return (gpu_view_is_idle(&query->view->gpus[i]) || may_share(query, i, ret_verdict)) &&
           load_limits_admit(query, i, ret_verdict) &&
           conditions_check_node(query, i, ret_verdict) &&
           (!is_anything_reserved(query, i) || delays_no_task(query, i, ret_verdict));
}

/* Inlined, as is_usable: most GPUs of a full server are refused by its first lines. */
static inline __attribute__((always_inline)) bool are_all_met(
    const struct placement_query *query, int i, struct verdict *ret_verdict)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    if (!is_usable(query, i, ret_verdict) || !is_large_enough(query, i, ret_verdict))
        return false;
    if (query->idle_only && !is_idle_enough(query, gpu))
        return refuse_not_idle(query, gpu, ret_verdict);
    if (!are_later_met(query, i, ret_verdict))
        return false;
    *ret_verdict = fits;
    return true;
}

struct verdict conditions_check(const struct placement_query *query, int i)
{
    struct verdict verdict;
    are_all_met(query, i, &verdict);
    return verdict;
}

bool conditions_check_place(
    const struct placement_query *query, int i, bool *ret_is_final, struct verdict *ret_verdict)
{
    const struct gpu_view *gpu = &query->view->gpus[i];
    *ret_is_final = true;
    if (!is_usable(query, i, ret_verdict) || !is_large_enough(query, i, ret_verdict))
        return false;
    if (gpu_view_is_idle(gpu))
        return true;
    if (query->idle_only && !is_idle_enough(query, gpu))
        return refuse_not_idle(query, gpu, ret_verdict);
    *ret_is_final = false;
    return true;
}

/* ---- the best of the GPUs that meet all conditions ---- */

struct order {
    const struct placement_query *query;
    conditions_before *before; /* NULL: by index, the order in which GPUs are tested */
};

/* Places of a memory domain have equal memory, but SMs of their own: the emptier one is better. */
static bool is_emptier_place(const struct gpu_view *one, const struct gpu_view *other)
{
    return memory_domain_is_shared(one) && memory_domain_is_shared(other) &&
           one->id.memory_domain == other->id.memory_domain && one->id.node == other->id.node &&
           one->n_residents < other->n_residents;
}

static bool is_better(const void *a, const void *b, const void *context)
{
    const struct order *order = context;
    const struct placement_query *query = order->query;
    const struct gpu_view *gpus = query->view->gpus;
    int one = *(const int *)a, other = *(const int *)b;
    if (!order->before)
        return false;
    return order->before(query, one, other) ||
           (is_emptier_place(&gpus[one], &gpus[other]) && !order->before(query, other, one));
}

/* When the last of the best cannot be beaten by a later GPU, neither can the others. */
static bool are_unbeaten(const struct placement_query *query, conditions_before *before,
    conditions_unbeaten *unbeaten, const int *best, int n)
{
    bool is_alone = !memory_domain_is_shared(&query->view->gpus[best[n - 1]]);
    return !before || (is_alone && unbeaten && unbeaten(query, best[n - 1]));
}

/* Does it make no difference to the policy which of the two the task gets? */
static bool are_equally_good(const struct order *order, int a, int b)
{
    const struct placement_query *query = order->query;
    const struct gpu_view *one = &query->view->gpus[a], *other = &query->view->gpus[b];
    bool are_alike = strcmp(one->id.name, other->id.name) == 0 &&
                     one->id.mem_total_bytes == other->id.mem_total_bytes;
    if (are_alike && gpu_view_is_idle(one) && gpu_view_is_idle(other))
        return true; /* NVIDIA's driver takes a few MiB more of one than of the other */
    return a == b || (order->before && !order->before(query, a, b) && !order->before(query, b, a));
}

/* Of a task of several GPUs, where distances are known (closest.h): the best ones stay; GPUs as
 * good as the last of them are chosen by distance. */
static bool choose_closest(
    const struct order *order, const int *fitting, int n, int wanted, int *ret_gpus)
{
    int candidates[VIEW_DISTANCES_MAX], count = 0, kept = 0;
    if (n < wanted)
        return false;
    for (int i = 0; i < n; i++) {
        if (are_equally_good(order, fitting[i], fitting[wanted - 1]))
            candidates[count++] = fitting[i];
        else if (i < wanted)
            ret_gpus[kept++] = fitting[i];
    }
    closest_complete(order->query->view, ret_gpus, kept, wanted, candidates, count);
    return true;
}

/* All that fit, the best first. Returns how many. */
static int list_fitting(const struct order *order, struct verdict *ret_verdicts, int *ret_gpus)
{
    const struct placement_query *query = order->query;
    size_t n = 0;
    for (int i = query->first_gpu; i < placement_end_gpu(query); i++) {
        ret_verdicts[i] = conditions_check(query, i);
        if (ret_verdicts[i].kind == VERDICT_FITS)
            n = top_k_insert(
                ret_gpus, n, VIEW_DISTANCES_MAX, sizeof *ret_gpus, &i, is_better, order);
    }
    return (int)n;
}

/*
 * Of many GPUs few can be the first choice: idle ones for a task that takes no others, or such of
 * which all memory is free for a policy that looks for that. The view's list of open memory says
 * which; of the others nothing is read.
 *
 * Returns the least that they have open; NAN: any GPU may be the first choice.
 */
static double first_choice_bytes(
    const struct placement_query *query, conditions_before *before, conditions_unbeaten *unbeaten)
{
    /* A GPU may also count as idle with what is left of this task, or with unused ones. */
    bool counts_as_idle = query->unused_is_idle || task_context_gpu(query->task) >= 0;
    if (!query->view->open_bytes || counts_as_idle || (before && !unbeaten))
        return NAN;
    if (query->idle_only)
        return INFINITY;
    return before ? reading_assume(query->view->mem_total_max_bytes, NAN) : NAN;
}

/* Chooses the first of the GPUs that no other beats: these are equally good. No reason is read, so
 * the test comes first that finds most of the others: a task has just started there. Returns false
 * where there are too few, or where their order may be another one: then all have to be tested. */
static bool choose_first(
    const struct order *order, conditions_unbeaten *unbeaten, double bytes, int *ret_gpus)
{
    const struct placement_query *query = order->query;
    const double *open_bytes = query->view->open_bytes;
    int n = 0, wanted = placement_wanted(query), end = placement_end_gpu(query);
    struct verdict verdict;
    for (int i = query->first_gpu; i < end && n < wanted; i++) {
        if (open_bytes[i] < bytes)
            continue;
        const struct gpu_view *gpu = &query->view->gpus[i];
        if ((gpu->n_residents > 0 && !admits_beside_starting(query, gpu, &verdict)) ||
            !are_all_met(query, i, &verdict) || (order->before && !unbeaten(query, i)))
            continue;
        if (order->before && memory_domain_is_shared(gpu))
            return false;
        ret_gpus[n++] = i;
    }
    return n == wanted;
}

enum placement_answer conditions_choose(const struct placement_query *query,
    conditions_before *before, conditions_unbeaten *unbeaten, int *ret_gpus,
    struct verdict *ret_verdicts)
{
    const struct order order = {query, before};
    int wanted = placement_wanted(query), n = 0;
    int end = placement_end_gpu(query), considered = end - query->first_gpu;
    const struct conditions_filter filter = conditions_filter_of(query);
    int most = wanted < considered ? wanted : considered;
    if (closest_matters(query->view, wanted)) {
        int fitting[VIEW_DISTANCES_MAX];
        n = list_fitting(&order, ret_verdicts, fitting);
        return choose_closest(&order, fitting, n, wanted, ret_gpus) ? PLACE_NOW : PLACE_WAIT;
    }
    double bytes = first_choice_bytes(query, before, unbeaten);
    if (!isnan(bytes) && choose_first(&order, unbeaten, bytes, ret_gpus))
        return PLACE_NOW;
    for (int i = query->first_gpu; i < end; i++) {
        if (conditions_filter_refuses(&filter, i, &ret_verdicts[i]) ||
            !are_all_met(query, i, &ret_verdicts[i]))
            continue;
        n = (int)top_k_insert(
            ret_gpus, (size_t)n, (size_t)most, sizeof *ret_gpus, &i, is_better, &order);
        if (n == wanted && are_unbeaten(query, before, unbeaten, ret_gpus, n))
            return PLACE_NOW;
    }
    return n == wanted ? PLACE_NOW : PLACE_WAIT;
}
