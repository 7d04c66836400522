/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a task waits, as text for its user.
 *
 * The reasons are tested in the order in which they block a task. Mostly the first that applies is
 * the text:
 *
 *     held                      by its user
 *     suspended or paused       why, and what lets it go on (explain_yield.c)
 *     not eligible              its begin, its dependencies, a limit (explain_gate.c)
 *     the queue is paused       for a recovering task, or until a delay is over
 *     a task comes before it    which, and why it may not be backfilled
 *     host                      CPUs or main memory of the server
 *     GPUs                      the policy's verdict on each of them (explain_gpus.c)
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clamp.h"
#include "base/units.h"
#include "core/ask/backfill_list.h"
#include "core/ask/host_check.h"
#include "core/ask/main_queue.h"
#include "core/ask/placement.h"
#include "core/ask/queue_head.h"
#include "core/ask/queue_pause.h"
#include "core/ask/servable.h"
#include "core/ask/waits.h"
#include "core/explain/explain_parts.h"
#include "core/explain/verdict_text.h"
#include "core/node_choice.h"
#include "core/questions.h"
#include "core/state/recovery_need.h"
#include "core/state/service.h"
#include "core/state/tasks.h"
#include "core/text_line.h"

/* The head of the main queue, which may be the task; NULL for one that recovers. To find it may
 * cost a look at each user's queue: an explanation asks once. */
static const struct task *head_for(const struct core *core, const struct task *task)
{
    return task->state == TASK_QUEUED ? core_head_of_queue(core) : NULL;
}

/* Does the task wait behind the head of its queue? A task that cannot be served now waits for no
 * head: other users' tasks are placed (main_queue.c). Nor does a task for other kinds of GPUs
 * (other_kinds.c). */
static bool waits_behind(const struct core *core, const struct task *task, const struct task *head)
{
    if (!head || head == task)
        return false;
    bool is_passed_over = head->queue != task->queue && core_ahead_of(core, task, NULL) == 0;
    return !is_passed_over && core_shares_kinds(core, task, head);
}

/* "3 tasks are before it in the queue, 1 of other users with a higher priority, 2 of other users, who
 * come first by fair share ..." */
static void add_ahead(struct text_line *line, const struct core *core, const struct task *task)
{
    int others, n = core_ahead_of(core, task, &others);
    int by_priority = core_ahead_by_priority(core, task);
    text_line_add(line, "%d task%s before it in the queue", n, n > 1 ? "s are" : " is");
    if (by_priority)
        text_line_add(line, ", %d of other users with a higher priority", by_priority);
    if (others > by_priority)
        text_line_add(line,
            ", %d of other users, who come first by fair share (rank of its user: %d)",
            others - by_priority, core_fair_rank(core, task->uid));
}

/* While a suspended task waits that the GPUs could serve, no task of the main queue starts. Those
 * that wait for a turn, or were preempted, have their own order. Returns that task, or NULL. */
static const struct task *suspended_before(
    const struct core *core, const struct task *task, const struct task *head)
{
    const struct task *other = task->state == TASK_QUEUED ? core->suspended_queue.first : NULL;
    for (; other; other = other->next) {
        bool is_later = core_waits_for_turn(other) && !core_is_turn_of(other, head);
        bool is_behind = core->settings.preempt &&
                         !core_is_resumed_before(core, other, head, core->last_pass_us);
        if (!is_later && !is_behind && task_context_gpu(other) < 0 &&
            !core_waits_for_service(other) && core_can_be_served(core, other))
            return other;
    }
    return NULL;
}

/* Is the task tried before the head starts? In the order of a long queue most are not. */
static bool may_be_backfilled(
    const struct core *core, const struct task *task, const struct task *head)
{
    bool is_tried = core_task_policy(core, head)->longest_first ||
                    (core->reserved_for == head->id &&
                        core_ahead_of(core, task, NULL) <= core_backfill_tries(core));
    return core_backfills(core, head) && is_tried;
}

