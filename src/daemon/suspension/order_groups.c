/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From facts to answers: the processes of a task are suspended or resumed as one group
 * (checkpoint/group_runner.h), and each answer of the group ends the order, or begins its second
 * half, or has it tried again.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/suspension/suspension_state.h"

/* Chosen: synchronising calls return when the GPU has done its work. */
static const uint64_t GATE_POLL_MS = 5;
static const int64_t GATE_LIMIT_US = 30 * SECOND_US;
/* Chosen: ranks are at most a step apart, and a step of a training takes seconds. Far below the
 * 480 s of PyTorch's heartbeat (docs/carrier.md). */
static const int64_t HOLD_LIMIT_US = 30 * SECOND_US;
/* Chosen: a call of a task that does not use its GPUs, which had just passed the gate, has reached
 * the driver by then. Later ones wait at the gate, where they are seen. */
static const int64_t GATE_UNUSED_US = 1 * SECOND_US;
/* Chosen: the library looks for a new daemon every two seconds. */
static const int64_t COMES_BACK_US = 5 * SECOND_US;
/* Chosen: a driver that does not answer, or a GPU that another program has filled, is tried again
 * for a quarter of an hour before the task is given up. Orders of other tasks are carried out
 * between the tries. */
static const uint64_t RETRY_MS = 5000;
/* Chosen: a copy of the driver takes seconds. */
static const uint64_t WAIT_FOR_COPIES_MS = 500;
enum { RETRIES_MAX = 180 };

static const char no_memory_now[] =
    "its memory cannot be put back now: its GPU has too little free, or a call failed";
static const char no_memory_yet[] =
    "its memory cannot be put back yet: the GPU has too little free";

/* ---- groups ---- */

/* What is kept free beside the task's memory until it is back. A task that is alone on its GPU
 * finds there what it had; beside external processes alone the core may have chosen one with less.
 */
static int64_t spare_bytes(const struct suspension *s)
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    double bytes = reading_or(suspension_record_bytes(&s->record), 0), spare = 0;
    for (int i = 0; task && i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core_view(s->parts.core)->gpus[task->gpus[i]];
        double left = reading_or(gpu_view_free_bytes(gpu), INFINITY) - bytes;
        if (gpu->n_residents > 1)
            spare = SUSPENSION_RESTORE_SPARE_BYTES;
        else if (reading_or(gpu->external_processes, 1) > 0)
            spare = fmax(spare, fmin(SUSPENSION_RESTORE_SPARE_BYTES, fmax(0, left)));
    }
    return (int64_t)spare;
}

/* Where the processes are, or go. */
static void start_group(
    struct suspension *s, enum group_goal goal, const struct suspension_record *where)
{
    struct group_runner *runner = suspension_runner(s);
    process_group_init(&runner->group, goal);
    runner->teaches_nothing = s->record.is_carried;
    runner->spare_bytes = spare_bytes(s);
    runner->group.count = where->n_processes;
    memcpy(runner->group.processes, where->processes, sizeof where->processes);
    suspension_start_driver(s);
}

/* Where their memory is, or was: the moves of the order before are not for them. */
static void run_group(struct suspension *s, enum group_goal goal)
{
    suspension_runner(s)->n_moves = 0;
    start_group(s, goal, &s->record);
}

/* Another program may give its memory back, a driver may answer again. */
static void retry_or_give_up(struct suspension *s, const char *why)
{
    struct order *order = s->orders;
    if (order->retries == 0)
        log_warning("task %llu: %s: retried every %d s", (unsigned long long)order->task, why,
            (int)(RETRY_MS / 1000));
    if (order->retries++ < RETRIES_MAX)
        suspension_retry_later(s, RETRY_MS);
    else
        suspension_fail_order(s, SUSPENSION_LOST, true, why);
}

static void apply_move(char *gpu, const struct gpu_move *moves, size_t n)
{
    size_t m = 0;
    while (m < n && strcmp(gpu, moves[m].from) != 0)
        m++;
    if (m < n)
        memcpy(gpu, moves[m].to, GPU_UUID_SIZE);
}

