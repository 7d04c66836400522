/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can a running task give way: can it be suspended, or moved to another GPU, and what does that
 * cost? A client of MPS is suspended by the carrier alone: its context stays, so it is never moved.
 *
 * A user's command is checked by the same functions as the core's own decisions. They differ in one
 * thing: a user may ask for what the core would not do, such as to suspend a service.
 *
 * Whoever asks for a move, the task's policy has to admit the task on the new GPU, as for a start:
 * reservations, drains and the limits of a GPU hold for all ways onto it.
 */
#include "core/ask/giving_way.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ask/context_place.h"
#include "core/ask/placement.h"
#include "core/questions.h"
#include "core/state/residents.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* ---- what NVIDIA's driver and the carrier can do ---- */

static bool is_on_instance(const struct core *core, const struct task *task)
{
    return *cluster_view_instance_of(&core->view, task);
}

static bool is_same_model(const struct core *core, int a, int b)
{
    return strcmp(core->view.gpus[a].id.name, core->view.gpus[b].id.name) == 0;
}

static bool is_on_several_models(const struct core *core, const struct task *task)
{
    for (int i = 1; i < task->n_gpus; i++)
        if (!is_same_model(core, task->gpus[0], task->gpus[i]))
            return true;
    return false;
}

static bool is_mps_client(const struct task *task)
{
    return task->run->share.sharing == SHARING_MPS;
}

/* The processes of a task on its GPUs, as last listed. */
struct processes {
    int n, carried; /* all; those whose memory the carrier can take away */
};

static struct processes list_processes(const struct core *core, const struct task *task)
{
    struct processes listed = {0};
    for (int i = 0; i < task->n_gpus; i++) {
        const struct resident *on = gpu_view_resident(&core->view.gpus[task->gpus[i]], task->id);
        listed.n += on ? on->hooked + on->unhooked : 0;
        listed.carried += on ? on->carried : 0;
    }
    return listed;
}

/* Does the carrier take the task's memory, or the driver? The carrier has to be able to take all of
 * its processes. Until the first is listed, seconds after a start or a resumption, it is expected
 * to. */
static bool is_carried(const struct core *core, struct processes listed)
{
    return core->settings.carries_mps && listed.carried == listed.n;
}

/* The carrier has to take away the memory of all its processes: the driver takes none of them. What
 * has come back, and no sample has listed since, it has taken away before. */
static bool are_clients_carried(const struct core *core, const struct task *task)
{
    struct processes listed = list_processes(core, task);
    return is_carried(core, listed) && (listed.n > 0 || task->run->yield.context_bytes.valid);
}

/* NVIDIA's driver refuses clients of MPS and processes on MIG instances, and puts a process back
 * only on GPUs of the model that each was: a task on several models would have to wait for
 * those. */
bool core_can_suspend(const struct core *core, const struct task *task)
{
    return core->settings.can_suspend && !task->run->yield.cannot_suspend &&
           task->request.nodes <= 1 && /* ranks on other machines would wait for it */
           (!is_mps_client(task) || are_clients_carried(core, task)) &&
           !is_on_instance(core, task) && !is_on_several_models(core, task);
}

/* The context of a client of MPS stays on its GPU, to which its memory comes back. */
static bool can_move(const struct core *core, const struct task *task)
{
    return core_can_suspend(core, task) && !is_mps_client(task) && !core->settings.stays_on_gpus;
}

bool core_is_inactive(const struct core *core, const struct task *task)
{
    for (int i = 0; i < task->n_gpus; i++)
        if (!gpu_view_resident(&core->view.gpus[task->gpus[i]], task->id)->is_inactive)
            return false;
    return task->n_gpus > 0;
}

/* The GPU memory that the running task holds or needs on each GPU. Not valid: neither is known. */
struct reading core_bytes_of(const struct core *core, const struct task *task)
{
    struct reading most = READING_NONE;
    if (task->request.need.kind >= NEED_ESTIMATED)
        most = reading_of((double)task->request.need.bytes);
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        struct reading used = gpu_view_resident(gpu, task->id)->mem_used_bytes;
        if (used.valid && (!most.valid || used.value > most.value))
            most = used;
    }
    return most;
}

bool core_keeps_contexts(const struct task *task)
{
    return is_mps_client(task) || task->run->yield.context_bytes.valid;
}

static double without_context(const struct task *task, double used_bytes)
{
    double context = reading_assume(task->run->yield.context_bytes, SUSPENSION_CONTEXT_BYTES);
    return fmax(0, used_bytes - context);
}

double core_freed_bytes(const struct task *task, double used_bytes)
{
    return core_keeps_contexts(task) ? without_context(task, used_bytes) : used_bytes;
}

