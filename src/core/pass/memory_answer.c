/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that wait for GPU memory, and which task gives way to them. A task whose allocation
 * finds too little free memory does not crash where the library that colloc preloads into it is at
 * work: the allocation waits in the process, and MEMORY_WAIT reports how much it wants. The first
 * of these rules that applies decides:
 *
 *   1. The task would hold more than its GPU has: the allocation fails at once.
 *   2. That much is free on its GPU, or how much is free is not known: the allocation is tried
 *      again, one on a GPU between two samples of it. Each time that the driver refuses it all the
 *      same, 256 MiB more have to be free, at most 1 GiB.
 *   3. A task on its GPU is ending, about to leave or to come back, or expected to end before it
 *      could be suspended and resumed: the allocation waits for it. One for which that takes far
 *      too long is not waited for: its driver may never answer, or its memory may be taken.
 *   4. Another GPU has enough memory for the waiting task: it is moved there.
 *   5. A task that waits there cannot be suspended, or would come back only to this GPU, as a
 *      client of MPS; its requirement is unknown, and it has just begun: it is ended and run
 *      again, and what it was seen to want is its requirement. Of several the youngest that holds
 *      memory: one that has none yet waits as long as another task has some. That is once for each
 *      task, only where tasks start beside others of unknown memory (policy/starting.c), and not
 *      where the next rule finds a task of lower priority, or one that does not use its GPUs: it
 *      corrects a wrong guess before that has cost much.
 *   6. A task on its GPU of no higher priority is suspended: one that has long not used its GPUs,
 *      which then stays suspended until it calls CUDA; one that waits itself, before one that
 *      computes; one of lower priority; one whose memory is enough, before one whose memory is
 *      not; then the one whose suspension and resumption cost least; of equals the youngest. It is
 *      resumed when enough memory is free again (suspended_pass.c). An older task that waits does
 *      not give way to a younger one. One of the same priority that computes does so only after
 *      the allocation has waited for as long as that costs, as it may end before: whenever it
 *      ends, the wait and the suspension take at most twice the better of the two. A task within
 *      its known requirement does not give way to one of the same priority that would hold more
 *      than its user declared; nor does one within its declared requirement to one of which
 *      nothing is declared. A task that gave way to memory computes for 20 times as long as that
 *      costs before it gives way to a task of the same user and priority again.
 *   7. All tasks on the GPU wait: the youngest is suspended until enough is free. Where it cannot
 *      be, as such clients, its allocation fails, unless an external process is there, which may
 *      give memory back; that task runs again when there is room.
 *   8. The task has its GPU to itself, or has had it for some seconds: nothing else can be freed
 *      there but contexts of suspended tasks, which leave if that is enough (context_pass.c). If
 *      not, the allocation fails.
 *   9. Otherwise the allocation waits until a task ends.
 *
 * An example. Tasks 1 and 2 share a GPU of 40 GiB and hold 20 and 18 GiB. Task 1 wants 6 GiB: 2 are
 * free. GPU 1 has 30 GiB free: task 1, which needs 26, is moved there (rule 4). Had it 20 GiB free,
 * task 2 would be suspended (rule 6), task 1 would get its memory, and task 2, which would fit on
 * GPU 1, would be resumed there.
 *
 * A process may only say that it lacks memory. So what its waits cost others is bounded by what it
 * takes: rules 4 and 6 apply to UNPAID_MAX waits of a task; to more of them after its GPU shows
 * that the task has grown by half of what it waited for.
 *
 * While an allocation waits, no other task is placed on its GPU. "On its GPU" means here: in its
 * memory domain (memory_domain.h).
 */
#include "core/pass/memory_answer.h"

#include <math.h>

#include "base/clock.h"
#include "core/ask/context_place.h"
#include "core/ask/copy_room.h"
#include "core/ask/giving_way.h"
#include "core/decide/effects.h"
#include "core/decide/give_way.h"
#include "core/memory_domain.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

