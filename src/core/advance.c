/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations in advance: N GPUs for some users from a time on, for a while.
 *
 * Before and while it lasts, another user's task may be placed on these GPUs only if it ends before
 * the reservation begins, by its time limit, or else by its expected time. A task of unknown time
 * never fits. No task is ended for a reservation.
 *
 * A reservation is for a number of GPUs. The GPUs to keep free are chosen for each task that has to
 * be placed: first GPUs with tasks of the reservation's users, then GPUs without other tasks when
 * it begins, then those with the fewest tasks; of equal ones the last.
 *
 *     4 GPUs, a runs on GPU 0 until 14:00      reserve 2 GPUs, 16:00 to 18:00, for bob
 *     12:00  ada's task of 3 h: GPUs 0 and 1   kept free: GPUs 3 and 2
 *     12:00  ada's task of 5 h: GPUs 0 and 1   the same; of 4 h: all four
 *     12:00  ada's task of 5 h waits        her task of 3 h, behind it, is placed on GPU 2 or 3
 *     16:00  bob's tasks are placed before all others of the main queue, on up to 2 GPUs
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/top_k.h"
#include "core/core_private.h"
#include "core/kind_speed.h"

enum { KEPT_MAX = 256 };      /* GPUs of one reservation */
enum { FILL_TRIES_MAX = 64 }; /* chosen, to keep a pass short; so is CORE_QUEUE_DEPTH_MAX */

/* ---- the list ---- */

const struct advance *core_advances(const struct core *core, int *ret_n)
{
    *ret_n = (int)core->n_advances;
    return core->advances;
}

uint64_t core_next_advance_id(const struct core *core)
{
    return core->last_advance + 1;
}

static bool is_sound(const struct advance *advance)
{
    return advance->id > 0 && advance->gpus > 0 && advance->gpus <= KEPT_MAX &&
           advance->from_us < advance->until_us && advance->n_users > 0 &&
           advance->n_users <= ADVANCE_USERS_MAX;
}

static void remove_advance(struct core *core, size_t i)
{
    core->n_advances--;
    memmove(&core->advances[i], &core->advances[i + 1],
        (core->n_advances - i) * sizeof *core->advances);
}

static int remove_reservation(struct core *core, uint64_t id)
{
    for (size_t i = 0; i < core->n_advances; i++) {
        if (core->advances[i].id != id)
            continue;
        remove_advance(core, i);
        return 0;
    }
    return CORE_NOT_NOW;
}

/* Those that are over are dropped. */
static int add_reservation(struct core *core, const struct advance *advance, int64_t now_us)
{
    if (!is_sound(advance) || advance->id <= core->last_advance)
        return CORE_NOT_NOW;
    core->last_advance = advance->id;
    for (size_t i = core->n_advances; i-- > 0;)
        if (core->advances[i].until_us <= now_us)
            remove_advance(core, i);
    return ARRAY_APPEND(core->advances, core->n_advances, core->advances_capacity, *advance);
}

static void set_none_aside(const struct core *core)
{
    for (int i = 0; i < core->view.n_gpus; i++)
        core->view.gpus[i].set_aside_for = 0;
}

int core_apply_advance(struct core *core, const struct event *event)
{
    set_none_aside(core);
    core->pass_needed = true;
    return event->kind == EVENT_RESERVE ? add_reservation(core, &event->reserve, event->time_us)
                                        : remove_reservation(core, event->unreserve);
}

/* The sum of the reservations that overlap is an upper bound. */
int core_check_advance(
    const struct core *core, const struct advance *advance, int64_t now_us, struct fault *fault)
{
    int places = 0, taken = 0;
    for (int i = 0; i < core->view.n_gpus; i++)
        places += core->view.gpus[i].id.is_place;
    for (size_t i = 0; i < core->n_advances; i++) {
        const struct advance *each = &core->advances[i];
        bool overlaps = each->from_us < advance->until_us && advance->from_us < each->until_us;
        taken += overlaps ? each->gpus : 0;
    }
    if (!is_sound(advance) || advance->until_us <= now_us)
        return fault_set(fault, EINVAL,
            "a reservation needs 1 to %d GPUs, 1 to %d users, and a time that is not over",
            KEPT_MAX, ADVANCE_USERS_MAX);
    if (advance->gpus > places - taken)
        return fault_set(fault, EINVAL,
            "gpus=%d: this server has %d, of which %d are reserved in that time", advance->gpus,
            places, taken);
    return 0;
}

