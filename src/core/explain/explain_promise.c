/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a running task has the speed that it was promised, and if not, what is done, or why
 * nothing can be. */
#include "core/ask/giver.h"
#include "core/questions.h"
#include "core/state/promise.h"
#include "core/state/state.h"
#include "core/state/tasks.h"
#include "core/text_line.h"

static bool is_alone(const struct core *core, const struct task *task)
{
    for (int i = 0; i < task->n_gpus; i++)
        if (core->view.gpus[task->gpus[i]].n_residents > 1)
            return false;
    return true;
}

static void add_missed(
    struct text_line *line, const struct core *core, const struct task *task, int64_t now_us)
{
    const struct task *giver = core_find_giver(core, task, now_us);
    if (giver)
        text_line_add(line, "; task %s gives way next", task_label(giver).text);
    else if (is_alone(core, task))
        text_line_add(line, "; no task of colloc is beside it, so another process, or the training "
                            "itself, is the cause");
    else if (!core->settings.can_pause && !core->settings.can_suspend)
        text_line_add(line, "; it cannot be held: this server neither pauses nor suspends tasks");
    else
        text_line_add(line, "; it cannot be held: no task beside it may give way (services, older "
                            "promises, and tasks that are starting do not)");
}

/* Which predictions the promise was given by. */
static void add_learned(struct text_line *line, const struct core *core, const struct task *task)
{
    struct learned_delay learned = core_learned_delay(core, task->run->share.sharing);
    if (learned.factor != 1)
        text_line_add(line,
            "; tasks here are predicted to delay each other %.2f times as much as by the model, as "
            "measured speeds of the tasks of %d user%s show",
            learned.factor, learned.n_users, learned.n_users > 1 ? "s" : "");
}

const char *core_explain_promise(
    const struct core *core, uint64_t id, int64_t now_us, char *buffer, size_t size)
{
    struct text_line line = {buffer, size, 0};
    const struct task *task = core_find_task(core, id);
    buffer[0] = '\0';
    if (!task || !core_has_promise(task) || task->state != TASK_RUNNING)
        return buffer;
    const struct task_promise *promise = &task->run->promise;
    if (!promise->reported_us)
        text_line_add(&line, "not measured yet: held by prediction");
    else if (promise->missed_since_us)
        text_line_add(&line, "missed");
    else
        text_line_add(&line, "kept");
    if (promise->is_doubted)
        text_line_add(&line, "; its steps say more, which the activity beside it cannot cause");
    if (promise->missed_since_us)
        add_missed(&line, core, task, now_us);
    if (promise->n_gave_way)
        text_line_add(&line, "; tasks have given way to it %d time%s", promise->n_gave_way,
            promise->n_gave_way > 1 ? "s" : "");
    add_learned(&line, core, task);
    return buffer;
}
