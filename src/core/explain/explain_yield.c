/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a task that has begun does not compute, as text for its user: it was paused, suspended or
 * moved (core/decide/give_way.c), or its allocation waits for GPU memory (memory_answer.c).
 *
 *     paused by its user; `colloc resume 3` lets it go on
 *     suspended for task 12; to resume it: GPU 0: 3.1 GiB short
 *     its allocation of 6.0 GiB waits for GPU memory; task 3 gives way to it
 *
 * After "to resume it: " the caller adds the present obstacle.
 */
#include "base/clamp.h"
#include "base/units.h"
#include "core/ask/copy_room.h"
#include "core/ask/deadline.h"
#include "core/ask/giving_way.h"
#include "core/explain/explain_parts.h"
#include "core/memory_domain.h"
#include "core/state/copies.h"
#include "core/state/tasks.h"
#include "core/text_line.h"

bool explain_has_stopped(const struct task *task)
{
    return task->state == TASK_PAUSED || task->state == TASK_SUSPENDED ||
           task_state_is_changing(task->state);
}

static void add_yield_reason(
    struct text_line *line, const struct core *core, const struct task *task)
{
    static const char *const texts[YIELD_REASONS] = {
        [YIELD_TO_USER] = "by its user",
        [YIELD_TO_MEMORY] = "for want of GPU memory",
        [YIELD_TO_TASK] = "to let another task run",
        [YIELD_TO_SLOT] = "because its time slot was over",
        [YIELD_TO_ROOM] = "to make room on its GPU",
        [YIELD_GPU_FAILING] = "because its GPU is failing",
        [YIELD_UNUSED] = "because it did not use its GPUs",
        [YIELD_TO_SERVICE] = "because a service beside it missed its latency target",
        [YIELD_TO_PROMISE] = "because a task beside it did not have its promised speed",
        [YIELD_TO_SPEED] = "because too many shared its GPU",
        [YIELD_TO_PROBE] = "for a moment, to measure a task beside it alone",
    };
    struct task_label to = core_task_label(core, task->run->yield.to_task);
    if (task->run->yield.reason == YIELD_TO_SERVICE && task->run->yield.to_task) {
        text_line_add(line, "for task %s, a service that missed its latency target", to.text);
        return;
    }
    if (task->run->yield.reason == YIELD_TO_PROMISE && task->run->yield.to_task) {
        text_line_add(line, "for task %s, which did not have its promised speed", to.text);
        return;
    }
    if (task->run->yield.reason == YIELD_TO_SPEED && task->run->yield.to_task) {
        text_line_add(line,
            "because measured speeds showed that too many shared its GPU, of which task %s was the "
            "slowest",
            to.text);
        return;
    }
    if (task->run->yield.reason == YIELD_TO_PROBE && task->run->yield.to_task) {
        text_line_add(line, "for a moment, to measure task %s alone", to.text);
        return;
    }
    bool names_task = task->run->yield.reason == YIELD_TO_MEMORY ||
                      task->run->yield.reason == YIELD_TO_TASK ||
                      task->run->yield.reason == YIELD_TO_ROOM;
    if (task->run->yield.to_task == task->id)
        text_line_add(line, "because its allocation waits for GPU memory");
    else if (task->run->yield.to_task && names_task)
        text_line_add(line, "for task %s", to.text);
    else
        text_line_add(line, "%s", texts[task->run->yield.reason]);
}

/* "its copy of 24.0 GiB finds too little host memory: of 60.0 GiB (suspend-memory-max) suspended
 * tasks have 30.0 GiB, and 28.0 GiB are kept for other users" */
static void add_copy_room(struct text_line *line, const struct core *core, const struct task *task)
{
    char wanted[32], max[32], taken[32], kept[32];
    const struct copy_share of = core_copy_share(core, task);
    double bytes = reading_assume(core_copy_bytes(core, task), 0);
    text_line_add(line,
        "its copy of %s finds too little host memory: of %s (suspend-memory-max) suspended tasks "
        "have %s",
        format_size(clamp_bytes(bytes), wanted, sizeof wanted),
        format_size(clamp_bytes(of.max), max, sizeof max),
        format_size(clamp_bytes(of.taken), taken, sizeof taken));
    if (of.taken + bytes <= of.max)
        text_line_add(line, ", and %s are kept for other users",
            format_size(clamp_bytes(of.kept), kept, sizeof kept));
}