int64_t core_advance_deadline_us(const struct core *core, int64_t now_us)
{
    int64_t earliest = TIME_NEVER;
    for (size_t i = 0; i < core->n_advances; i++) {
        const int64_t moments[] = {core->advances[i].from_us, core->advances[i].until_us};
        for (size_t k = 0; k < ARRAY_SIZE(moments); k++)
            if (moments[k] > now_us && moments[k] < earliest)
                earliest = moments[k];
    }
    return earliest;
}

/* ---- the GPUs to keep free ---- */

static bool is_member(const struct advance *advance, uint32_t uid)
{
    for (int i = 0; i < advance->n_users; i++)
        if (advance->users[i] == uid)
            return true;
    return false;
}

/* When the task ends if it computes from `since_us` on, a waiting one on the slowest GPU that it
 * may get; TIME_NEVER: not known. */
static int64_t ends_us(const struct core *core, const struct task *task, int64_t since_us)
{
    double speed = task->n_gpus ? kind_speed_on(&core->view, task, task->gpus, task->n_gpus)
                                : kind_speed_least(&core->view, task);
    struct reading expected_us = task->request.expect.time_us;
    if (task->request.time_limit_us)
        return since_us + task->request.time_limit_us;
    return expected_us.valid ? since_us + (int64_t)(expected_us.value / speed) : TIME_NEVER;
}

/* What makes a GPU one to keep free. */
struct candidate {
    int gpu;
    bool has_member;   /* a task of a user of the reservation is on it */
    bool is_held_past; /* a task of another user may be there when it begins */
    bool is_choice;    /* the head of the queue is predicted to start there */
    int n_others;      /* tasks of other users there */
};

static struct candidate make_candidate(
    const struct core *core, int i, const struct advance *advance)
{
    const struct gpu_view *gpu = &core->view.gpus[i];
    struct candidate candidate = {.gpu = i, .is_choice = gpu->is_choice_of_head};
    for (int k = 0; k < gpu->n_residents; k++) {
        const struct resident *resident = &gpu->residents[k];
        const struct task *task = core_find_task(core, resident->task);
        bool is_members = is_member(advance, resident->uid);
        candidate.has_member |= is_members;
        candidate.n_others += !is_members;
        candidate.is_held_past |= !is_members && task &&
                                  ends_us(core, task, task->started_us) > advance->from_us;
    }
    return candidate;
}

static bool is_kept_sooner(const void *a, const void *b, const void *context)
{
    const struct candidate *one = a, *other = b;
    if (one->has_member != other->has_member)
        return one->has_member;
    if (one->is_held_past != other->is_held_past)
        return other->is_held_past;
    if (one->is_choice !=
        other->is_choice) /* or tasks placed on the others would move the choice */
        return other->is_choice;
    if (one->n_others != other->n_others)
        return one->n_others < other->n_others;
    return one->gpu > other->gpu;
}

static void keep_gpus(const struct core *core, const struct advance *advance)
{
    struct candidate kept[KEPT_MAX];
    size_t n = 0;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        struct candidate candidate = make_candidate(core, i, advance);
        if (gpu->id.is_place && gpu->health != VIEW_LOST && !gpu->set_aside_for)
            n = top_k_insert(
                kept, n, (size_t)advance->gpus, sizeof *kept, &candidate, is_kept_sooner, NULL);
    }
    for (size_t i = 0; i < n; i++)
        core->view.gpus[kept[i].gpu].set_aside_for = advance->id;
}