/* By which way its memory goes to the host. Whether a neighbour lends memory is known only when it
 * is stopped; a slot or a wait counts on the longer time. */
static enum suspension_way way_of(const struct core *core, const struct task *task)
{
    bool carried = is_carried(core, list_processes(core, task));
    return carried ? SUSPENSION_BY_CARRIER : SUSPENSION_BY_DRIVER;
}

/* What is on several GPUs is taken for ranks until it has been suspended: then it is known. The
 * carrier takes their memory, and the driver nothing. */
static bool is_taken_for_ranks(const struct task *task, enum suspension_way way)
{
    return way == SUSPENSION_BY_CARRIER && core_may_be_ranks(task) &&
           task->run->yield.suspensions == 0;
}

int64_t core_yield_cost_us(const struct core *core, const struct task *task)
{
    enum suspension_way way = way_of(core, task);
    double used = reading_assume(core_bytes_of(core, task), 0);
    bool context_stays = core_keeps_contexts(task) || core_context_may_stay(core, task);
    double bytes = context_stays ? without_context(task, used) : used;
    int64_t most_us = 0;
    for (int i = 0; i < task->n_gpus || i == 0; i++) { /* its GPUs copy at the same time */
        struct suspension_cost cost = *core_stop_cost(core, task->n_gpus ? task->gpus[i] : -1, way);
        if (context_stays || is_taken_for_ranks(task, way))
            cost = suspension_cost_of_client(&cost);
        int64_t us = suspension_stop_us(&cost, bytes);
        most_us = us > most_us ? us : most_us;
    }
    return most_us;
}

int64_t core_rested_us(const struct core *core, const struct task *task)
{
    bool was_stopped = task->run->yield.suspensions + task->run->yield.pauses > 0;
    bool costs_time = was_stopped && core_can_suspend(core, task); /* a pause costs none */
    return task_runs_since_us(task) +
           (costs_time ? CORE_RUN_PER_COST * core_yield_cost_us(core, task) : 0);
}

/* Chosen: longer than a step of a training takes. */
#define RANKS_RUN_US (60 * SECOND_US)

bool core_may_pause(const struct core *core, const struct task *task, int64_t now_us)
{
    bool has_rested = !core_may_be_ranks(task) || task->run->yield.pauses == 0 ||
                      now_us - task_runs_since_us(task) >= RANKS_RUN_US;
    return core->settings.can_pause && !task->run->yield.cannot_pause && has_rested;
}

/* ---- a user's commands ---- */

static int check_running(
    const struct task *task, uint64_t id, const char *what, struct fault *fault)
{
    if (!task)
        return fault_set(fault, ENOENT, "there is no task %" PRIu64, id);
    if (task->state != TASK_RUNNING || task->ending)
        return fault_set(fault, EBUSY, "task %s is %s: only a running task can be %s",
            task_label(task).text, task_state_name(task->state), what);
    return 0;
}

/* Why the client of MPS is not suspended, where the server suspends tasks. Returns `text`. */
static const char *why_client_stays(
    const struct core *core, const struct task *task, char *text, size_t size)
{
    struct processes clients = list_processes(core, task);
    if (!core->settings.carries_mps)
        snprintf(text, size,
            "it is a client of MPS, which the driver cannot suspend, and the "
            "setting carrier is off");
    else if (clients.n == 0)
        snprintf(text, size, "it is a client of MPS, and no process of it has GPU memory yet");
    else
        snprintf(text, size,
            "it is a client of MPS, and the carrier can take the memory of %d of "
            "its %d process%s (`colloc show` says why)",
            clients.carried, clients.n, clients.n > 1 ? "es" : "");
    return text;
}

static int refuse_suspension(
    const struct core *core, const struct task *task, const char *what, struct fault *fault)
{
    char text[192];
    const char *why = is_mps_client(task) ? "that has failed before"
                                          : "the driver refused to suspend it before";
    if (!core->settings.can_suspend)
        why = "this server cannot suspend tasks (`colloc doctor` says why)";
    else if (task->request.nodes > 1)
        why = "it runs on several nodes, whose processes cannot be stopped together";
    else if (core->settings.stays_on_gpus && core_can_suspend(core, task))
        why = "it is bound to its GPUs";
    else if (is_mps_client(task) && core_can_suspend(core, task))
        why = "it is a client of MPS, whose context stays on its GPU";
    else if (is_mps_client(task) && !are_clients_carried(core, task))
        why = why_client_stays(core, task, text, sizeof text);
    else if (is_on_instance(core, task))
        why = "it runs on a MIG instance, from which the driver cannot take it";
    else if (is_on_several_models(core, task))
        why = "its GPUs are of several models, and the driver puts a process back only on the same";
    return fault_set(fault, ENOTSUP, "task %s cannot be %s: %s", task_label(task).text, what, why);
}