static int answer_task(struct core *core, const struct task *task, bool is_granted, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus && is_granted; i++) {
        core->view.gpus[task->gpus[i]].granted_us = now_us;
        core->view.gpus[task->gpus[i]].claims[CLAIM_CLOSED] = task->id;
        core->any_wanted = true;
    }
    struct event event = {.kind = EVENT_MEMORY_ANSWER,
        .time_us = now_us,
        .task = task->id,
        .memory_granted = is_granted};
    int r = core_decide(core, &event);
    enum effect_kind effect = is_granted ? EFFECT_GRANT_MEMORY : EFFECT_DENY_MEMORY;
    return r < 0 ? r : core_add_effect(core, effect, task->id, NULL);
}

static double held_bytes(const struct gpu_view *gpu, const struct task *task)
{
    return reading_assume(gpu_view_resident(gpu, task->id)->mem_used_bytes, 0);
}

static double wanted_bytes(const struct core *core, const struct task *task)
{
    double most = 0;
    for (int i = 0; i < task->n_gpus; i++) {
        double held = held_bytes(&core->view.gpus[task->gpus[i]], task);
        most = held > most ? held : most;
    }
    return most + (double)task->run->memory_wait.bytes;
}

/* Rule 1. */
static bool is_beyond_gpu(const struct core *core, const struct task *task)
{
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        if (held_bytes(gpu, task) + (double)task->run->memory_wait.bytes >
            (double)gpu->id.mem_total_bytes)
            return true;
    }
    return false;
}

/* Rule 2. The GPU of the allocation is unknown if the task has several: all must have that much. */
static bool is_free(const struct core *core, const struct task *task)
{
    double enough = memory_wait_enough_bytes(&task->run->memory_wait);
    for (int i = 0; i < task->n_gpus; i++) {
        struct reading free_bytes = gpu_view_free_bytes(&core->view.gpus[task->gpus[i]]);
        if (free_bytes.valid && free_bytes.value < enough)
            return false;
    }
    return true;
}

/* Has the GPU been sampled since a task came to its memory or left it, or an allocation there was
 * granted? */
static bool is_gpu_sampled(const struct gpu_view *gpu)
{
    const struct gpu_view *at = gpu;
    do {
        bool is_granted = at->granted_us && gpu->sampled_us <= at->granted_us;
        if (gpu->sampled_us < at->mix_since_us || is_granted)
            return false;
        at = memory_domain_next(at);
    } while (at != gpu);
    return true;
}

static bool is_sampled(const struct core *core, const struct task *task)
{
    for (int i = 0; i < task->n_gpus; i++)
        if (!is_gpu_sampled(&core->view.gpus[task->gpus[i]]))
            return false;
    return true;
}

/* ---- rule 3 ---- */

/* Returns how much longer the task runs; an unknown time counts as endless. */
static int64_t rest_us(const struct task *task, int64_t now_us)
{
    return task->request.expect.time_us.valid ? task_rest_us(task, now_us) : TIME_NEVER;
}

/* Chosen: a call of the task may be in flight for 30 s, and the driver waits for 10 s. */
#define CHANGING_MAX_US (40 * SECOND_US)

/* Is it about to leave or to come back, and has it been for longer than that takes? */
static bool is_changing_late(const struct core *core, const struct task *task, int64_t now_us)
{
    int64_t max_us = CHANGING_MAX_US + 2 * core_yield_cost_us(core, task);
    return task_state_is_changing(task->state) && now_us - task->run->yield.ordered_us > max_us;
}

static bool leaves_soon(const struct core *core, const struct task *task, int64_t now_us)
{
    if (task_state_is_changing(task->state) || task->state == TASK_ENDING)
        return !is_changing_late(core, task, now_us);
    bool computes = task->state == TASK_RUNNING && !task->run->memory_wait.bytes;
    int64_t rest = rest_us(task, now_us);
    return computes && rest > 0 && rest <= core_yield_cost_us(core, task);
}

