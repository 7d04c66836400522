/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making room: two small tasks, each alone on a GPU, can keep a large one waiting though both would
 * fit on one GPU. One of them is moved beside the other if that costs less than it gains.
 *
 * The task that waits is the head of the main queue, and one GPU more would let it start. A GPU
 * that a single task keeps from it is emptied by moving that task to another GPU of the same kind,
 * where its memory is free with the margin, and where the kernels of all tasks together need at
 * most all of the time: so time-slicing slows none of them down much. A task or a GPU without these
 * values is not touched, nor is a task of a higher priority.
 *
 * The cost: the moved task stands still while it is suspended and resumed, as long as this machine
 * takes for its memory (EVENT_SUSPENSION_COST), and the head waits for that. The gain: the time
 * that the head would otherwise wait until a GPU is empty. A task whose time is known ends after
 * the rest of it; another is assumed to run for as long as the head has waited already (a task that
 * has run for an hour seldom ends within the next minute). A task is moved if the gain is over
 * twice the cost, and if its stops together cost at most 5 % of the time that it has computed. So
 * moves are bounded; and there is at most one for each head.
 *
 * Example: tasks 1 and 2 hold 8 GiB each, on two GPUs of 40 GiB, with kernels in 40 % of the time,
 * and how long they take is not known. Task 3 needs 35 GiB. To move task 1 takes 7 s: when task 3
 * has waited 15 s, task 1 is moved beside task 2, and task 3 starts on the GPU that it leaves.
 */
#include "core/pass/make_room.h"

#include "base/clock.h"
#include "core/ask/copy_room.h"
#include "core/ask/giving_way.h"
#include "core/ask/host_check.h"
#include "core/ask/placement.h"
#include "core/ask/queue_head.h"
#include "core/ask/queue_pause.h"
#include "core/ask/waits.h"
#include "core/decide/give_way.h"
#include "core/state/state.h"
#include "core/state/tasks.h"

/* ---- the gain ---- */

/* The remaining time of the task; a task beyond its expected time may end at any moment. */
static int64_t rest_us(const struct task *task, const struct task *head, int64_t now_us)
{
    bool is_known = task->request.expect.time_us.valid;
    return is_known ? task_rest_us(task, now_us) : now_us - head->queued_us;
}

/* When the GPU would be empty, from now on. */
static int64_t empty_in_us(
    const struct core *core, const struct gpu_view *gpu, const struct task *head, int64_t now_us)
{
    int64_t last_us = 0;
    for (int i = 0; i < gpu->n_residents; i++) {
        int64_t rest = rest_us(core_find_task(core, gpu->residents[i].task), head, now_us);
        last_us = rest > last_us ? rest : last_us;
    }
    return last_us;
}

/* How long the head would wait else. */
static int64_t gain_us(const struct core *core, const struct task *head, int64_t now_us)
{
    int64_t first_us = TIME_NEVER;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[i];
        bool may_be_its = cluster_view_is_available(&core->view, i, head, CLAIMS_NONE, NULL) &&
                          core->placement.verdicts[i].kind != VERDICT_FITS;
        int64_t empty_us = may_be_its ? empty_in_us(core, gpu, head, now_us) : TIME_NEVER;
        first_us = empty_us < first_us ? empty_us : first_us;
    }
    return first_us;
}

/* ---- the GPU that is freed ---- */

static bool has_no_external(const struct gpu_view *gpu)
{
    return gpu->external_processes.valid && gpu->external_processes.value == 0;
}

/* Does only one task block the head on this GPU? */
static bool is_kept_by_one(const struct core *core, int i, const struct task *head)
{
    const struct gpu_view *gpu = &core->view.gpus[i];
    double bytes = (double)head->request.need.bytes +
                   (double)core->settings.conditions.margin_bytes;
    bool would_fit = head->request.need.kind < NEED_ESTIMATED ||
                     bytes <= (double)gpu->id.mem_total_bytes;
    return gpu->n_residents == 1 && would_fit && has_no_external(gpu) &&
           cluster_view_is_available(
               &core->view, i, head, CLAIMS_LEAVING, placement_aside(&core->placement));
}

static bool may_be_moved(
    const struct core *core, const struct task *task, const struct task *head, int64_t now_us)
{
    int64_t cost_us = core_yield_cost_us(core, task);
    int n_stops = task->run->yield.suspensions + task->run->yield.moves + 1;
    return task->request.priority <= head->request.priority && task->state == TASK_RUNNING &&
           !task->ending && !task->run->memory_wait.bytes && task->n_gpus == 1 &&
           core_bytes_of(core, task).valid && core_may_suspend(core, task, now_us) &&
           task_computed_us(task, now_us) >= CORE_RUN_PER_COST * cost_us * n_stops;
}