/* The task and its processes' memory go to other GPUs. */
static void apply_moves(struct suspension_record *record, const struct gpu_move *moves, size_t n)
{
    for (size_t i = 0; i < record->n_gpus; i++)
        apply_move(record->gpus[i].uuid, moves, n);
    for (size_t i = 0; i < record->n_processes; i++)
        for (size_t k = 0; k < record->processes[i].n_memory; k++)
            apply_move(record->processes[i].memory[k].gpu, moves, n);
}

/* Which GPUs of the record are others where the order puts the task? Returns how many, or
 * -EINVAL. */
static int map_gpus(const struct suspension *s, struct gpu_move *ret_moves)
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    struct gpu_name names[GROUP_GPUS_MAX];
    if (!task)
        return -EINVAL;
    bool is_move = s->orders->kind == ORDER_MOVE;
    int n = is_move ? task->run->yield.n_to_gpus : task->n_gpus;
    suspension_name_gpus(s, is_move ? task->run->yield.to_gpus : task->gpus, n, names);
    return suspension_record_map(&s->record, names, (size_t)n, ret_moves);
}

/* The record keeps where the memory was: a repetition maps it again. */
static void run_group_on_gpus(struct suspension *s)
{
    struct suspension_record there = s->record;
    struct group_runner *runner = suspension_runner(s);
    int n_moves = map_gpus(s, runner->moves);
    if (n_moves < 0) {
        suspension_fail_order(
            s, SUSPENSION_LOST, true, "it was suspended on another number of GPUs");
        return;
    }
    runner->n_moves = (size_t)n_moves;
    apply_moves(&there, runner->moves, runner->n_moves);
    start_group(s, GROUP_RUNNING, &there);
}

/* ---- resuming ---- */

static const char *error_of(const struct suspension *s, const char *otherwise)
{
    const char *error = s->orders->run->group.runner.error;
    return *error ? error : otherwise;
}

static void fail_broken(struct suspension *s)
{
    suspension_fail_order(s, SUSPENSION_LOST, true,
        error_of(s, "the driver has lost a process: it cannot be resumed"));
}

/* The record is removed after the log: until then the order would have to be repeated. */
static void complete_resumption(struct suspension *s)
{
    bool is_move = s->orders->kind == ORDER_MOVE;
    uint64_t task = s->orders->task;
    suspension_complete_order(s, is_move ? EVENT_MOVED : EVENT_RESUMED);
    suspension_remove_record(s, task);
}

/* A process whose copy is lost can never compute again. */
static void fail_lost(struct suspension *s)
{
    suspension_fail_order(s, SUSPENSION_LOST, true, "the copy of its memory was lost");
}

static void on_away_again(struct suspension *s, enum preload_carry_answer answer)
{
    if (answer == PRELOAD_CARRIES_DONE && !s->record.are_clients) {
        run_group(s, GROUP_SUSPENDED);
        return;
    }
    s->orders->leaves_again = false;
    if (answer == PRELOAD_CARRIES_DONE)
        suspension_fail_order(s, SUSPENSION_NO_MEMORY, true, no_memory_now);
    else if (answer == PRELOAD_CARRIES_LOST)
        fail_lost(s);
    else
        retry_or_give_up(s, no_memory_yet);
}

/* Others have taken the memory that was free when it was ordered. They may wait for more, and end
 * only when this task has left: it is suspended as before, from where it is now, and the core
 * decides anew. Of several processes some may have their memory again. */
static void leave_again(struct suspension *s)
{
    struct gpu_move moves[HELPER_MOVES_MAX];
    int n_moves = map_gpus(s, moves);
    apply_moves(&s->record, moves, n_moves > 0 ? (size_t)n_moves : 0);
    if (suspension_save_record(s, s->orders->task) < 0) {
        retry_or_give_up(s, "the state folder cannot be written");
        return;
    }
    s->orders->leaves_again = true;
    suspension_carry(s, true, on_away_again);
}

