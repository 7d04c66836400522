/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that are starting: neither their memory nor their activity is measured yet. How many of
 * them a GPU may have, and on which evidence the next task starts beside them:
 *
 *   1. Memory that is known (declared, estimated, learned) is reserved: what a resident has not
 *      taken yet counts as taken.
 *   2. For a resident of unknown memory min_free_bytes are kept until its memory stands still (of
 *      the task's array: what those show), if a wrong guess only waits. It does
 *      where the preloaded library was given to its processes, and works in them, as far as is
 *      known (core/state/library_use.c). Otherwise the resident holds all tasks off until then, and
 *      so it does a task whose user wants no library: that would crash.
 *   3. Activity that is known counts at once. Unknown activity is measured once the resident has
 *      taken its memory, with RISEN_SAMPLES_ENOUGH samples; until then it counts as the mean of the
 *      residents that compute. Where all starting ones are clients of MPS of known activity, the
 *      interference model says what all together will do: less than the sum, where SMs are short.
 *      Not of unknown ones: simulated, long trainings then take 1 to 2 % longer.
 *   4. Where no resident computes yet, there is no such mean: then starting_max residents of
 *      unknown activity may be starting, and nowhere more than these. A task of known activity
 *      starts beside them.
 *   5. A task of unknown activity that has waited LONG_WAITS times as long as a resident may take
 *      to settle (settle_max_us), or that comes after such a head of the queue, waits until those
 *      that are starting have shown their activity: that makes its wait a tenth longer at most.
 *      Such a queue is mostly one of long trainings: simulated, these are done 1 to 2 % later in
 *      total where several begin on a GPU at once.
 *
 * An example. An idle GPU of 40 GiB and ten tasks of which nothing is known, all with the library;
 * min_free_bytes 5 GiB, starting_max 32. Seven start at once: for each 5 GiB are kept, and the
 * eighth finds less, since the driver has some memory, too. They take 2 GiB each, and after three
 * more samples show 63 % SM activity together. Once their memory stands still 26 GiB are free: the
 * eighth task starts, and counts as 63 % / 7 = 9 %. So the ninth starts beside it (63 + 9 is less
 * than 80 %), but not the tenth until these have shown their activity (63 + 18 is more).
 *
 * With starting_max 0 no task starts beside a resident whose memory has not settled, as in the
 * dissertation. A wrong guess that waits is corrected by core/pass/memory_answer.c.
 */
#include "policy/starting.h"

#include <math.h>

#include "core/gpu_sharers.h"
#include "core/memory_domain.h"
#include "core/settings.h"
#include "sharing/interference_cache.h"

static bool refuse_task(struct verdict *ret_verdict, struct verdict verdict)
{
    *ret_verdict = verdict;
    return false;
}

/* Was the resident backfilled onto a GPU that is reserved for the query's task, and has a known
 * requirement? It must not delay that task: its memory, which still rises, is counted as taken. */
static bool was_backfilled(const struct placement_query *query, const struct resident *resident)
{
    return resident->backfilled_before == query->task->id && resident->need_bytes.valid;
}

/* ---- memory ---- */

/* Does a wrong guess of the resident's memory only wait, also for the query's task? */
static bool may_guess(const struct placement_query *query, const struct resident *resident)
{
    return resident->allocations_wait && !query->task->request.without_library;
}

/* A requirement that is a lower bound says as little of how much it will take as none. */
static bool is_known(const struct resident *resident)
{
    return resident->need_bytes.valid && !resident->need_is_least;
}

/* Is memory kept for the resident, which may not have taken it yet? Then it holds no task off. */
static bool is_reserved(const struct placement_query *query, const struct resident *resident)
{
    return query->conditions->starting_max > 0 &&
           (is_known(resident) || may_guess(query, resident));
}

/* Does the resident, which has not settled, hold the task off? */
static bool holds_off(
    const struct placement_query *query, const struct resident *resident, bool predicts)
{
    bool is_predictable = predicts && is_known(resident) && resident->expect.smact.valid;
    return !is_predictable && !was_backfilled(query, resident) && !is_reserved(query, resident);
}

/* The newest resident of the place for which the task is held off: the search begins with it. */
static inline const struct resident *find_rising_on(
    const struct placement_query *query, const struct gpu_view *place, bool predicts)
{
    for (int i = place->n_residents - 1; i >= 0; i--)
        if (!residence_has_settled(place->residents[i].residence) &&
            holds_off(query, &place->residents[i], predicts))
            return &place->residents[i];
    return NULL;
}

/* The newest of a memory domain that several places share. Not inlined: few do. */
static __attribute__((noinline)) const struct resident *find_rising_in_domain(
    const struct placement_query *query, const struct gpu_view *gpu, bool predicts)
{
    const struct resident *newest = find_rising_on(query, gpu, predicts);
    for (const struct gpu_view *at = memory_domain_next(gpu); at != gpu;
         at = memory_domain_next(at)) {
        const struct resident *rising = find_rising_on(query, at, predicts);
        if (rising && (!newest || rising->since_us >= newest->since_us))
            newest = rising;
    }
    return newest;
}

/* Will the resident still take the memory that it is known to need? Before its memory rises it has
 * hardly any: its process may load data for minutes first, with or without a CUDA context. */
static bool is_promised(const struct placement_query *query, const struct resident *resident)
{
    if (!residence_has_risen(resident->residence) || was_backfilled(query, resident))
        return true;
    return !residence_has_settled(resident->residence) && is_reserved(query, resident);
}

double starting_sum_promised(const struct placement_query *query, const struct gpu_view *gpu)
{
    double bytes = 0;
    const struct gpu_view *at = gpu;
    do {
        for (int i = 0; i < at->n_residents; i++)
            if (is_promised(query, &at->residents[i]))
                bytes += resident_outstanding_bytes(&at->residents[i]);
        at = memory_domain_next(at);
    } while (at != gpu);
    return bytes;
}

static bool is_sibling(const struct placement_query *query, const struct resident *resident)
{
    return resident->array && resident->array == query->task->array.id;
}

/* Chosen. Of 64 trainings on an H200 63 held in the end what they held after six steps
 * (docs/measured/tunings.md): twice of what several show at first is enough for most. */
enum { SIBLINGS_ENOUGH = 4, SIBLING_GROWTH = 2 };

/*
 * What a resident of unknown memory that is of the task's array is expected to need: what the task
 * is known to need, since runs of its command have shown theirs; else, once several of the array
 * hold more than a context there, twice the most of them. No more than of any other resident.
 */
static double sibling_bytes(const struct placement_query *query, const struct gpu_view *gpu)
{
    const struct need *need = &query->task->request.need;
    double most = 0, usual = (double)query->conditions->min_free_bytes;
    const struct resident *resident;
    int n = 0;
    if (need->kind >= NEED_ESTIMATED)
        return (double)need->bytes;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk))) {
        if (!is_sibling(query, resident) || resident->samples_risen == 0)
            continue;
        most = fmax(most, reading_assume(resident->mem_used_bytes, usual));
        n++;
    }
    return n >= SIBLINGS_ENOUGH ? fmin(usual, SIBLING_GROWTH * most) : usual;
}