static void add_head(struct text_line *line, const struct core *core, const struct task *head,
    const struct task *task)
{
    int rank = core_fair_rank(core, head->uid), own_rank = core_fair_rank(core, task->uid);
    text_line_add(line, "task %s is the head of the queue: ", task_label(head).text);
    if (head->queue != task->queue && rank != own_rank)
        text_line_add(line, "its user's fair rank is %d, this task's %d", rank, own_rank);
    else if (head->queue != task->queue)
        text_line_add(line, "it came first of those whose users have the fair rank %d", rank);
    else if (core->settings.preempt && core->plan.order && head->passed_count < CORE_PASSED_MAX)
        text_line_add(line, "of the orders that were simulated, the best begins with it");
    else if (core->settings.preempt && core_task_policy(core, head)->rank)
        text_line_add(line, "%s", core_task_policy(core, head)->rank_text);
    else if (head->previous)
        text_line_add(line, "it takes longest, as far as is known");
    else if (head->passed_count)
        text_line_add(line, "it came first, and %d later task%s started before it",
            head->passed_count, head->passed_count > 1 ? "s have" : " has");
    else
        text_line_add(line, "it came first");
}

/* "it got 15.6 GiB at most, so 17.6 GiB have to be free: " */
static void add_recovery(struct text_line *line, const struct core *core, const struct task *task)
{
    struct recovery_need need = core_recovery_need(core, task);
    char reached[32], wanted[32];
    if (task->state != TASK_RECOVERING || !core_retries_beside_others(core, task))
        return;
    text_line_add(line, "it got %s at most, so %s have to be free: ",
        format_size(clamp_bytes(task->run->reached_bytes.value), reached, sizeof reached),
        format_size(clamp_bytes(need.free_bytes), wanted, sizeof wanted));
}

/* "its memory did not fit, so it was run again; meanwhile GPU 1 is kept for it: " */
static void add_kept(struct text_line *line, const struct core *core, const struct task *task)
{
    int n = 0;
    if (core->reserved_for != task->id || !core_queue_goes_on(core, task))
        return;
    text_line_add(line, "its memory did not fit, so it was run again; meanwhile GPU%s ",
        task->request.gpus > 1 ? "s" : "");
    for (int i = 0; i < core->view.n_gpus; i++)
        if (core->view.gpus[i].is_choice_of_head)
            text_line_add(line, "%s%s", n++ ? ", " : "", core->view.gpus[i].id.label);
    text_line_add(line, " %s kept for it: ", n > 1 ? "are" : "is");
}

/* "40.0 GiB with the margin are more than a GPU has, so it gets one alone: ", since the GPU "must be
 * idle" by no wish of the task. */
static void add_alone(struct text_line *line, const struct core *core, const struct task *task)
{
    char wanted[32];
    double bytes = core_needed_bytes(core, task);
    bool has_reason = task->state == TASK_RECOVERING || core_wants_exclusive_gpus(core, task);
    if (has_reason || bytes <= reading_assume(core->view.mem_total_max_bytes, bytes))
        return;
    text_line_add(line, "%s with the margin are more than a GPU has, so it gets one alone: ",
        format_size(clamp_bytes(bytes), wanted, sizeof wanted));
}

/* GPUs admit the task. A suspended one may have to wait all the same. */
static void explain_admitted(struct text_line *line, const struct task *task, int64_t now_us)
{
    const struct task_yield *yield = &task->run->yield;
    char left[32];
    if (yield->is_relocating)
        text_line_add(line, "that has to end first");
    else if (yield->retry_us > now_us)
        text_line_add(line, "it has just failed, and is tried again in %s",
            format_elapsed(yield->retry_us - now_us, left, sizeof left));
    else
        text_line_add(line, "nothing, its turn comes");
}

/* What stands against placing the task now, GPU by GPU. */
static void explain_placement(
    struct text_line *line, const struct core *core, const struct task *task, int64_t now_us)
{
    struct verdict host = core_check_host_turn(core, task);
    if (host.kind != VERDICT_FITS && task->state != TASK_SUSPENDED) {
        if (core_check_host(core, task).kind == VERDICT_FITS)
            text_line_add(line, "task %s, which recovers, comes first: ",
                task_label(core->recovery_queue.first).text);
        verdict_text_add_host(line, core, &host);
        return;
    }
    struct placement answer = {0};
    if (placement_reserve(&answer, core->view.n_gpus) == 0) {
        struct task waiting = core_as_waiting(core, task);
        const struct placement_query query = core_query(core, &waiting, NULL, now_us, &answer);
        if (node_choice_choose(
                core_task_policy(core, task), &query, answer.gpus, answer.verdicts) == PLACE_NOW) {
            explain_admitted(line, task, now_us);
        } else {
            add_recovery(line, core, task);
            add_kept(line, core, task);
            add_alone(line, core, task);
            explain_gpus(line, core, task, answer.verdicts);
        }
    }
    placement_fini(&answer);
}