static void end_leaving_again(struct suspension *s, enum group_answer answer)
{
    s->orders->leaves_again = false;
    if (answer == GROUP_DONE || answer == GROUP_EMPTY)
        suspension_fail_order(s, SUSPENSION_NO_MEMORY, true, no_memory_now);
    else if (answer == GROUP_BROKEN)
        fail_broken(s);
    else
        retry_or_give_up(s, no_memory_yet);
}

static void on_brought_back(struct suspension *s, enum preload_carry_answer answer)
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    if (answer == PRELOAD_CARRIES_DONE) {
        bool is_near = task && task->run->yield.has_neighbour;
        suspension_learn_carry(s, is_near ? CARRY_FROM_NEIGHBOUR : CARRY_TO_GPU);
        complete_resumption(s);
    } else if (answer == PRELOAD_CARRIES_LOST)
        fail_lost(s);
    else if (answer == PRELOAD_CARRIES_FAILED)
        leave_again(s);
    else
        retry_or_give_up(s, no_memory_yet);
}

void suspension_run_resumption(struct suspension *s)
{
    if (s->record.are_clients)
        suspension_carry(s, false, on_brought_back);
    else
        run_group_on_gpus(s);
}

static void end_resumption(struct suspension *s, enum group_answer answer)
{
    switch (answer) {
    case GROUP_DONE:
    case GROUP_EMPTY: /* its processes have ended: nothing is left to put back */
        if (s->record.is_carried && answer == GROUP_DONE)
            suspension_carry(s, false, on_brought_back);
        else
            complete_resumption(s);
        break;
    case GROUP_NO_ROOM: /* also of a move: the core resumes it where memory is free */
        suspension_fail_order(
            s, SUSPENSION_NO_MEMORY, true, "the GPU has too little free memory for it now");
        break;
    case GROUP_BROKEN:
        fail_broken(s);
        break;
    default:
        retry_or_give_up(s, error_of(s, "the driver does not answer"));
        break;
    }
}

/* ---- suspending ---- */

static void on_back_after_failure(struct suspension *s, enum preload_carry_answer answer)
{
    const struct order *order = s->orders;
    if (answer == PRELOAD_CARRIES_DONE)
        suspension_fail_order(s, order->failed.failure, false, order->failed.why);
    else if (answer == PRELOAD_CARRIES_LOST)
        fail_lost(s);
    else
        retry_or_give_up(s, "its memory cannot be put back");
}

/* What the carrier has taken away comes back before the gate is opened. */
static void bring_back_after_failure(struct suspension *s)
{
    struct order *order = s->orders;
    if (s->record.is_carried)
        suspension_carry(s, false, on_back_after_failure);
    else
        suspension_fail_order(s, order->failed.failure, false, order->failed.why);
}

/* What the carrier has taken away is off the GPU. When the driver will not take the rest, that rest
 * stays there, as of a client of MPS. A move needs the driver, and so does a task that needs the
 * GPU for itself. */
static bool may_keep_context(const struct suspension *s)
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    enum yield_reason reason = task ? task->run->yield.reason : YIELD_TO_ROOM;
    bool leaves_for_memory = reason == YIELD_TO_MEMORY || reason == YIELD_UNUSED ||
                             reason == YIELD_TO_USER;
    return leaves_for_memory && s->record.is_carried && s->orders->kind == ORDER_SUSPEND;
}

/* Where the core wants that, its context stays from the start (core/ask/context_place.h). */
static bool stays_on_gpu(const struct suspension *s)
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    return task && task->run->yield.keeps_context && s->orders->kind == ORDER_SUSPEND &&
           s->facts.is_by_carrier && !s->facts.is_mig && suspension_can_carry(s);
}

static void keep_context(struct suspension *s, const char *why)
{
    log_info(
        "task %llu: its context stays on its GPU: %s", (unsigned long long)s->orders->task, why);
    s->record.are_clients = true;
    if (suspension_save_record(s, s->orders->task) < 0) {
        s->record.are_clients = false;
        retry_or_give_up(s, "the state folder cannot be written");
        return;
    }
    suspension_complete_order(s, EVENT_SUSPENDED);
}