void core_set_aside(const struct core *core, const struct task *task, int64_t now_us)
{
    if (core->n_advances == 0)
        return;
    set_none_aside(core);
    for (int i = 0; i < core->view.n_gpus && core->fills_kept; i++)
        if (!core->view.gpus[i].kept_from_head)
            core->view.gpus[i].set_aside_for = core->advances[0].id;
    for (size_t i = 0; i < core->n_advances; i++) {
        const struct advance *advance = &core->advances[i];
        bool concerns = advance->until_us > now_us && !is_member(advance, task->uid) &&
                        ends_us(core, task, now_us) > advance->from_us;
        if (concerns)
            keep_gpus(core, advance);
    }
}

/* ---- what may use it until then ---- */

static bool note_kept(const struct core *core, const struct task *head, int64_t now_us)
{
    bool any = false;
    core_set_aside(core, head, now_us);
    for (int i = 0; i < core->view.n_gpus; i++) {
        core->view.gpus[i].kept_from_head = core->view.gpus[i].set_aside_for;
        any |= core->view.gpus[i].kept_from_head != 0;
    }
    return any;
}

/* The head loses nothing by it: it may not use these GPUs. */
int core_fill_kept(struct core *core, const struct task *head, int64_t now_us)
{
    const struct task_queue *queue;
    int r = 0, tries = FILL_TRIES_MAX, depth = CORE_QUEUE_DEPTH_MAX;
    if (core->n_advances == 0 || !note_kept(core, head, now_us))
        return 0;
    core->fills_kept = true;
    for (int i = 0; (queue = core_main_queue(core, i)) && r == 0; i++) {
        struct task *next;
        for (struct task *task = queue->first; task && r == 0 && tries > 0 && depth-- > 0;
             task = next) {
            next = task->next;
            bool may_pass = task != head && task->request.need.kind != NEED_PENDING &&
                            ends_us(core, task, now_us) != TIME_NEVER &&
                            !core_leaves_host_to(core, task, head);
            if (may_pass && tries-- > 0 && core_try_gpus(core, task, now_us) == PLACE_NOW)
                r = core_place_task(core, task, now_us);
        }
    }
    core->fills_kept = false;
    return r;
}

/* ---- tasks of its users ---- */

static int count_held(const struct core *core, const struct advance *advance)
{
    int n = 0;
    for (int i = 0; i < core->view.n_gpus; i++)
        n += make_candidate(core, i, advance).has_member;
    return n;
}

static bool is_placed_first(
    const struct core *core, const struct task *task, const struct advance *advance, int held)
{
    return is_member(advance, task->uid) && task->request.need.kind != NEED_PENDING &&
           held + task->request.gpus <= advance->gpus && core_can_be_served(core, task);
}

/* With ORDER_FAIR a queue is one user's. */
static bool is_of_others(
    const struct core *core, const struct task_queue *queue, const struct advance *advance)
{
    return core->settings.order == ORDER_FAIR && queue->first &&
           !is_member(advance, queue->first->uid);
}

static int schedule_advance(struct core *core, const struct advance *advance, int64_t now_us)
{
    const struct task_queue *queue;
    int r = 0, held = count_held(core, advance), tried = 0;
    for (int i = 0; (queue = core_main_queue(core, i)) && r == 0; i++) {
        struct task *next;
        if (is_of_others(core, queue, advance))
            continue;
        for (struct task *task = queue->first;
             task && r == 0 && held < advance->gpus && tried < CORE_QUEUE_DEPTH_MAX;
             task = next, tried++) {
            next = task->next;
            if (!is_placed_first(core, task, advance, held))
                continue;
            core_release_reservation(core); /* of the head: it comes after these */
            if (core_try_gpus(core, task, now_us) == PLACE_NOW)
                r = core_place_task(core, task, now_us);
            held = count_held(core, advance);
        }
    }
    return r;
}

int core_schedule_advances(struct core *core, int64_t now_us)
{
    int r = 0;
    for (size_t i = 0; i < core->n_advances && r == 0; i++) {
        const struct advance *advance = &core->advances[i];
        if (advance->from_us <= now_us && now_us < advance->until_us)
            r = schedule_advance(core, advance, now_us);
    }
    return r;
}
