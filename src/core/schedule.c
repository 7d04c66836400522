/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scheduling pass.
 *
 * The recovery queue comes first: tasks that ran out of GPU memory, by submission. If the first of
 * them has to wait, as many GPUs as it wants are drained: no other task is placed there, so that
 * they become idle. Recovering tasks behind it are placed on other GPUs.
 *
 * Before it, allocations that wait for memory are answered (memory_answer.c), and tasks give way to
 * services that miss their latency targets, or are resumed (service.c). After it, suspended tasks
 * are resumed and tasks on GPUs that fail are moved away (yield.c). While a suspended task waits,
 * no task of the main queue starts.
 *
 * Then the main queue, by class of priority and in the order of main_queue.c: its head
 * (core_head_of_queue) is placed, and the next head, until one has to wait. All others then wait
 * behind it, so that no task starves. With the setting `backfill`, GPUs are reserved for the head,
 * and others may start where their policy sees that this does not delay it (policy/backfill.h has
 * the rules and an example). Tasks that take turns are suspended when their slot is over (slots.c).
 * If the head still has to wait, a running task may be moved to make room for it (make_room.c).
 *
 * A pass is bounded: the constants below limit how many tasks of a queue are tried.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/top_k.h"
#include "core/core_private.h"
#include "core/kind_match.h"
#include "core/node_choice.h"
#include "core/node_spread.h"
#include "core/sharing_choice.h"

/* Chosen, to keep a pass short: recovering tasks behind the first one that are tried in a pass. */
#define RECOVERY_TRIES_MAX 64
/* Chosen, likewise: verdicts on GPUs for all tasks that are tried for backfill in a pass. */
#define BACKFILL_VERDICTS_MAX (16 * CORE_BACKFILL_TRIES_MAX)
/* Chosen: tasks that are tried for backfill in a large cluster, too. */
#define BACKFILL_TRIES_MIN 8

const struct policy *core_task_policy(const struct core *core, const struct task *task)
{
    return task->request.policy ? task->request.policy : core->settings.policy;
}

/*
 * The free memory that a task needs on each GPU for its next attempt after it ran out of memory
 * (dissertation, section 7.2): the free memory at its start, or its estimate, and a step more for
 * every crash. Returns 0 when it needs GPUs without other tasks, as for the last attempt.
 */
static double recovery_free_bytes(const struct core *core, const struct task *task)
{
    const struct core_settings *settings = &core->settings;
    const struct need *need = &task->request.need;
    bool is_last = task->oom_count >= settings->recoveries_max;
    if (task->oom_count == 0 || is_last || !settings->recovery_step_bytes ||
        !task->run->free_bytes.valid)
        return 0;
    double before = task->run->free_bytes.value;
    if (need->kind >= NEED_ESTIMATED && (double)need->bytes > before)
        before = (double)need->bytes;
    return before + (double)settings->recovery_step_bytes * task->oom_count;
}

static bool recovers_alone(const struct core *core, const struct task *task)
{
    return task->oom_count > 0 && recovery_free_bytes(core, task) <= 0;
}

struct placement_query core_query(const struct core *core, const struct task *task, int64_t now_us)
{
    core_set_aside(core, task, now_us);
    const struct task *head = core->reserved_for ? core_find_task(core, core->reserved_for) : NULL;
    return (struct placement_query){
        .view = &core->view,
        .conditions = &core->settings.conditions,
        .settings = &core->settings,
        .task = task,
        .policy = core_task_policy(core, task),
        .head = head,
        .head_policy = head ? core_task_policy(core, head) : NULL,
        .outlooks = core->has_outlooks ? core->outlooks : NULL,
        .now_us = now_us,
        .idle_only = task->request.exclusive || recovers_alone(core, task) ||
                     core_task_policy(core, task)->exclusive_gpus,
        .recovery_free_bytes = recovery_free_bytes(core, task),
        .passes_reservation = task->queue && task->state != TASK_QUEUED,
        .node_check = core_node_check(core),
    };
}