/* The processes run on. Those that the driver holds since an earlier daemon must not be forgotten:
 * they would stand still for ever. */
static void fail_suspension(struct suspension *s, enum suspension_failure failure, const char *why)
{
    struct order *order = s->orders;
    order->failed.failure = failure;
    snprintf(order->failed.why, sizeof order->failed.why, "%s", why);
    order->is_undoing = (order->is_found || order->is_undoing) && !s->record.are_clients;
    order->keeps_context = false;
    if (order->is_undoing)
        run_group(s, GROUP_RUNNING);
    else
        bring_back_after_failure(s);
}

static void end_undoing(struct suspension *s, enum group_answer answer)
{
    s->orders->is_undoing = false;
    if (answer == GROUP_BROKEN) {
        fail_broken(s);
    } else if (answer == GROUP_NO_ROOM || answer == GROUP_STUCK) {
        retry_or_give_up(s, "it cannot be suspended, and the driver cannot let it go on yet");
    } else if (s->orders->keeps_context) {
        keep_context(s, "the driver does not answer");
    } else {
        bring_back_after_failure(s);
    }
}

/* The driver does not take the rest of a process, and all of them run. */
static void end_refused(struct suspension *s, enum suspension_failure failure, const char *why)
{
    if (may_keep_context(s))
        keep_context(s, why);
    else
        fail_suspension(s, failure, why);
}

/* The driver does not say what it holds. A process whose memory the carrier has may stay with its
 * context on the GPU, once the driver lets it run. */
static void end_stuck(struct suspension *s)
{
    const char *why = error_of(s, "the driver does not answer");
    if (!s->orders->run->group.runner.group.was_touched && !s->orders->is_found) {
        end_refused(s, SUSPENSION_TIMED_OUT, why);
        return;
    }
    s->orders->keeps_context = s->orders->is_undoing = may_keep_context(s);
    retry_or_give_up(s, why);
}

static void end_suspension(struct suspension *s, enum group_answer answer)
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    bool was_stuck = s->orders->run->group.runner.group.error == -ETIMEDOUT;
    switch (answer) {
    case GROUP_DONE:
        if (s->orders->kind == ORDER_SUSPEND || !task) {
            suspension_complete_order(s, EVENT_SUSPENDED);
            break;
        }
        s->record.is_resuming = true;
        suspension_save_record(s, task->id);
        suspension_run_resumption(s);
        break;
    case GROUP_UNDONE:
        end_refused(s, was_stuck ? SUSPENSION_TIMED_OUT : SUSPENSION_REFUSED,
            error_of(s, "the driver refuses to suspend it"));
        break;
    case GROUP_EMPTY:
        suspension_fail_order(s, SUSPENSION_REFUSED, false, "its processes have ended");
        break;
    case GROUP_BROKEN:
        fail_broken(s);
        break;
    default:
        end_stuck(s);
        break;
    }
}

/* ---- a context that leaves while its task is suspended ---- */

static void complete_leaving(struct suspension *s)
{
    s->record.are_clients = false;
    if (suspension_save_record(s, s->orders->task) < 0)
        retry_or_give_up(s, "the state folder cannot be written");
    else
        suspension_complete_order(s, EVENT_RELOCATED);
}

/* What the driver does not take stays, as if nothing had been asked. */
static void end_leaving(struct suspension *s, enum group_answer answer)
{
    if (answer == GROUP_DONE || answer == GROUP_EMPTY)
        complete_leaving(s);
    else if (answer == GROUP_BROKEN)
        fail_broken(s);
    else if (answer == GROUP_UNDONE || !s->orders->run->group.runner.group.was_touched)
        suspension_fail_order(
            s, SUSPENSION_NOT_NOW, true, error_of(s, "the driver does not take its context"));
    else
        retry_or_give_up(s, error_of(s, "the driver does not answer"));
}