/* "the queue stops while task 3, which ran out of GPU memory, waits for GPUs (recovery: stop-queue)"
 */
static bool explain_stopped(
    struct text_line *line, const struct core *core, const struct task *task)
{
    const struct task *stopper = task->state == TASK_QUEUED ? core_queue_stopper(core) : NULL;
    if (stopper)
        text_line_add(line,
            "the queue stops while task %s, which ran out of GPU memory, waits for GPUs (recovery: "
            "stop-queue)",
            task_label(stopper).text);
    return stopper != NULL;
}

/* "may start on idle GPUs in 0:20, on others in 0:50 (decision-delay)". Only of the head: the time
 * of those behind it begins when it has started. */
static bool explain_delay(
    struct text_line *line, const struct core *core, const struct task *head, int64_t now_us)
{
    char idle[32], other[32];
    struct decision_times times = core_decision_times(core, head);
    if (now_us >= times.other_us)
        return false;
    format_elapsed(times.other_us - now_us, other, sizeof other);
    if (now_us < times.idle_us)
        text_line_add(line, "may start on idle GPUs in %s, on others in %s (decision-delay)",
            format_elapsed(times.idle_us - now_us, idle, sizeof idle), other);
    else
        text_line_add(line, "may start on idle GPUs, on others in %s (decision-delay)", other);
    return true;
}

/* What a task that needs no GPU waits for. */
static void explain_host(struct text_line *line, const struct core *core, const struct task *task)
{
    const struct task *head = core_head_of_queue(core);
    struct verdict host = core_check_host_turn(core, task);
    int n = queue_ahead_of(task);
    text_line_add(line, "no GPU; ");
    if (n)
        text_line_add(line, "%d task%s without a GPU %s before it", n, n > 1 ? "s" : "",
            n > 1 ? "are" : "is");
    else if (host.kind != VERDICT_FITS)
        verdict_text_add_host(line, core, &host);
    else if (head && core_leaves_host_to(core, task, head))
        text_line_add(line, "it leaves CPUs and main memory to task %s, the head of the queue",
            task_label(head).text);
    else
        text_line_add(line, "nothing, its turn comes");
}

/* What stands before the task in the order of the queue. Returns whether that is the whole answer:
 * otherwise the GPUs are, too. `head`: that it waits behind, or NULL. */
static bool explain_order(struct text_line *line, const struct core *core, const struct task *task,
    const struct task *head)
{
    bool in_order = head && !core_task_policy(core, head)->longest_first;
    if (!head)
        return false;
    if (in_order)
        add_ahead(line, core, task);
    else
        add_head(line, core, head, task);
    if (!may_be_backfilled(core, task, head))
        return true;
    if (core->reserved_for != head->id) {
        text_line_add(line, "; no task starts before it while no GPUs can be reserved for it");
        return true;
    }
    if (core_leaves_host_to(core, task, head)) {
        text_line_add(line, "; it needs CPUs or main memory, which those behind it leave to it");
        return true;
    }
    const struct task *obstacle = core_held_up_by(core, task, head);
    if (core_queue_goes_on(core, head))
        text_line_add(line, "; task %s was run again, meanwhile the others start in order: ",
            task_label(head).text);
    else if (in_order)
        text_line_add(line, "; to start before task %s: ", task_label(head).text);
    else
        text_line_add(line, "; to start before it: ");
    if (obstacle)
        text_line_add(line, "task %s has to wait", task_label(obstacle).text);
    return obstacle != NULL;
}

/* A task of the main queue, or one that recovers. */
static void explain_queued(
    struct text_line *line, const struct core *core, const struct task *task, int64_t now_us)
{
    if (explain_stopped(line, core, task))
        return;
    const struct task *head = head_for(core, task);
    if (head == task && explain_delay(line, core, head, now_us))
        return;
    const struct task *before = suspended_before(core, task, head);
    if (before) {
        text_line_add(
            line, "task %s, which is suspended, goes on before it", task_label(before).text);
        return;
    }
    if (explain_order(line, core, task, waits_behind(core, task, head) ? head : NULL))
        return;
    if (task->request.need.kind == NEED_PENDING)
        text_line_add(line, "its memory is being estimated");
    else
        explain_placement(line, core, task, now_us);
}