static bool is_free_soon(const struct core *core, const struct task *task, int64_t now_us)
{
    const struct resident *resident;
    for (int i = 0; i < task->n_gpus; i++) {
        struct domain_walk walk = memory_domain_walk(&core->view.gpus[task->gpus[i]]);
        while ((resident = memory_domain_resident(&walk)))
            if (resident->task != task->id &&
                leaves_soon(core, core_find_task(core, resident->task), now_us))
                return true;
    }
    return false;
}

/* ---- what a wait may cost others ---- */

/* Chosen: once more than needed, as the memory may have gone to an external process meanwhile. */
enum { UNPAID_MAX = 2 };

static double most_held_bytes(const struct core *core, const struct task *task)
{
    return wanted_bytes(core, task) - (double)task->run->memory_wait.bytes;
}

/* Has the task taken memory after what was done for it before? A driver of NVIDIA's that does not
 * report its memory shows no growth. */
static bool is_believed(struct core *core, const struct task *task)
{
    struct memory_wait *wait = &core_find_task(core, task->id)->run->memory_wait;
    if (wait->n_unpaid && most_held_bytes(core, task) >= (double)wait->paid_at_bytes)
        wait->n_unpaid = 0;
    bool is_counted = wait->n_unpaid && wait->unpaid_since_us == wait->since_us;
    return is_counted || wait->n_unpaid < UNPAID_MAX;
}

static void note_unpaid(struct core *core, const struct task *task)
{
    struct memory_wait *wait = &core_find_task(core, task->id)->run->memory_wait;
    wait->n_unpaid += !wait->n_unpaid || wait->unpaid_since_us != wait->since_us;
    wait->unpaid_since_us = wait->since_us;
    wait->paid_at_bytes = (int64_t)most_held_bytes(core, task) + (wait->bytes + 1) / 2;
}

/* ---- what is held ---- */

/* The processes are listed, and none is its: it has not come to its context yet. */
static bool holds_nothing(const struct gpu_view *gpu, const struct resident *resident)
{
    return gpu->external_processes.valid && resident->hooked + resident->unhooked == 0 &&
           reading_assume(resident->mem_used_bytes, 0) <= 0;
}

/* Is a task of the domain known to hold memory? */
static bool is_any_held(const struct gpu_view *gpu)
{
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk)))
        if (!holds_nothing(gpu, resident))
            return true;
    return false;
}

/* ---- rule 4 ---- */

static bool move_to_room(struct core *core, const struct task *task, int64_t now_us, int *ret_r)
{
    bool may_move = task->n_gpus == 1 && core_may_suspend(core, task, now_us);
    int gpu = may_move ? core_find_destination(core, task, wanted_bytes(core, task), now_us) : -1;
    if (gpu < 0)
        return false;
    note_unpaid(core, task);
    *ret_r = core_move_task(
        core, task, &gpu, reading_of(wanted_bytes(core, task)), YIELD_TO_MEMORY, task->id, now_us);
    return true;
}

/* ---- rule 5 ---- */

/* Chosen: in that time frameworks are imported and the first steps take their memory; to compute
 * them again costs little beside waiting for the end of another training. */
#define JUST_BEGUN_US (120 * SECOND_US)

static bool may_run_again(const struct core *core, const struct task *task, int64_t now_us)
{
    const struct task_request *request = &task->request;
    bool goes_elsewhere = core_may_suspend(core, task, now_us) && !core_keeps_contexts(task);
    return core->settings.conditions.starting_max > 0 && request->need.kind == NEED_UNKNOWN &&
           task->run->memory_wait.bytes && !request->once && !request->service.is_service &&
           !task->ending && task->state == TASK_RUNNING &&
           task_computed_us(task, now_us) < JUST_BEGUN_US && !goes_elsewhere;
}

/* The youngest task on the GPUs of the waiting one that may run again, where others are there, too;
 * NULL: none. */