/* An earlier daemon may have ended before it could say that it was done. */
void suspension_take_context(struct suspension *s)
{
    if (!s->record.are_clients) {
        suspension_complete_order(s, EVENT_RELOCATED);
        return;
    }
    suspension_lend_memory(s);
    run_group(s, GROUP_SUSPENDED);
}

void suspension_take_group(struct suspension *s, enum group_answer answer)
{
    bool resumes = s->orders->kind == ORDER_RESUME || s->record.is_resuming;
    if (answer != GROUP_STUCK) /* what the driver holds is known now */
        s->orders->is_found = false;
    if (s->orders->kind == ORDER_RELOCATE)
        end_leaving(s, answer);
    else if (s->orders->leaves_again)
        end_leaving_again(s, answer);
    else if (s->orders->is_undoing)
        end_undoing(s, answer);
    else if (resumes)
        end_resumption(s, answer);
    else
        end_suspension(s, answer);
}

static void refuse_order(struct suspension *s, enum suspend_refusal refusal)
{
    char why[SUSPENSION_WHY_SIZE];
    /* After a restart: its pages will say whether its collectives are counted. */
    bool are_ranks = refusal == SUSPEND_NCCL || refusal == SUSPEND_NCCL_UNKNOWN;
    bool is_not_known_yet = are_ranks && s->facts.is_by_carrier && s->is_not_known &&
                            !s->is_without_library;
    enum suspension_failure failure = suspend_refusal_is_memory(refusal) ? SUSPENSION_NO_MEMORY
                                                                         : SUSPENSION_REFUSED;
    if (refusal == SUSPEND_NO_CUDA || is_not_known_yet)
        failure = SUSPENSION_NOT_NOW;
    suspend_refusal_write(refusal, &s->facts, why, sizeof why);
    suspension_fail_order(s, failure, false, why);
}

/* ---- by the carrier, and the rest by the driver ---- */

/* The driver's copy is the task's own memory, all of it. */
static enum suspend_refusal check_without_rooms(struct suspension *s)
{
    s->facts = s->orders->facts;
    bool was_counted = s->facts.pool_bytes > 0; /* else it was checked so, or by another daemon */
    s->facts.pool_bytes = 0;
    return was_counted ? suspend_check(&s->facts) : SUSPEND_ALLOWED;
}

static void on_left_to_driver(struct suspension *s, enum preload_carry_answer answer)
{
    if (answer == PRELOAD_CARRIES_LOST) {
        fail_lost(s);
        return;
    }
    if (answer != PRELOAD_CARRIES_DONE) {
        retry_or_give_up(s, "its memory is neither away nor here");
        return;
    }
    s->record.is_carried = false;
    if (suspension_save_record(s, s->orders->task) < 0) {
        retry_or_give_up(s, "the state folder cannot be written");
        return;
    }
    enum suspend_refusal refusal = check_without_rooms(s);
    if (refusal != SUSPEND_ALLOWED) {
        refuse_order(s, refusal);
        return;
    }
    suspension_lend_memory(s);
    run_group(s, GROUP_SUSPENDED);
}

/* What was not reached in time is seen in the ranks' counts. */
static void fail_ranks(struct suspension *s, enum suspension_failure failure, const char *why)
{
    preload_manager_log_ranks(s->parts.preload, s->orders->task);
    fail_suspension(s, failure, why);
}

/* The first process that its carrier cannot take; or all can, and have not. */
static void explain_carriers(const struct suspension *s, char *text, size_t size)
{
    snprintf(text, size, "its memory was not taken away");
    for (size_t i = 0; i < s->record.n_processes; i++)
        if (preload_manager_explain_carrier(s->parts.preload, s->orders->task,
                group_process_id(&s->record.processes[i]), text, size))
            return;
}

/* The memory of clients of MPS has to leave by the carrier or not at all. */
static void fail_clients(struct suspension *s, enum preload_carry_answer answer)
{
    char why[SUSPENSION_WHY_SIZE];
    explain_carriers(s, why, sizeof why);
    if (answer == PRELOAD_CARRIES_LOST)
        fail_lost(s);
    else
        fail_ranks(s, SUSPENSION_NOT_NOW, why);
}