bool core_wants_exclusive_gpus(const struct core *core, const struct task *task)
{
    return task->request.exclusive || core_task_policy(core, task)->exclusive_gpus ||
           (task->oom_count > 1 && recovers_alone(core, task));
}

int core_place_task(struct core *core, struct task *task, int64_t now_us)
{
    struct event event = {.kind = EVENT_PLACE, .time_us = now_us, .task = task->id};
    event.place.gpus = core->chosen;
    event.place.n = task->request.gpus;
    event.place.exclusive = core_wants_exclusive_gpus(core, task);
    event.place.share = sharing_choose(&core->settings, &core->view, task, core->chosen,
        task->request.gpus, event.place.exclusive);
    int r = core_decide(core, &event);
    for (int i = 0; i < task->n_gpus && r == 0; i++)
        r = core_record_external(core, task->gpus[i], now_us);
    return r < 0 ? r : core_add_effect(core, EFFECT_START, task->id, NULL);
}

static enum placement_answer try_gpus(
    struct core *core, const struct task *task, int64_t now_us, bool is_unexplained)
{
    struct placement_query query = core_query(core, task, now_us);
    query.is_unexplained = is_unexplained;
    struct verdict host = core_check_host_turn(core, task);
    if (host.kind != VERDICT_FITS) {
        for (int i = 0; i < core->view.n_gpus; i++)
            core->verdicts[i] = host;
        return PLACE_WAIT;
    }
    return node_choice_choose(core_task_policy(core, task), &query, core->chosen, core->verdicts);
}

enum placement_answer core_try_gpus(struct core *core, const struct task *task, int64_t now_us)
{
    return try_gpus(core, task, now_us, false);
}

/* Are there GPUs for the task now? Sets core->chosen as core_try_gpus does; core->verdicts are not
 * to be read. */
static bool finds_gpus(struct core *core, const struct task *task, int64_t now_us)
{
    return try_gpus(core, task, now_us, true) == PLACE_NOW;
}

/* Leaves an EFFECT_WAIT when the reasons have changed; their figures change all the time. */
static int report_wait(struct core *core, struct reported_wait *reported, const struct task *task)
{
    const uint64_t multiplier = 0x9e3779b97f4a7c15u; /* 2^64 / the golden ratio: mixes well */
    uint64_t reasons = 0;
    for (int i = 0; i < core->view.n_gpus; i++) { /* by words: base/hash.h goes by bytes */
        const struct verdict *verdict = &core->verdicts[i];
        reasons ^= verdict->task << 8 | (uint64_t)verdict->kind;
        reasons = (reasons << 32 | reasons >> 32) * multiplier;
    }
    if (reported->task == task->id && reported->reasons == reasons)
        return 0;
    *reported = (struct reported_wait){task->id, reasons};
    return core_add_effect(core, EFFECT_WAIT, task->id, NULL);
}

/* Can the GPU serve the task once its residents have left, as far as is known now? core_set_aside
 * has been called for the task. */
static bool can_serve(const struct core *core, int i, const struct task *task, int64_t now_us)
{
    const struct gpu_view *gpu = &core->view.gpus[i];
    const struct node_check *check = &core->node_check;
    return gpu->health == VIEW_OK &&
           now_us - gpu->sampled_us <= core->settings.conditions.sample_valid_us &&
           !gpu->set_aside_for && cluster_view_suits(&core->view, i, task) &&
           !(check->ask && check->ask(check->context, task, i) == NODE_NEVER);
}

static bool may_drain(const struct core *core, int i, const struct task *task, int64_t now_us)
{
    const struct gpu_view *gpu = &core->view.gpus[i];
    return !gpu_view_is_used_externally(gpu, core->settings.settle_us) &&
           can_serve(core, i, task, now_us);
}