static const struct task *find_beginner(
    const struct core *core, const struct task *waiting, int64_t now_us)
{
    const struct task *youngest = NULL;
    int n_others = 0;
    const struct resident *resident;
    for (int i = 0; i < waiting->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[waiting->gpus[i]];
        struct domain_walk walk = memory_domain_walk(gpu);
        bool any_held = is_any_held(gpu);
        n_others += memory_domain_has_external(gpu);
        while ((resident = memory_domain_resident(&walk))) {
            const struct task *task = core_find_task(core, resident->task);
            n_others += task != waiting;
            if (may_run_again(core, task, now_us) && !(any_held && holds_nothing(gpu, resident)) &&
                (!youngest || task->id > youngest->id))
                youngest = task;
        }
    }
    return n_others > 0 ? youngest : NULL;
}

static int run_again(struct core *core, const struct task *task, int64_t now_us)
{
    double most = INFINITY, least = wanted_bytes(core, task);
    for (int i = 0; i < task->n_gpus; i++) /* each GPU must be large enough for it */
        most = fmin(most, (double)core->view.gpus[task->gpus[i]].id.mem_total_bytes);
    struct event event = {.kind = EVENT_RUN_AGAIN,
        .time_us = now_us,
        .task = task->id,
        .run_again_bytes = (int64_t)fmin(least, most)};
    int r = core_decide(core, &event);
    return r < 0 ? r : core_kill_task(core, task);
}

/* ---- rules 6 and 7 ---- */

struct candidate {
    const struct task *task;
    bool is_inactive, waits, is_enough;
    int64_t cost_us;
};

static bool gives_way_before(const struct candidate *a, const struct candidate *b)
{
    if (!b->task)
        return true;
    if (a->is_inactive != b->is_inactive)
        return a->is_inactive;
    if (a->waits != b->waits)
        return a->waits;
    if (a->task->request.priority != b->task->request.priority)
        return a->task->request.priority < b->task->request.priority;
    if (a->is_enough != b->is_enough)
        return a->is_enough;
    if (a->cost_us != b->cost_us)
        return a->cost_us < b->cost_us;
    return a->task->id > b->task->id;
}

/* The task's known requirement, and the margin. */
static double promised_bytes(const struct core *core, const struct task *task)
{
    return (double)task->request.need.bytes + (double)core->settings.conditions.margin_bytes;
}

/* Would it hold more than its user declared? */
static bool is_beyond_declared(const struct core *core, const struct task *task)
{
    return task->request.need.kind == NEED_DECLARED &&
           wanted_bytes(core, task) > promised_bytes(core, task);
}

/* Is the requirement known, and not known to be exceeded? */
static bool keeps_requirement(
    const struct core *core, const struct task *task, const struct resident *resident)
{
    struct reading used = resident->mem_used_bytes;
    return task->request.need.kind >= NEED_ESTIMATED &&
           !(used.valid && used.value > promised_bytes(core, task));
}

/* Does the resident keep its memory because it has been promised more than the waiting task? A task
 * that declares too little, or nothing, starts soon, and would then take the GPU from others. */
static bool is_safe_from(const struct core *core, const struct task *task,
    const struct resident *resident, const struct task *to)
{
    bool is_declared = task->request.need.kind == NEED_DECLARED;
    bool to_declared = to->request.need.kind == NEED_DECLARED;
    return task->request.priority == to->request.priority &&
           keeps_requirement(core, task, resident) &&
           (is_beyond_declared(core, to) || (is_declared && !to_declared));
}

/* Was it stopped for memory by that user before, and has it computed too short a time since? */
static bool has_just_given_way(
    const struct core *core, const struct task *task, const struct task *to, int64_t now_us)
{
    const struct task_yield *yield = &task->run->yield;
    const struct task *before = core_find_task(core, yield->to_task);
    bool is_by_user = !before || before->uid == to->uid;
    return task->request.priority == to->request.priority && is_by_user &&
           yield->reason == YIELD_TO_MEMORY && yield->resumed_us &&
           now_us - yield->resumed_us < CORE_RUN_PER_COST * core_yield_cost_us(core, task);
}

/* Has the allocation waited for as long as it costs to stop a task that computes? */
static bool is_worth_its_cost(
    const struct core *core, const struct task *task, const struct task *to, int64_t now_us)
{
    return task->run->memory_wait.bytes || core_is_inactive(core, task) ||
           task->request.priority < to->request.priority ||
           now_us - to->run->memory_wait.since_us >= core_yield_cost_us(core, task);
}