/* The task is suspended as if there were no neighbour: its processes hold their memory. */
static void go_to_host(struct suspension *s, const char *why)
{
    suspension_leave_neighbour(s, why);
    suspension_gather_facts(s, suspension_decide);
}

/* It was not handed the memory of the neighbour, or cannot map it. */
static void on_back_for_host(struct suspension *s, enum preload_carry_answer answer)
{
    if (answer == PRELOAD_CARRIES_DONE)
        go_to_host(s, "a process could not use the memory there");
    else if (answer == PRELOAD_CARRIES_LOST)
        fail_lost(s);
    else
        retry_or_give_up(s, "its memory cannot be put back");
}

static void on_clients_away(struct suspension *s, enum preload_carry_answer answer)
{
    bool is_near = s->orders->is_near;
    if (answer != PRELOAD_CARRIES_DONE && is_near && answer != PRELOAD_CARRIES_LOST) {
        suspension_carry(s, false, on_back_for_host);
        return;
    }
    if (answer != PRELOAD_CARRIES_DONE) {
        fail_clients(s, answer);
        return;
    }
    suspension_learn_carry(s, is_near ? CARRY_TO_NEIGHBOUR : CARRY_TO_HOST);
    suspension_complete_order(s, EVENT_SUSPENDED);
}

/* A process in which the driver's checkpoint was begun must not get an order: the record says whose
 * turn it is. */
static void on_taken_away(struct suspension *s, enum preload_carry_answer answer)
{
    const struct order *order = s->orders;
    if (answer == PRELOAD_CARRIES_DONE) {
        suspension_learn_carry(s, CARRY_TO_HOST);
        if (order->retries == 0 && !order->is_found) { /* it was not away before */
            log_info("task %llu: its memory has left its GPU after %.2f s",
                (unsigned long long)order->task,
                (double)(clock_monotonic_us() - order->started_us) / 1e6);
        }
        run_group(s, order->is_undoing ? GROUP_RUNNING : GROUP_SUSPENDED);
        return;
    }
    char why[SUSPENSION_WHY_SIZE];
    explain_carriers(s, why, sizeof why);
    log_info(
        "task %llu: the driver copies its memory: %s", (unsigned long long)s->orders->task, why);
    suspension_carry(s, false, on_left_to_driver);
}

static void take_off_gpu(struct suspension *s)
{
    if (s->record.is_carried)
        suspension_carry(s, true, s->record.are_clients ? on_clients_away : on_taken_away);
    else
        run_group(s, GROUP_SUSPENDED);
}

static bool is_unused(const struct suspension *s)
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    return task && task->run->yield.is_unused;
}

static const char *why_without_gate(const struct suspension *s)
{
    if (s->is_secure)
        return "a program of it is setuid, setgid or has capabilities, so it runs without the "
               "preloaded library, and a call that synchronizes would crash it (run one without "
               "these, or set suspend-without-gate)";
    if (s->is_without_library)
        return "it runs without the preloaded library, so a call that synchronizes would crash it "
               "(submit it with --preload=yes, or set suspend-without-gate)";
    return "this daemon runs all tasks without the preloaded library, so a call that synchronizes "
           "would crash it: the daemon's log says why";
}

/* Suspends it once no synchronizing call is in flight. */
static void pass_gate(struct suspension *s)
{
    const struct order *order = s->orders;
    enum preload_gate_answer gate = suspension_set_gate(s, true);
    int64_t closed_us = clock_monotonic_us() - order->gate_closed_us;
    if (gate == PRELOAD_GATE_CLEAR && is_unused(s) && closed_us < GATE_UNUSED_US)
        gate = PRELOAD_GATE_BUSY;
    if (gate == PRELOAD_GATE_AWAY && order->is_found && closed_us < COMES_BACK_US)
        gate = PRELOAD_GATE_BUSY;
    /* Without the gate it is not seen when an unused task calls CUDA again. */
    bool may_go_without = s->parts.config->suspend_without_gate && !is_unused(s);
    if (gate == PRELOAD_GATE_AWAY && !may_go_without)
        fail_suspension(s, SUSPENSION_NOT_NOW,
            "it has not called CUDA since the daemon was started, as far as its preloaded library "
            "can see: try again when it has, or set suspend-without-gate if it never synchronizes");
    else if (gate == PRELOAD_GATE_NONE && !may_go_without)
        fail_suspension(s, SUSPENSION_REFUSED, why_without_gate(s));
    else if (gate != PRELOAD_GATE_BUSY)
        take_off_gpu(s);
    else if (closed_us < GATE_LIMIT_US)
        suspension_wait_for_task(s, GATE_POLL_MS, order->gate_closed_us, pass_gate);
    else
        fail_ranks(s, SUSPENSION_TIMED_OUT, "one of its CUDA calls does not return");
}