int core_check_suspend(const struct core *core, uint64_t id, struct fault *fault)
{
    const struct task *task = core_find_task(core, id);
    bool is_stopped = task && !task->ending && !task->run->yield.by_user &&
                      (task->state == TASK_PAUSED || task->state == TASK_SUSPENDING ||
                          task->state == TASK_SUSPENDED);
    if (task && task->request.gpus == 0)
        return fault_set(
            fault, EINVAL, "task %s has no GPU, and is never suspended", task_label(task).text);
    int r = is_stopped ? 0 : check_running(task, id, "suspended", fault);
    if (r < 0 || is_stopped || core_can_suspend(core, task) || core->settings.can_pause)
        return r;
    return refuse_suspension(core, task, "suspended", fault);
}

/* What residents will take that have not risen, as far as is known. What was not seen has not been
 * taken: unlike admission, where it is taken to be there after settle_max_us
 * (resident_outstanding_bytes), a move must not be wrong. NVIDIA's driver loses a process that
 * finds too little memory. */
static double promised_bytes(const struct gpu_view *gpu)
{
    double bytes = 0;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        if (!residence_has_risen(resident->residence))
            bytes += fmax(0, reading_assume(resident->need_bytes, 0) -
                                 reading_assume(resident->mem_used_bytes, 0));
    }
    return bytes;
}

/* The obstacle to moving the task to the GPU; NULL: none. */
static const char *why_not_moved(const struct core *core, const struct task *task, int to)
{
    const struct gpu_view *gpu = &core->view.gpus[to];
    struct reading bytes = core_bytes_of(core, task), free_bytes = gpu_view_free_bytes(gpu);
    if (!gpu->id.is_place || gpu->id.is_mig_instance)
        return "it is divided into MIG instances";
    if (gpu->health != VIEW_OK)
        return "it is lost, faulty or out of use";
    if (!is_same_model(core, task->gpus[0], to))
        return "it is of another model, on which the driver puts no process back";
    if (gpu_view_resident(gpu, task->id))
        return NULL;
    if (gpu->claims[CLAIM_EXCLUSIVE] || (task->exclusive && gpu->n_residents))
        return "one of the two tasks has its GPU to itself";
    if (gpu->id.one_process && gpu->n_residents)
        return "its compute mode admits one process";
    if (!bytes.valid && !gpu_view_is_idle(gpu))
        return "how much memory the task holds is not known, and the GPU is not idle";
    if (!free_bytes.valid || free_bytes.value - promised_bytes(gpu) < bytes.value)
        return "too little of its memory is free";
    return NULL;
}

/* Does the policy admit the task there, with the memory that it holds? It is asked as for the
 * resumption of a suspended task, which comes before the main queue; the task's CPUs and main
 * memory stay as they are. */
static struct verdict ask_policy(
    const struct core *core, const struct task *task, int to, int64_t now_us)
{
    struct placement answer = {0};
    struct verdict verdict = {.kind = VERDICT_NO_SAMPLE}; /* without memory for the answer */
    struct task moving = core_as_waiting(core, task);
    struct reading bytes = core_bytes_of(core, task);
    if (bytes.valid)
        moving.request.need = (struct need){
            NEED_ESTIMATED, (int64_t)bytes.value + core_restore_spare_bytes(core)};
    if (placement_reserve(&answer, core->view.n_gpus) == 0) {
        struct placement_query query = core_query(core, &moving, NULL, now_us, &answer);
        query.idle_only |= task->exclusive;
        query.on_one_gpu = true;
        query.first_gpu = to;
        query.end_gpu = to + 1;
        query.node_check = NULL;
        query.passes_reservation = true;
        bool fits = query.policy->choose(&query, answer.gpus, answer.verdicts) == PLACE_NOW;
        verdict = fits ? (struct verdict){.kind = VERDICT_FITS} : answer.verdicts[to];
    }
    placement_fini(&answer);
    return verdict;
}