/* May the task give way to the waiting one? */
static bool may_give_way(
    const struct core *core, const struct task *task, const struct task *to, int64_t now_us)
{
    bool is_older = task->id < to->id && task->run->memory_wait.bytes;
    bool is_higher = task->request.priority > to->request.priority;
    return task != to && !is_older && !is_higher && task->state == TASK_RUNNING && !task->ending &&
           core_may_suspend(core, task, now_us) && !has_just_given_way(core, task, to, now_us) &&
           is_worth_its_cost(core, task, to, now_us);
}

/* The task on one of the GPUs that gives way to the waiting one, or NULL. */
static const struct task *find_candidate(
    const struct core *core, const struct task *to, int64_t now_us)
{
    struct candidate best = {0};
    const struct resident *resident;
    for (int i = 0; i < to->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[to->gpus[i]];
        double free_bytes = reading_assume(gpu_view_free_bytes(gpu), 0);
        double lacking = (double)to->run->memory_wait.bytes - free_bytes;
        struct domain_walk walk = memory_domain_walk(gpu);
        while ((resident = memory_domain_resident(&walk))) {
            const struct task *task = core_find_task(core, resident->task);
            struct candidate each = {task, core_is_inactive(core, task),
                task->run->memory_wait.bytes > 0,
                core_freed_bytes(task, reading_assume(resident->mem_used_bytes, 0)) >= lacking,
                core_yield_cost_us(core, task)};
            if (!holds_nothing(gpu, resident) && !is_safe_from(core, task, resident, to) &&
                may_give_way(core, task, to, now_us) && gives_way_before(&each, &best))
                best = each;
        }
    }
    return best.task;
}

/* Does the task give way rather than that one which has just begun is run again? */
static bool yields_rather(const struct core *core, const struct task *task, const struct task *to)
{
    return task && (task->request.priority < to->request.priority || core_is_inactive(core, task));
}

static int stop_for(
    struct core *core, const struct task *yielding, const struct task *to, int64_t now_us)
{
    bool is_inactive = core_is_inactive(core, yielding);
    note_unpaid(core, to);
    return core_stop_task(
        core, yielding, is_inactive ? YIELD_UNUSED : YIELD_TO_MEMORY, to->id, now_us);
}

static bool has_external(const struct core *core, const struct task *task)
{
    bool has = false;
    for (int i = 0; i < task->n_gpus; i++)
        has |= memory_domain_has_external(&core->view.gpus[task->gpus[i]]);
    return has;
}

/* Is the task the youngest of those on its GPUs that may go on, all of which wait? Of those that
 * hold memory, where one does. */
static bool is_youngest_of_all_waiting(
    const struct core *core, const struct task *task, int64_t now_us)
{
    int n_others = 0;
    const struct resident *resident;
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        struct domain_walk walk = memory_domain_walk(gpu);
        bool any_held = is_any_held(gpu);
        if (any_held && holds_nothing(gpu, gpu_view_resident(gpu, task->id)))
            return false;
        while ((resident = memory_domain_resident(&walk))) {
            const struct task *other = core_find_task(core, resident->task);
            bool is_late = is_changing_late(core, other, now_us);
            bool is_younger = other->id > task->id && !(any_held && holds_nothing(gpu, resident));
            if (!is_late && (!other->run->memory_wait.bytes || is_younger))
                return false;
            n_others += other != task;
        }
    }
    return n_others > 0;
}

/* ---- rule 8 ---- */

/* Chosen: the memory of a task that has just ended is free within that time, and sampled. */
#define ALONE_SURE_US (3 * SECOND_US)

static bool is_alone_on(const struct gpu_view *gpu, int64_t now_us)
{
    const struct gpu_view *at = gpu;
    do {
        if (at->n_residents != (at == gpu) || !at->external_processes.valid ||
            at->external_processes.value != 0 || now_us - at->mix_since_us < ALONE_SURE_US)
            return false;
        at = memory_domain_next(at);
    } while (at != gpu);
    return true;
}