static bool lacks_copy_room(const struct core *core, const struct task *task)
{
    return task->state == TASK_RUNNING && !task->ending && task->n_gpus > 0 &&
           core_can_suspend(core, task) && !core_has_copy_room(core, task);
}

const char *core_explain_copy(
    const struct core *core, const struct task *task, char *buffer, size_t size)
{
    struct text_line line = {buffer, size, 0};
    buffer[0] = '\0';
    if (lacks_copy_room(core, task))
        add_copy_room(&line, core, task);
    return buffer;
}

/* The tasks beside the one whose allocation waits that would give way, but for host memory. */
static void add_copies_without_room(
    struct text_line *line, const struct core *core, const struct task *task)
{
    const struct resident *resident;
    for (int i = 0; i < task->n_gpus; i++) {
        struct domain_walk walk = memory_domain_walk(&core->view.gpus[task->gpus[i]]);
        while ((resident = memory_domain_resident(&walk))) {
            const struct task *other = core_find_task(core, resident->task);
            if (other == task || !lacks_copy_room(core, other))
                continue;
            text_line_add(line, "; task %s cannot give way: ", task_label(other).text);
            add_copy_room(line, core, other);
            return; /* one says it for all */
        }
    }
}

void explain_memory_wait(struct text_line *line, const struct core *core, const struct task *task)
{
    char text[32];
    text_line_add(line, "its allocation of %s waits for GPU memory",
        format_size(task->run->memory_wait.bytes, text, sizeof text));
    for (int i = 0; i < core->n_tasks; i++) {
        const struct task *other = core->tasks[i];
        bool gives_way = task_state_is_changing(other->state) &&
                         other->run->yield.reason == YIELD_TO_MEMORY &&
                         other->run->yield.to_task == task->id;
        if (gives_way && other != task)
            text_line_add(line, "; task %s gives way to it", task_label(other).text);
    }
    add_copies_without_room(line, core, task);
}

void explain_yield(struct text_line *line, const struct core *core, const struct task *task)
{
    static const char *const verbs[TASK_STATES] = {
        [TASK_PAUSED] = "paused ",
        [TASK_SUSPENDING] = "being suspended ",
        [TASK_SUSPENDED] = "suspended ",
        [TASK_RESUMING] = "being resumed; it was suspended ",
        [TASK_MOVING] = "being moved ",
    };
    text_line_add(line, "%s%s", line->used ? "; " : "", verbs[task->state]);
    if (task->state == TASK_MOVING)
        text_line_add(line, "to GPU %s ", core->view.gpus[task->run->yield.to_gpus[0]].id.label);
    add_yield_reason(line, core, task);
    if (task->state == TASK_SUSPENDED && task->run->yield.has_neighbour)
        text_line_add(line, "; its memory %s GPU %s",
            task->run->yield.is_relocating ? "goes to the host from" : "lies on",
            core->view.gpus[task->run->yield.neighbour].id.label);
    if (task->state == TASK_SUSPENDED && task->run->yield.keeps_context &&
        task_context_gpu(task) >= 0)
        text_line_add(line, "; its context %s GPU %s",
            task->run->yield.is_relocating ? "leaves" : "has stayed on",
            core->view.gpus[task_context_gpu(task)].id.label);
    if (task_is_context_stuck(task))
        text_line_add(line, ", since the driver has refused %d times to take it off",
            task->run->yield.context_refusals);
    if (task->ending)
        text_line_add(line, "; it is being ended");
    else if (task->run->yield.by_user)
        text_line_add(line, "; `colloc resume %s` lets it go on", task_label(task).text);
    else if (task->run->yield.is_unused)
        text_line_add(line, "; it goes on when it calls CUDA, or by `colloc resume %s`",
            task_label(task).text);
    else if (task->state == TASK_SUSPENDED)
        text_line_add(line, "; to resume it: ");
    bool stays = task->run->yield.by_user || task->run->yield.is_unused ||
                 task->state == TASK_PAUSED;
    if (stays && core_recall_us(core, task) != TIME_NEVER)
        text_line_add(line, "; its ranks go on by themselves after %d s",
            (int)(core->settings.ranks_away_us / SECOND_US));
}