double starting_sum_kept(const struct placement_query *query, const struct gpu_view *gpu)
{
    double bytes = 0, usual = (double)query->conditions->min_free_bytes;
    double of_sibling = query->task->array.id ? sibling_bytes(query, gpu) : usual;
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk)))
        if (!resident->need_bytes.valid && !residence_has_settled(resident->residence))
            bytes += fmax(0, (is_sibling(query, resident) ? of_sibling : usual) -
                                 reading_assume(resident->mem_used_bytes, 0));
    return bytes;
}

/* ---- activity ---- */

/* What is known of the activity of a GPU's residents. */
struct activity_tally {
    int n_measured; /* that compute: the measured level is theirs */
    int n_known;    /* that are starting, of known activity: */
    double known;   /* this sum */
    int n_unknown;  /* that are starting, of unknown activity */
};

static bool is_measured(const struct resident *resident)
{
    return residence_has_settled(resident->residence) ||
           resident->samples_risen >= RISEN_SAMPLES_ENOUGH;
}

static struct activity_tally tally_activity(const struct gpu_view *gpu)
{
    struct activity_tally tally = {0};
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk))) {
        if (resident->is_stopped)
            continue;
        if (is_measured(resident)) {
            tally.n_measured += residence_has_appeared(resident->residence);
        } else if (resident->expect.smact.valid) {
            tally.n_known++;
            tally.known += resident->expect.smact.value;
        } else {
            tally.n_unknown++;
        }
    }
    return tally;
}