/* An exclusive task has shared its GPUs with none that could still be leaving. */
static bool is_surely_alone(const struct core *core, const struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++)
        if (!is_alone_on(&core->view.gpus[task->gpus[i]], now_us))
            return false;
    return task->exclusive || now_us - task->run->memory_wait.since_us >= ALONE_SURE_US;
}

/* Contexts of suspended tasks leave its GPU for it (context_pass.c). */
static bool awaits_contexts(const struct core *core, const struct task *task, int64_t now_us)
{
    const struct gpu_view *gpu = &core->view.gpus[task->gpus[0]];
    double free_bytes = reading_assume(gpu_view_free_bytes(gpu), 0);
    return task->n_gpus == 1 && gpu->n_residents == 1 &&
           free_bytes + core_leavable_bytes(core, gpu, CONTEXT_FOR_WAIT, now_us) >=
               memory_wait_enough_bytes(&task->run->memory_wait);
}

/* ---- all rules ---- */

static int settle_wait(struct core *core, const struct task *task, int64_t now_us)
{
    int r = 0;
    if (is_beyond_gpu(core, task))
        return answer_task(core, task, false, now_us);
    if (!is_sampled(core, task))
        return 0;
    if (is_free(core, task))
        return answer_task(core, task, true, now_us);
    bool is_granted_more = is_believed(core, task);
    if (is_free_soon(core, task, now_us) ||
        (is_granted_more && move_to_room(core, task, now_us, &r)))
        return r;
    const struct task *yielding = is_granted_more ? find_candidate(core, task, now_us) : NULL;
    const struct task *beginner = yields_rather(core, yielding, task)
                                      ? NULL
                                      : find_beginner(core, task, now_us);
    if (beginner) /* another one may get its memory after all: its own turn comes */
        return beginner == task ? run_again(core, task, now_us) : 0;
    if (yielding)
        return stop_for(core, yielding, task, now_us);
    bool is_youngest = is_youngest_of_all_waiting(core, task, now_us);
    if (is_youngest && core_may_suspend(core, task, now_us))
        return core_stop_task(core, task, YIELD_TO_MEMORY, task->id, now_us);
    bool fails = (is_youngest && !has_external(core, task)) ||
                 (is_surely_alone(core, task, now_us) && !awaits_contexts(core, task, now_us));
    return fails ? answer_task(core, task, false, now_us) : 0;
}

/* No other task is placed on the GPUs of a task that waits, or whose new memory no sample shows
 * yet. */
static void mark_wanted(struct core *core)
{
    core->any_wanted = core->n_memory_waits > 0;
    for (int i = 0; i < core->view.n_gpus; i++) {
        struct gpu_view *gpu = &core->view.gpus[i];
        const struct resident *resident = gpu_view_resident(gpu, gpu->claims[CLAIM_CLOSED]);
        bool is_leaving = resident && resident->is_stopped;
        bool is_stale = resident && gpu->granted_us >= gpu->sampled_us;
        if (!is_leaving && !is_stale)
            gpu->claims[CLAIM_CLOSED] = 0;
        core->any_wanted |= is_stale;
    }
    for (int i = 0; i < core->n_tasks && core->any_wanted; i++) {
        const struct task *task = core->tasks[i];
        for (int k = 0; k < task->n_gpus && task->run->memory_wait.bytes; k++) {
            struct gpu_view *gpu = &core->view.gpus[task->gpus[k]];
            if (!gpu->claims[CLAIM_CLOSED])
                gpu->claims[CLAIM_CLOSED] = task->id;
        }
    }
}

int core_settle_memory_waits(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->n_tasks && core->n_memory_waits && r == 0; i++) {
        const struct task *task = core->tasks[i];
        bool waits = task->run->memory_wait.bytes && !task->run->memory_wait.is_unconfirmed;
        if (waits && task->state == TASK_RUNNING)
            r = settle_wait(core, task, now_us);
    }
    if (core->n_memory_waits || core->any_wanted)
        mark_wanted(core);
    return r;
}