struct drain_order {
    const struct gpu_view *gpus;
    bool prefers_drained; /* GPUs that are drained already come first */
};

/* The GPU that will probably be idle first: with fewer tasks, then with less memory in use. */
static bool drains_sooner(const void *a, const void *b, const void *context)
{
    const struct drain_order *order = context;
    const struct gpu_view *one = &order->gpus[*(const int *)a];
    const struct gpu_view *other = &order->gpus[*(const int *)b];
    if (order->prefers_drained && !one->drained_for != !other->drained_for)
        return one->drained_for;
    if (one->n_residents != other->n_residents)
        return one->n_residents < other->n_residents;
    return reading_assume(one->mem_used_bytes, 1e18) < reading_assume(other->mem_used_bytes, 1e18);
}

void core_release_reservation(struct core *core)
{
    for (int i = 0; i < core->view.n_gpus && core->reserved_for; i++) {
        core->view.gpus[i].reserved_for = 0;
        core->view.gpus[i].is_choice_of_head = false;
    }
    core->reserved_for = 0;
}

/* A recovering task takes reserved GPUs: others will be reserved for the head of the queue. */
static void release_reservation_of_chosen(struct core *core, const struct task *task)
{
    bool any = false;
    for (int i = 0; i < task->request.gpus; i++)
        any |= core->view.gpus[core->chosen[i]].reserved_for != 0;
    if (any)
        core_release_reservation(core);
}

/* The GPUs of one node that are drained soonest. Returns their number, at most the number that the
 * task requests. */
static size_t list_drainable(const struct core *core, const struct task *task, int first, int end,
    const struct drain_order *order, int64_t now_us, int *ret_gpus)
{
    size_t n = 0, wanted = (size_t)task->request.gpus;
    for (int i = first; i < end; i++)
        if (may_drain(core, i, task, now_us))
            n = top_k_insert(ret_gpus, n, wanted, sizeof *ret_gpus, &i, drains_sooner, order);
    return n;
}

/* The node with enough drainable GPUs whose slowest one is drained soonest: sets core->chosen.
 * Returns false when there is none. */
static bool choose_drained(
    struct core *core, const struct task *task, const struct drain_order *order, int64_t now_us)
{
    const struct cluster_view *view = &core->view;
    size_t wanted = (size_t)task->request.gpus;
    int best = -1, slowest = -1, listed = -1; /* first GPUs of nodes */
    for (int first = 0, end; first < view->n_gpus; first = end) {
        end = wanted > 1 ? cluster_view_node_end(view, first) : view->n_gpus;
        listed = first;
        if (list_drainable(core, task, first, end, order, now_us, core->chosen) < wanted)
            continue;
        int last = core->chosen[wanted - 1];
        if (best < 0 || drains_sooner(&last, &slowest, order)) {
            best = first;
            slowest = last;
        }
    }
    if (best < 0)
        return false;
    if (best != listed)
        list_drainable(
            core, task, best, cluster_view_node_end(view, best), order, now_us, core->chosen);
    return true;
}

/* Which GPUs of several nodes may be drained for a task: those with few enough residents. */
struct drainable {
    const struct core *core;
    const struct task *task;
    int residents_max;
    int64_t now_us;
};

static bool may_drain_for(const void *context, int gpu)
{
    const struct drainable *from = context;
    return from->core->view.gpus[gpu].n_residents <= from->residents_max &&
           may_drain(from->core, gpu, from->task, from->now_us);
}

/* The nodes and indices whose fullest GPU has the fewest residents: sets core->chosen. */
static bool choose_drained_over_nodes(struct core *core, const struct task *task, int64_t now_us)
{
    struct drainable from = {core, task, 0, now_us};
    int most = 0;
    for (int i = 0; i < core->view.n_gpus; i++)
        if (core->view.gpus[i].n_residents > most)
            most = core->view.gpus[i].n_residents;
    for (; from.residents_max <= most; from.residents_max++)
        if (node_spread_find(&core->view, &task->request, may_drain_for, &from, core->chosen))
            return true;
    return false;
}