/* Do clients of MPS alone use the GPU, and is the activity measured theirs? */
static bool are_clients_alone(const struct gpu_view *gpu)
{
    bool are = !memory_domain_is_shared(gpu) && gpu->n_residents < GPU_SHARERS_MAX &&
               reading_assume(gpu->external_processes, 1) == 0;
    for (int i = 0; are && i < gpu->n_residents; i++)
        are = gpu->residents[i].sharing == SHARING_MPS;
    return are;
}

static void add_client(struct sharer *sharers, int *n, double smact, int thread_percent)
{
    const struct expectation expect = {.smact = reading_of(fmin(1, smact))};
    gpu_sharer_set(&sharers[(*n)++], &expect, SHARING_MPS, thread_percent);
}

/*
 * The activity of the clients together, once those that are starting compute. Those that do are
 * taken for one client; where there are none, the level is that of tasks that have ended.
 *
 * Example: seven clients do 85 % together, and one of 15 % is starting. They will do 91 %.
 */
static double predict_together(const struct placement_query *query, const struct gpu_view *gpu,
    double level, const struct activity_tally *tally)
{
    const struct interference_constants *constants = query->view->constants
                                                         ? query->view->constants
                                                         : &interference_measured;
    struct sharer sharers[GPU_SHARERS_MAX];
    double speeds[GPU_SHARERS_MAX];
    int n = 0;
    if (tally->n_measured > 0)
        add_client(sharers, &n, level, 0);
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        if (!resident->is_stopped && !is_measured(resident))
            add_client(sharers, &n, resident->expect.smact.value, resident->thread_percent);
    }
    interference_speeds_cached(constants, sharers, n, speeds);
    for (int i = 0; i < n; i++)
        sharers[i].speed = speeds[i];
    return interference_activity(constants, 1, 1, sharers, n).smact;
}

double starting_sum_activity(
    const struct placement_query *query, const struct gpu_view *gpu, double level)
{
    struct activity_tally tally = tally_activity(gpu);
    double mean = tally.n_measured ? level / tally.n_measured : 0;
    double sum = level + tally.known + tally.n_unknown * mean;
    bool are_known = tally.n_known > 0 && tally.n_unknown == 0 &&
                     query->conditions->smact_sum_max > 0;
    if (are_known && sum > query->conditions->smact_max && are_clients_alone(gpu))
        return predict_together(query, gpu, level, &tally);
    return sum;
}

/* ---- how many ---- */

/* In units of settle_max_us. Chosen: to wait for the activity makes such a wait a tenth longer. */
#define LONG_WAITS 10

static bool has_waited_long(const struct placement_query *query, const struct task *task)
{
    int64_t waited_us = task->waited_us + query->now_us - task->queued_us;
    return task->state == TASK_QUEUED && query->settings &&
           waited_us >= LONG_WAITS * query->settings->settle_max_us;
}

/* How many residents of unknown activity may be starting when the task has started. */
static struct verdict starting_limit(const struct placement_query *query)
{
    bool is_long = has_waited_long(query, query->task) ||
                   (query->head && has_waited_long(query, query->head));
    int most = query->conditions->starting_max;
    return is_long && most > 1 ? (struct verdict){.kind = VERDICT_START_LATE, .limit = 1}
                               : (struct verdict){.kind = VERDICT_STARTING, .limit = most};
}

/* Are so few residents of unknown activity starting that the task, of which it is not known either,
 * may start, too? Not inlined: mostly it is not asked. */
static __attribute__((noinline)) bool admits_unknown(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    int n_unknown = tally_activity(gpu).n_unknown;
    if (n_unknown == 0)
        return true;
    struct verdict verdict = starting_limit(query);
    verdict.have = n_unknown;
    return verdict.have < verdict.limit || refuse_task(ret_verdict, verdict);
}

bool starting_admits_beside(const struct placement_query *query, const struct gpu_view *gpu,
    bool predicts, struct verdict *ret_verdict)
{
    const struct resident *rising = memory_domain_is_shared(gpu)
                                        ? find_rising_in_domain(query, gpu, predicts)
                                        : find_rising_on(query, gpu, predicts);
    if (rising)
        return refuse_task(
            ret_verdict, (struct verdict){.kind = VERDICT_HOLD_OFF, .task = rising->task});
    bool adds_unknown = query->conditions->starting_max > 0 &&
                        !query->task->request.expect.smact.valid;
    return !adds_unknown || admits_unknown(query, gpu, ret_verdict);
}
