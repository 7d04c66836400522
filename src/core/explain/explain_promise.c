/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a running task has the speed that it was promised, and if not, what is done, or why
 * nothing can be. */
#include <math.h>

#include "core/ask/giver.h"
#include "core/ask/probe.h"
#include "core/probe.h"
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
                            "promises, and tasks that are starting do not; newer promises only "
                            "while it has been slower than promised in all)");
}

static double in_seconds(int64_t us)
{
    return (double)us / (double)SECOND_US;
}

/* How its speed alone becomes known, or why not. */
static void add_probe(
    struct text_line *line, const struct core *core, const struct task *task, int64_t now_us)
{
    const struct probe_answer probe = core_find_probe(core, task, now_us);
    switch (probe.kind) {
    case PROBE_NONE:
        break;
    case PROBE_RUNS:
        text_line_add(line, "; it is measured alone now, while the tasks beside it are paused");
        break;
    case PROBE_DUE:
        text_line_add(line, "; the tasks beside it pause next for %.1f s to measure it alone",
            in_seconds(probe.stop_us));
        break;
    case PROBE_LATER:
        text_line_add(line,
            "; the tasks beside it pause for %.1f s to measure it alone, in %.0f s "
            "at the earliest",
            in_seconds(probe.stop_us), ceil(in_seconds(probe.at_us - now_us)));
        break;
    case PROBE_UNSETTLED:
        text_line_add(line, "; it is measured alone once all tasks there run and have settled");
        break;
    case PROBE_REFUSED:
        text_line_add(line, "; it is not measured alone: task %s does not pause for that",
            core_task_label(core, probe.task).text);
        break;
    case PROBE_UNFROZEN:
        text_line_add(line, "; it is not measured alone: task %s could not be paused",
            core_task_label(core, probe.task).text);
        break;
    case PROBE_EXTERNAL:
        text_line_add(line, "; it cannot be measured alone: colloc cannot pause all that may "
                            "compute there");
        break;
    case PROBE_SLOW_STEPS:
        text_line_add(line,
            "; it is not measured alone: %d of its steps take too long for a "
            "pause of %d s",
            PROBE_STEPS, (int)(PROBE_MAX_US / SECOND_US));
        break;
    case PROBE_NO_STEPS:
        text_line_add(line, "; no steps of it are known yet");
        break;
    case PROBE_FAILED:
        text_line_add(line,
            "; the tasks beside it have paused %d times, and it could not be "
            "measured alone",
            PROBE_TRIES);
        break;
    }
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
    if (!promise->reported_us) {
        text_line_add(&line, "not measured yet: held by prediction");
        add_probe(&line, core, task, now_us);
    } else if (promise->missed_since_us)
        text_line_add(&line, "missed");
    else
        text_line_add(&line, "kept");
    if (promise->is_doubted)
        text_line_add(&line, "; its steps say more, which the activity beside it cannot cause");
    if (promise->missed_since_us)
        add_missed(&line, core, task, now_us);
    else if (core_is_behind_promise(task))
        text_line_add(&line,
            "; no task comes beside it until it is in all, too: it has taken %.2f "
            "times as long as alone so far",
            promise->average.value);
    if (promise->n_gave_way)
        text_line_add(&line, "; tasks have given way to it %d time%s", promise->n_gave_way,
            promise->n_gave_way > 1 ? "s" : "");
    add_learned(&line, core, task);
    return buffer;
}

const char *core_explain_probes(
    const struct core *core, const struct task *task, char *buffer, size_t size)
{
    struct text_line line = {buffer, size, 0};
    const struct task_yield *yield = &task->run->yield;
    struct task_label last = core_task_label(core, yield->probed_for);
    buffer[0] = '\0';
    if (yield->probes == 1)
        text_line_add(&line, "paused %.1f s to measure task %s alone", in_seconds(yield->probed_us),
            last.text);
    else if (yield->probes > 1)
        text_line_add(&line,
            "paused %d times, %.1f s in all, to measure others alone, the last time task %s",
            yield->probes, in_seconds(yield->probed_us), last.text);
    return buffer;
}