/*
 * Drains as many GPUs as the task wants, so that it starts even when the main queue never runs dry.
 * The GPUs stay the same unless enough others are empty already. None is drained when too few could
 * be: GPUs must not be idle for nothing.
 */
static void drain_gpus(struct core *core, const struct task *task, int64_t now_us)
{
    int n_empty = 0, wanted = task->request.gpus;
    struct drain_order order = {.gpus = core->view.gpus};
    for (int i = 0; i < core->view.n_gpus; i++)
        n_empty += order.gpus[i].n_residents == 0 && may_drain(core, i, task, now_us);
    order.prefers_drained = n_empty < wanted;
    bool is_found = node_spread_is_wanted(&task->request)
                        ? choose_drained_over_nodes(core, task, now_us)
                        : choose_drained(core, task, &order, now_us);
    core_stop_draining(core);
    if (!is_found)
        return;
    for (int i = 0; i < wanted; i++)
        core->view.gpus[core->chosen[i]].drained_for = task->id;
    core->drained_for = task->id;
    release_reservation_of_chosen(core, task);
}

/* An upper bound of the GPUs that the tasks behind the first recovering one can take. */
static int count_open_gpus(const struct core *core)
{
    int n = 0;
    bool empty_only = !core->settings.recovery_step_bytes;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        n += !gpu->drained_for && (gpu->n_residents == 0 || !empty_only);
    }
    return n;
}

static int place_recovering(struct core *core, struct task *task, int64_t now_us)
{
    release_reservation_of_chosen(core, task);
    return core_place_task(core, task, now_us);
}

/* GPUs are drained for the first recovering task; those behind it may take others. */
static int schedule_first_recovering(struct core *core, struct task *task, int64_t now_us)
{
    if (core->drained_for != task->id)
        core_stop_draining(core);
    if (core_try_gpus(core, task, now_us) == PLACE_NOW)
        return place_recovering(core, task, now_us);
    int r = report_wait(core, &core->recovery_wait, task);
    drain_gpus(core, task, now_us);
    return r;
}

static int schedule_recovery(struct core *core, int64_t now_us)
{
    struct task *next;
    int r = 0, tries = RECOVERY_TRIES_MAX, n_open = 0;
    for (struct task *task = core->recovery_queue.first; task && r == 0; task = next) {
        next = task->next;
        if (task == core->recovery_queue.first)
            r = schedule_first_recovering(core, task, now_us);
        else if (tries-- == 0 || n_open == 0)
            return 0;
        else if (task->request.gpus > n_open || core_try_gpus(core, task, now_us) != PLACE_NOW)
            continue;
        else
            r = place_recovering(core, task, now_us);
        n_open = count_open_gpus(core);
    }
    return r;
}

/* ---- the main queue ---- */

int core_backfill_tries(const struct core *core)
{
    int tries = BACKFILL_VERDICTS_MAX / (core->view.n_gpus + 1);
    if (tries < BACKFILL_TRIES_MIN)
        return BACKFILL_TRIES_MIN;
    return tries < CORE_BACKFILL_TRIES_MAX ? tries : CORE_BACKFILL_TRIES_MAX;
}

bool core_backfills(const struct core *core, const struct task *head)
{
    return core->settings.backfill && core_task_policy(core, head)->reserve;
}

/* If it is not known when the head can start, any GPU that suits it, and is not kept from it by a
 * reservation in advance, may be the first to admit it.
 * (A policy that takes the longest task first has times, and takes that risk.) */
static bool may_get_any_gpu(const struct core *core, const struct task *head)
{
    return core->view.reservation_start_us == START_UNKNOWN &&
           !core_task_policy(core, head)->longest_first;
}

/* In a cluster the CPUs of a node are as scarce as its GPUs: a GPU is reserved with all others of
 * its node. */