const char *core_explain(
    const struct core *core, uint64_t id, int64_t now_us, char *buffer, size_t size)
{
    struct text_line line = {buffer, size, 0};
    buffer[0] = '\0';
    const struct task *task = core_find_task(core, id);
    if (task && task->state == TASK_HELD)
        text_line_add(&line, "held; `colloc release %s` lets it go on", task_label(task).text);
    if (task && task->run->memory_wait.bytes)
        explain_memory_wait(&line, core, task);
    if (task && explain_has_stopped(task))
        explain_yield(&line, core, task);
    if (!task || !task->queue)
        return buffer;
    if (task->state == TASK_BLOCKED)
        explain_gate(&line, core, task, now_us);
    else if (task->state == TASK_SUSPENDED)
        explain_placement(&line, core, task, now_us);
    else if (task->queue == &core->host_queue)
        explain_host(&line, core, task);
    else
        explain_queued(&line, core, task, now_us);
    return buffer;
}

const char *core_explain_ahead(const struct core *core, uint64_t id, char *buffer, size_t size)
{
    struct text_line line = {buffer, size, 0};
    const struct task *task = core_find_task(core, id);
    buffer[0] = '\0';
    if (task && task->queue)
        add_ahead(&line, core, task);
    return buffer;
}

/* "task 3 does not wait: it is RUNNING" */
static bool add_not_waiting(struct text_line *line, const struct task *task, uint64_t id)
{
    if (!task)
        text_line_add(line, "there is no task %" PRIu64 " that waits or runs", id);
    else if (task->state != TASK_QUEUED && task->state != TASK_RECOVERING)
        text_line_add(line, "task %s does not wait in the queue: it is %s", task_label(task).text,
            task->state == TASK_HELD ? "held" : task_state_word(task->state));
    else
        return false;
    return true;
}

/* `first` comes before `other`; both wait. */
static void add_order(struct text_line *line, const struct core *core, const struct task *first,
    const struct task *other)
{
    int rank = core_fair_rank(core, first->uid), other_rank = core_fair_rank(core, other->uid);
    bool has_equal_user = first->uid != other->uid && core->settings.order == ORDER_FAIR;
    text_line_add(
        line, "task %s comes before task %s: ", task_label(first).text, task_label(other).text);
    if (first->state != other->state)
        text_line_add(line, "it ran out of GPU memory, and such tasks recover first");
    else if (first->request.priority != other->request.priority)
        text_line_add(line, "its priority is %s, that of the other is %s",
            priority_name(first->request.priority), priority_name(other->request.priority));
    else if (first->queue == other->queue || rank == other_rank)
        text_line_add(line, "it was submitted earlier%s",
            has_equal_user ? ", and their users have the same fair rank" : "");
    else
        text_line_add(
            line, "its user's fair rank is %d, that of the other's is %d", rank, other_rank);
}

const char *core_explain_order(
    const struct core *core, uint64_t one, uint64_t other, char *buffer, size_t size)
{
    struct text_line line = {buffer, size, 0};
    const struct task *a = core_find_task(core, one), *b = core_find_task(core, other);
    buffer[0] = '\0';
    if (add_not_waiting(&line, a, one) || add_not_waiting(&line, b, other))
        return buffer;
    bool is_first = a->state != b->state   ? a->state == TASK_RECOVERING
                    : a->queue == b->queue ? queue_ahead_of(a) < queue_ahead_of(b)
                                           : core_comes_before(core, a, b);
    if (a == b)
        text_line_add(&line, "this is one task");
    else if (is_first)
        add_order(&line, core, a, b);
    else
        add_order(&line, core, b, a);
    return buffer;
}

const char *core_reason_word(const struct core *core, uint64_t id)
{
    const struct task *task = core_find_task(core, id);
    if (task && task->state == TASK_HELD)
        return "JobHeldUser";
    if (task && explain_has_stopped(task))
        return task->run->yield.by_user     ? "SuspendedByUser"
               : task->run->yield.is_unused ? "SuspendedUnused"
                                            : "Suspended";
    if (task && task->run->memory_wait.bytes)
        return "MemoryWait";
    if (!task || !task->queue)
        return "None";
    if (task->state == TASK_BLOCKED)
        return explain_gate_word(task);
    if (task->state == TASK_RECOVERING)
        return "Recovering";
    if (task->queue == &core->host_queue)
        return task == core->host_queue.first ? "Resources" : "Priority";
    const struct task *head = head_for(core, task);
    bool is_behind = core_queue_stopper(core) || suspended_before(core, task, head) ||
                     waits_behind(core, task, head);
    return is_behind ? "Priority" : "Resources";
}