/* What users need to know of the verdict. */
static const char *verdict_obstacle(const struct verdict *verdict)
{
    switch (verdict->kind) {
    case VERDICT_SET_ASIDE:
        return "it is kept free for a reservation";
    case VERDICT_RETURN:
        return "it is kept for a suspended task, which comes back only to it";
    case VERDICT_DRAINED:
        return "it is kept empty for a task that recovers";
    case VERDICT_HOLD_OFF:
    case VERDICT_STARTING:
    case VERDICT_START_LATE:
    case VERDICT_LEAVING:
        return "a task there is still taking or releasing memory";
    case VERDICT_FULL:
        return "it has as many tasks as tasks-per-gpu allows";
    case VERDICT_SMACT_HIGH:
    case VERDICT_SMACT_EXPECTED:
    case VERDICT_UTILISATION_HIGH:
        return "its activity is above smact-max";
    case VERDICT_MEMORY_SHORT:
    case VERDICT_MEMORY_KEPT:
        return "too little of its memory is free";
    case VERDICT_NOT_IDLE:
        return "the task needs an idle GPU, and it is not";
    case VERDICT_SERVICE:
    case VERDICT_SERVICE_SLOWED:
        return "a service there would miss its latency target";
    case VERDICT_CROWDED:
        return "too many shared it, and one of them has given way";
    case VERDICT_PROMISE:
    case VERDICT_PROMISE_SLOWED:
        return "a task there would not have its promised speed";
    case VERDICT_PROMISE_OWN:
        return "it would not have its promised speed there";
    case VERDICT_SERVER_POWER:
    case VERDICT_POWER_HIGH:
    case VERDICT_PCIE_HIGH:
        return "its power or PCIe traffic is at the limit";
    default:
        return "a task like it could not be started there now";
    }
}

static int check_destination(
    const struct core *core, const struct task *task, int to, int64_t now_us, struct fault *fault)
{
    bool stays = gpu_view_resident(&core->view.gpus[to], task->id);
    const char *why = why_not_moved(core, task, to);
    if (!why && !stays) {
        struct verdict verdict = ask_policy(core, task, to, now_us);
        why = verdict.kind == VERDICT_FITS ? NULL : verdict_obstacle(&verdict);
    }
    return why ? fault_set(fault, EBUSY, "task %s cannot be moved to GPU %s: %s",
                     task_label(task).text, core->view.gpus[to].id.label, why)
               : 0;
}

int core_check_move(const struct core *core, uint64_t id, const int *gpus, int n, int64_t now_us,
    struct fault *fault)
{
    const struct task *task = core_find_task(core, id);
    int r = check_running(task, id, "moved", fault);
    if (r < 0)
        return r;
    if (!can_move(core, task))
        return refuse_suspension(core, task, "moved", fault);
    if (n != task->n_gpus)
        return fault_set(fault, EINVAL, "task %s has %d GPU%s: name as many to move it to",
            task_label(task).text, task->n_gpus, task->n_gpus > 1 ? "s" : "");
    if (!core_are_gpus(core, gpus, n))
        return fault_set(fault, EINVAL, "there is no such GPU");
    if (!core_are_different(gpus, n))
        return fault_set(fault, EINVAL, "a GPU is named twice");
    if (core_count_new(task, gpus, n) == 0)
        return fault_set(fault, EBUSY, "task %s is on %s already", task_label(task).text,
            n > 1 ? "these GPUs" : "that GPU");
    for (int i = 0; i < n && r == 0; i++)
        r = check_destination(core, task, gpus[i], now_us, fault);
    return r;
}

bool core_is_command_possible(const struct core *core, const struct event *event)
{
    struct fault fault;
    if (event->kind == EVENT_SUSPEND)
        return core_check_suspend(core, event->task, &fault) == 0;
    if (event->kind == EVENT_MOVE)
        return core_check_move(core, event->task, event->yield.gpus, event->yield.n, event->time_us,
                   &fault) == 0;
    return true;
}

/* ---- where it can go ---- */

static double left_bytes(const struct gpu_view *gpu)
{
    return reading_assume(gpu_view_free_bytes(gpu), 0) - promised_bytes(gpu);
}

bool core_can_take(
    const struct core *core, const struct task *task, double bytes, int gpu, int64_t now_us)
{
    const struct gpu_view *to = &core->view.gpus[gpu];
    struct fault fault;
    return can_move(core, task) && !gpu_view_resident(to, task->id) &&
           !claims_any(to->claims, CLAIMS_LEAVING) &&
           left_bytes(to) >= bytes + (double)core->settings.conditions.margin_bytes &&
           core_check_move(core, task->id, &gpu, 1, now_us, &fault) == 0;
}

int core_find_destination(
    const struct core *core, const struct task *task, double bytes, int64_t now_us)
{
    double most = 0;
    int best = -1;
    for (int i = 0; i < core->view.n_gpus && task->n_gpus == 1; i++) {
        double left = left_bytes(&core->view.gpus[i]);
        if ((best < 0 || left > most) && core_can_take(core, task, bytes, i, now_us)) {
            most = left;
            best = i;
        }
    }
    return best;
}