static void reserve_whole_nodes(struct core *core, uint64_t id)
{
    struct gpu_view *gpus = core->view.gpus;
    for (int first = 0, end; first < core->view.n_gpus; first = end) {
        bool any = false;
        end = cluster_view_node_end(&core->view, first);
        for (int i = first; i < end; i++)
            any |= gpus[i].reserved_for == id;
        for (int i = first; i < end && any; i++)
            if (!gpus[i].set_aside_for)
                gpus[i].reserved_for = id;
    }
}

/* A task on a place that shares the memory of a reserved one would take that, too. */
static void reserve_whole_domains(struct core *core, uint64_t id)
{
    for (int i = 0; i < core->view.n_gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[i], *at = memory_domain_next(gpu);
        for (; gpu->is_choice_of_head && at != gpu; at = memory_domain_next(at))
            if (!at->set_aside_for)
                at->reserved_for = id;
    }
}

/* The value that a later sample is compared with (view_update.c). */
static void note_external_memory(struct core *core)
{
    for (int i = 0; i < core->view.n_gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[i];
        if (gpu->reserved_for)
            gpu->unaccounted_when_reserved = gpu_view_unaccounted_bytes(gpu);
    }
}

/* Can the GPUs that were chosen for the head still serve it? One may have failed or stopped
 * answering, or be kept from it by a reservation in advance. */
static bool does_choice_hold(const struct core *core, const struct task *head, int64_t now_us)
{
    int left = head->request.gpus;
    core_set_aside(core, head, now_us);
    for (int i = 0; i < core->view.n_gpus && left > 0; i++) {
        if (!core->view.gpus[i].is_choice_of_head)
            continue;
        if (!can_serve(core, i, head, now_us))
            return false;
        left--;
    }
    return true;
}

/* Chosen once for a head, since residents only leave the GPUs from then on; and again when the
 * choice does not hold, or after core_release_reservation (policy/backfill.h says when). Returns
 * whether GPUs are reserved. */
static bool reserve_gpus(struct core *core, const struct task *task, int64_t now_us)
{
    if (core->reserved_for == task->id && does_choice_hold(core, task, now_us))
        return true;
    core_release_reservation(core);
    struct placement_query query = core_query(core, task, now_us);
    if (!node_choice_reserve(
            core_task_policy(core, task), &query, core->chosen, &core->view.reservation_start_us))
        return false;
    for (int i = 0; i < task->request.gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[core->chosen[i]];
        gpu->reserved_for = task->id;
        gpu->is_choice_of_head = true;
    }
    for (int i = 0; i < core->view.n_gpus && may_get_any_gpu(core, task); i++)
        if (cluster_view_suits(&core->view, i, task) && !core->view.gpus[i].set_aside_for)
            core->view.gpus[i].reserved_for = task->id;
    if (core->node_check.ask)
        reserve_whole_nodes(core, task->id);
    reserve_whole_domains(core, task->id);
    note_external_memory(core);
    core->reserved_for = task->id;
    return true;
}

/* Settings and the number of CPUs may have changed since it was submitted. */
static bool has_host_for(const struct core *core, const struct task *task)
{
    return core_check_host_request(core, &task->request.host, NULL) == 0;
}

static bool are_enough_gpus(const struct core *core, const struct task *task, bool takes_set_aside)
{
    int n = 0;
    for (int i = 0; i < core->view.n_gpus && n < task->request.gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        n += gpu->health == VIEW_OK && cluster_view_suits(&core->view, i, task) &&
             (takes_set_aside || !gpu->set_aside_for);
    }
    return n == task->request.gpus;
}

bool core_can_be_served(const struct core *core, const struct task *task)
{
    return are_enough_gpus(core, task, true) && has_host_for(core, task);
}

bool core_waits_for_room(const struct core *core, const struct task *task)
{
    return are_enough_gpus(core, task, false);
}

