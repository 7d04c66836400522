/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPUs reservations in advance keep from a task.
 *
 * Before and while a reservation lasts, another user's task may be placed on its GPUs only if it
 * ends before the reservation begins, by its time limit, or else by its expected time. A task of
 * unknown time never fits. No task is ended for a reservation.
 *
 * A reservation is for a number of GPUs. The GPUs to keep free are chosen for each task that has to
 * be placed: first GPUs with tasks of the reservation's users, then GPUs without other tasks when
 * it begins, then those with the fewest tasks; of equal ones the last.
 *
 *     4 GPUs, a runs on GPU 0 until 14:00      reserve 2 GPUs, 16:00 to 18:00, for bob
 *     12:00  ada's task of 3 h: GPUs 0 and 1   kept free: GPUs 3 and 2
 *     12:00  ada's task of 5 h: GPUs 0 and 1   the same; of 4 h: all four
 *     12:00  ada's task of 5 h waits           her task of 3 h, behind it, is placed on GPU 2 or 3
 *     16:00  bob's tasks are placed before all others of the main queue, on up to 2 GPUs
 *
 * pass/advance_pass.c places the tasks of its users, and those that may fill its GPUs until it
 * begins.
 */
#include "core/ask/set_aside.h"

#include <errno.h>

#include "base/clock.h"
#include "base/top_k.h"
#include "core/kind_speed.h"
#include "core/questions.h"
#include "core/state/advances.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

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
    if (!core_is_advance_sound(advance) || advance->until_us <= now_us)
        return fault_set(fault, EINVAL,
            "a reservation needs 1 to %d GPUs, 1 to %d users, and a time that is not over",
            CORE_ADVANCE_GPUS_MAX, ADVANCE_USERS_MAX);
    if (advance->gpus > places - taken)
        return fault_set(fault, EINVAL,
            "gpus=%d: this server has %d, of which %d are reserved in that time", advance->gpus,
            places, taken);
    return 0;
}

/* ---- the GPUs to keep free ---- */

bool core_is_advance_member(const struct advance *advance, uint32_t uid)
{
    for (int i = 0; i < advance->n_users; i++)
        if (advance->users[i] == uid)
            return true;
    return false;
}

int64_t core_task_ends_us(const struct core *core, const struct task *task, int64_t since_us)
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
        bool is_members = core_is_advance_member(advance, resident->uid);
        candidate.has_member |= is_members;
        candidate.n_others += !is_members;
        candidate.is_held_past |= !is_members && task &&
                                  core_task_ends_us(core, task, task->started_us) >
                                      advance->from_us;
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

static void keep_gpus(const struct core *core, const struct advance *advance, uint64_t *set_aside)
{
    struct candidate kept[CORE_ADVANCE_GPUS_MAX];
    size_t n = 0;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        struct candidate candidate = make_candidate(core, i, advance);
        if (gpu->id.is_place && gpu->health != VIEW_LOST && !set_aside[i])
            n = top_k_insert(
                kept, n, (size_t)advance->gpus, sizeof *kept, &candidate, is_kept_sooner, NULL);
    }
    for (size_t i = 0; i < n; i++)
        set_aside[kept[i].gpu] = advance->id;
}

void core_set_aside(const struct core *core, const struct task *task, const uint64_t *closed,
    int64_t now_us, struct placement *ret_answer)
{
    uint64_t *set_aside = ret_answer->set_aside;
    ret_answer->any_set_aside = core->n_advances > 0 || closed;
    for (int i = 0; i < core->view.n_gpus && ret_answer->any_set_aside; i++)
        set_aside[i] = closed ? closed[i] : 0;
    for (size_t i = 0; i < core->n_advances; i++) {
        const struct advance *advance = &core->advances[i];
        bool concerns = advance->until_us > now_us && !core_is_advance_member(advance, task->uid) &&
                        core_task_ends_us(core, task, now_us) > advance->from_us;
        if (concerns)
            keep_gpus(core, advance, set_aside);
    }
}

int core_count_held(const struct core *core, const struct advance *advance)
{
    int n = 0;
    for (int i = 0; i < core->view.n_gpus; i++)
        n += make_candidate(core, i, advance).has_member;
    return n;
}