static void close_gates(struct suspension *s)
{
    s->orders->gate_closed_us = clock_monotonic_us();
    pass_gate(s);
}

/* Ranks of NCCL are stopped at the same collective first: all of them, or the task goes on as if
 * nothing had been asked. */
static void hold_ranks(struct suspension *s)
{
    struct order *order = s->orders;
    enum preload_hold_answer hold = preload_manager_hold(s->parts.preload, order->task);
    int64_t held_us = clock_monotonic_us() - order->held_us;
    if (hold == PRELOAD_HOLD_REACHED)
        close_gates(s);
    else if (hold != PRELOAD_HOLD_CANNOT && held_us < HOLD_LIMIT_US)
        suspension_wait_for_task(s, GATE_POLL_MS, order->held_us, hold_ranks);
    else
        fail_ranks(s, SUSPENSION_NOT_NOW,
            hold == PRELOAD_HOLD_CANNOT
                ? "its ranks use NCCL in a way that is not counted, or some of them are away"
            : hold == PRELOAD_HOLD_INCOMPLETE
                ? "a communicator of NCCL has ranks that are not in this task on this server"
                : "its ranks have not come to the same collective in time");
}

static void on_lent(struct suspension *s, const char *why_not)
{
    if (why_not)
        go_to_host(s, why_not);
    else
        suspension_run_suspension(s);
}

void suspension_run_suspension(struct suspension *s)
{
    struct order *order = s->orders;
    if (suspension_lend_first(s, on_lent))
        return;
    suspension_lend_memory(s);
    if (order->gate_closed_us) {
        pass_gate(s);
        return;
    }
    order->held_us = clock_monotonic_us();
    if (s->record.are_clients)
        hold_ranks(s);
    else
        close_gates(s);
}

/* All is known: suspend it, or say why not. */
void suspension_decide(struct suspension *s)
{
    s->facts.pool_bytes = (double)suspension_room_bytes(s);
    s->orders->facts = s->facts;
    bool is_near = suspension_may_go_near(s);
    struct suspend_facts facts = s->facts;
    if (is_near)
        facts.gpu_bytes = reading_of(0);
    double promised_bytes = helper_pool_host_bytes(&s->helpers);
    facts.host_available_bytes.value -= promised_bytes;
    facts.cgroup_left_bytes.value -= promised_bytes;
    enum suspend_refusal refusal = suspend_check(&facts);
    bool is_for_copies = refusal == SUSPEND_HOST_MEMORY || refusal == SUSPEND_CGROUP_MEMORY;
    if (is_for_copies && promised_bytes > 0) { /* what they will not take is known then */
        suspension_retry_later(s, WAIT_FOR_COPIES_MS);
        return;
    }
    if (refusal != SUSPEND_ALLOWED) {
        refuse_order(s, refusal);
        return;
    }
    s->record.is_carried = s->parts.config->carrier;
    s->record.are_clients = is_near || suspend_is_by_carrier_alone(&s->facts) || stays_on_gpu(s);
    int r = suspension_save_record(s, s->orders->task);
    if (r < 0) {
        suspension_fail_order(s, SUSPENSION_NO_MEMORY, false, "the state folder cannot be written");
        return;
    }
    suspension_run_suspension(s);
}