/* A task that can never be served must not pass tasks submitted earlier, nor one of a lower class
 * those of a higher. */
static bool may_be_head(const struct core *core, const struct task *task)
{
    return task->request.priority == task->queue->first->request.priority &&
           task->request.need.kind != NEED_PENDING && core_task_policy(core, task)->longest_first &&
           core_can_be_served(core, task);
}

static bool comes_before(const struct core *core, const struct task *a, const struct task *b)
{
    bool is_urgent = core_is_urgent(core, a);
    if (core->plan.order)
        return queue_plan_is_before(&core->plan, a, b);
    if (is_urgent != core_is_urgent(core, b))
        return is_urgent;
    if (is_urgent)
        return a->latest_start_us < b->latest_start_us;
    return core_rank(core, a, 0) < core_rank(core, b, 0);
}

/* With preemption: the task of the smallest rank; of equal ones the oldest. The rank of a task
 * without an attempt does not depend on the time. */
static struct task *first_by_rank(const struct core *core)
{
    struct task *head = core_first_task(core), *task = head;
    if (head->passed_count >= CORE_PASSED_MAX)
        return head;
    for (int n = 0; task && n < CORE_QUEUE_DEPTH_MAX; task = task->next, n++)
        if (may_be_head(core, task) && comes_before(core, task, head))
            head = task;
    return head;
}

/* `head`: of known time. */
static bool takes_longer(const struct task *task, const struct task *head)
{
    const struct reading *time_us = &task->request.expect.time_us;
    return time_us->valid && time_us->value > head->request.expect.time_us.value;
}

/*
 * Of the queue that comes first (main_queue.c): its oldest task. With a policy that takes the
 * longest first, and backfill, the task that takes longest is the head: long tasks start early,
 * short ones fill the gaps. But the oldest task is the head if its time is not known, or
 * CORE_PASSED_MAX later tasks have started before it. Of equally long tasks the oldest is. (No task
 * behind the oldest was passed by more tasks than it.)
 */
struct task *core_head_of_queue(const struct core *core)
{
    struct task *head = core_first_task(core), *task = head;
    if (!head || !core_task_policy(core, head)->longest_first)
        return head;
    if (core->settings.preempt && core_task_policy(core, head)->rank)
        return first_by_rank(core);
    if (!core->settings.backfill || !head->request.expect.time_us.valid ||
        head->passed_count >= CORE_PASSED_MAX)
        return head;
    for (int n = 0; task && n < CORE_QUEUE_DEPTH_MAX; task = task->next, n++)
        if (takes_longer(task, head) && may_be_head(core, task))
            head = task;
    return head;
}

/* An unknown time counts as the longest. */
static double expected_us(const struct task *task)
{
    return reading_assume(task->request.expect.time_us, INFINITY);
}

/* How the tasks behind a head are ordered. */
struct backfill_order {
    const struct core *core;
    bool shortest_first;
};

/* The users in the order of their queues; of one user's tasks, the shortest first or the first of
 * the queue. */
static bool is_backfilled_sooner(const void *a, const void *b, const void *context)
{
    const struct backfill_order *order = context;
    const struct task *one = *(struct task *const *)a, *other = *(struct task *const *)b;
    if (one->queue != other->queue)
        return core_comes_before(order->core, one, other);
    return order->shortest_first && expected_us(one) < expected_us(other);
}

static int count_waiting_queues(const struct core *core)
{
    const struct task_queue *queue;
    int n = 0;
    for (int i = 0; (queue = core_main_queue(core, i)); i++)
        n += queue->first != NULL;
    return n;
}

/* The tasks behind `head` that are tried for backfill, in order. The shortest are looked for in an
 * equal part of CORE_QUEUE_DEPTH_MAX of each user's queue. Returns how many, at most `most`. */