/* ---- the GPU that it goes to ---- */

/* The part of the time in which the GPU runs kernels: from its tasks' expected values, or
 * measured. */
static struct reading busy_part(const struct gpu_view *gpu)
{
    struct reading sum = {.valid = has_no_external(gpu)};
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct reading *gract = &gpu->residents[i].expect.gract;
        sum.valid &= gract->valid;
        sum.value += gract->value;
    }
    return sum.valid ? sum : gpu->utilisation_level;
}

#define BUSY_MAX 1.0 /* of the time; beyond it, time slices slow all down */

/* May the task, which is alone on `from`, run on the GPU, too? */
static bool may_join(const struct core *core, const struct gpu_view *from, int i, int64_t now_us)
{
    const struct gpu_view *gpu = &core->view.gpus[i];
    const struct task *task = core_find_task(core, from->residents[0].task);
    struct reading own = busy_part(from), others = busy_part(gpu);
    return own.valid && others.valid && own.value + others.value <= BUSY_MAX &&
           core_can_take(core, task, reading_assume(core_bytes_of(core, task), 0), i, now_us);
}

/* The least busy GPU to which the task that is alone on `from` can be moved; -1: there is none. */
static int find_destination(const struct core *core, const struct gpu_view *from, int64_t now_us)
{
    int best = -1;
    double least = BUSY_MAX + 1;
    for (int i = 0; i < core->view.n_gpus; i++) {
        if (busy_part(&core->view.gpus[i]).value >= least || !may_join(core, from, i, now_us))
            continue;
        least = busy_part(&core->view.gpus[i]).value;
        best = i;
    }
    return best;
}

/* ---- the decision ---- */

#define GAIN_PER_COST 2 /* of the moved task's time and of the head's, each once */

struct move {
    const struct task *task; /* NULL: none is worth it */
    int to;
    int64_t cost_us;
};

/* Takes the move of the task that is alone on GPU `i`, if it is worth it and better than `best`. */
static void consider_move(
    const struct core *core, int i, const struct task *head, int64_t now_us, struct move *best)
{
    const struct task *task = core_find_task(core, core->view.gpus[i].residents[0].task);
    struct move move = {task, -1, core_yield_cost_us(core, task)};
    bool is_better = !best->task || move.cost_us < best->cost_us;
    bool is_worth_it = gain_us(core, head, now_us) > GAIN_PER_COST * move.cost_us;
    if (!is_better || !is_worth_it || !may_be_moved(core, task, head, now_us))
        return;
    move.to = find_destination(core, &core->view.gpus[i], now_us);
    if (move.to >= 0)
        *best = move;
}

/* The least expensive move that lets the head start, if one is worth it. */
static struct move find_move(const struct core *core, const struct task *head, int64_t now_us)
{
    struct move best = {0};
    int n_fit = 0;
    for (int i = 0; i < core->view.n_gpus; i++) {
        if (core->placement.verdicts[i].kind == VERDICT_FITS)
            n_fit++;
        else if (is_kept_by_one(core, i, head))
            consider_move(core, i, head, now_us, &best);
    }
    bool is_enough = n_fit + 1 >= head->request.gpus;
    return is_enough ? best : (struct move){0};
}

/* Has a task given way to the head, that has not started since? */
static bool has_made_room(const struct core *core, const struct task *head)
{
    for (int i = 0; i < core->n_tasks; i++) {
        const struct task *task = core->tasks[i];
        bool is_recent = task->state == TASK_MOVING ||
                         task->run->yield.resumed_us >= head->queued_us;
        if (task->run->yield.reason == YIELD_TO_ROOM && task->run->yield.to_task == head->id &&
            is_recent)
            return true;
    }
    return false;
}

int core_make_room(struct core *core, int64_t now_us)
{
    bool may_be = core->settings.make_room && core->settings.can_suspend &&
                  !core_queue_stopper(core);
    const struct task *head = may_be ? core_head_of_queue(core) : NULL;
    if (!head || head->request.need.kind == NEED_PENDING || has_made_room(core, head) ||
        core_awaits_sample(core, head) || core_check_host(core, head).kind != VERDICT_FITS ||
        core_try_gpus(core, head, now_us, &core->placement) == PLACE_NOW)
        return 0;
    struct move move = find_move(core, head, now_us);
    if (!move.task)
        return 0;
    struct reading bytes = core_bytes_of(core, move.task);
    return core_move_task(core, move.task, &move.to, bytes, YIELD_TO_ROOM, head->id, now_us);
}