static int list_behind(
    const struct core *core, const struct task *head, struct task **ret_tasks, int most)
{
    const struct task_queue *queue;
    const struct backfill_order order = {core, core_task_policy(core, head)->longest_first};
    size_t n = 0;
    int queues = count_waiting_queues(core); /* that of `head`, at least */
    int depth = order.shortest_first ? CORE_QUEUE_DEPTH_MAX / (queues > 0 ? queues : 1) : most + 1;
    for (int i = 0; (queue = core_main_queue(core, i)); i++) {
        int seen = depth ? 0 : -1;
        for (struct task *task = queue->first; task && seen < depth; task = task->next, seen++) {
            if (task == head || task->request.need.kind == NEED_PENDING)
                continue;
            if (n == (size_t)most && !order.shortest_first &&
                !is_backfilled_sooner(&task, &ret_tasks[n - 1], &order))
                break; /* nor do those behind it in its queue come before the last of the list */
            n = top_k_insert(
                ret_tasks, n, (size_t)most, sizeof *ret_tasks, &task, is_backfilled_sooner, &order);
        }
    }
    return (int)n;
}

static bool expects_the_same(const struct expectation *a, const struct expectation *b)
{
    return reading_equals(a->smact, b->smact) && reading_equals(a->gract, b->gract) &&
           reading_equals(a->dram, b->dram) && reading_equals(a->time_us, b->time_us);
}

/* Has a policy the same answer for both? Many tasks in a queue are alike, such as those of an
 * array: when one of them has to wait, so have the others. */
static bool asks_for_the_same(const struct task *a, const struct task *b)
{
    const struct task_request *x = &a->request, *y = &b->request;
    return a->uid == b->uid && x->gpus == y->gpus && x->nodes == y->nodes &&
           x->policy == y->policy && x->exclusive == y->exclusive && x->sharing == y->sharing &&
           x->thread_percent == y->thread_percent && x->need.kind == y->need.kind &&
           x->need.bytes == y->need.bytes && x->time_limit_us == y->time_limit_us &&
           x->host.cpus == y->host.cpus && x->host.memory_bytes == y->host.memory_bytes &&
           x->service.is_service == y->service.is_service &&
           a->possible_cause == b->possible_cause && a->mps_failures == b->mps_failures &&
           expects_the_same(&x->expect, &y->expect) && kind_match_same(x->gpu_kind, y->gpu_kind);
}

/* From now on, until core->has_outlooks is false again, what tasks behind the head have in common
 * is predicted once. To be called whenever the view has changed. */
static void begin_outlooks(struct core *core)
{
    memset(core->outlooks, 0, (size_t)core->view.n_gpus * sizeof *core->outlooks);
    core->has_outlooks = true;
}

static int place_behind(struct core *core, struct task *task, int64_t now_us)
{
    int r = core_place_task(core, task, now_us);
    begin_outlooks(core);
    return r;
}

/* The head was tried last. Does a task like it have to wait as well? Not where residents were
 * backfilled before the head: it leaves them the memory that they will still take, other tasks do
 * not (contract 5 of core/policy.h). And of several GPUs a policy may choose others where fewer are
 * open. */
static bool do_tasks_like_it_wait(const struct core *core, const struct task *head)
{
    return head->request.gpus == 1 && core->n_advances == 0 && head->n_backfilled == 0;
}

/* Tries these tasks in their order. One that is like the last that has to wait is not tried. */
static int try_behind(
    struct core *core, struct task *const *behind, int n, const struct task *head, int64_t now_us)
{
    int r = 0;
    const struct task *waits = do_tasks_like_it_wait(core, head) ? head : NULL;
    for (int i = 0; i < n && r == 0; i++) {
        bool is_alike = waits && !core->node_check.ask && asks_for_the_same(behind[i], waits);
        if (is_alike || core_leaves_host_to(core, behind[i], head))
            continue;
        if (finds_gpus(core, behind[i], now_us))
            r = place_behind(core, behind[i], now_us);
        else if (behind[i]->n_backfilled == 0) /* otherwise it was the head */
            waits = behind[i];
    }
    return r;
}

/* Places tasks behind the head, where their policies see that it is not delayed. They leave enough
 * CPUs and main memory for it. */
static int backfill_behind(struct core *core, const struct task *head, int64_t now_us)
{
    struct task *behind[CORE_BACKFILL_TRIES_MAX];
    if (!core_backfills(core, head) || !reserve_gpus(core, head, now_us))
        return core_pass_other_kinds(core, head, now_us);
    int n = list_behind(core, head, behind, core_backfill_tries(core));
    begin_outlooks(core);
    int r = try_behind(core, behind, n, head, now_us);
    core->has_outlooks = false;
    return r;
}

/* Would the head, which was tried last, start but for its server's power, which tasks draw?
 * Backfilled tasks would take of it, on whatever GPU they run: no GPU can be reserved for that. */
static bool lacks_power(const struct core *core, const struct task *head)
{
    int n_open = 0;
    bool waits = false, may_fall = false;
    if (!core->settings.conditions.server_power_max_w)
        return false;
    for (int i = 0; i < core->view.n_gpus; i++) {
        enum verdict_kind kind = core->verdicts[i].kind;
        n_open += kind == VERDICT_FITS || kind == VERDICT_SERVER_POWER;
        waits |= kind == VERDICT_SERVER_POWER;
        may_fall |= gpu_view_draws_for_tasks(&core->view.gpus[i], core->settings.settle_us);
    }
    return waits && may_fall && n_open >= head->request.gpus;
}

/* As core_try_gpus. In a cluster most tries place the head, and the reasons of a full one are many:
 * they are found when it has to wait. */
static enum placement_answer try_head(struct core *core, const struct task *head, int64_t now_us)
{
    bool is_found = core->view.has_nodes && finds_gpus(core, head, now_us);
    return is_found ? PLACE_NOW : core_try_gpus(core, head, now_us);
}

int core_schedule_main(struct core *core, int64_t now_us)
{
    struct task *head;
    int r = 0;
    core->head_lacks_power = false;
    while (r == 0 && (head = core_head_of_queue(core))) {
        if (head->queue->first->request.need.kind == NEED_PENDING)
            return 0;
        if (core->reserved_for != head->id)
            core_release_reservation(core);
        if (try_head(core, head, now_us) != PLACE_NOW) {
            r = report_wait(core, &core->main_wait, head);
            core->head_lacks_power = lacks_power(core, head);
            if (r < 0 || core->head_lacks_power)
                return r;
            r = core_fill_kept(core, head, now_us);
            return r < 0 ? r : backfill_behind(core, head, now_us);
        }
        r = core_place_task(core, head, now_us);
    }
    core_release_reservation(core);
    return r;
}

/* The suspended tasks, and the main queue if it does not wait for them. */
static int schedule_queues(struct core *core, int64_t now_us)
{
    bool suspended_waits = false;
    int r = core->suspended_queue.first ? core_schedule_suspended(core, now_us, &suspended_waits)
                                        : 0;
    if (r < 0 || suspended_waits)
        return r;
    return core_has_turns(core) ? core_schedule_turns(core, now_us)
                                : core_schedule_main(core, now_us);
}

int core_schedule(struct core *core, int64_t now_us)
{
    int r = core_settle_memory_waits(core, now_us);
    if (r == 0)
        r = core_schedule_services(core, now_us);
    if (r == 0)
        r = schedule_recovery(core, now_us);
    if (r == 0)
        r = core_empty_failing_gpus(core, now_us);
    if (r == 0)
        r = core_schedule_advances(core, now_us);
    if (r == 0)
        r = core->settings.preempt ? core_schedule_preempting(core, now_us)
                                   : schedule_queues(core, now_us);
    return r < 0 ? r : core_make_room(core, now_us);
}
