/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a task is not eligible, so that no policy is called for it (eligibility.c), as text for users
 * and as one of Slurm's words for reasons.
 *
 *     its time of begin        "may begin 1:30:00 from now"                  BeginTime
 *     dependencies             "waits for the end of ok:12, any:13"          Dependency
 *     a limit of its array     "2 tasks of its array 7 are at work, ..."     JobArrayTaskLimit
 *     of its user or project   "with it, its user would have more than ..."  QOSMaxGRESPerUser
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/units.h"
#include "core/ask/standing.h"
#include "core/explain/explain_parts.h"
#include "core/questions.h"
#include "core/state/tasks.h"
#include "core/state/users.h"
#include "core/text_line.h"

/* Chosen: what fits on a line of a terminal; further ones are counted. */
#define DEPENDENCIES_LISTED 8

/* "the GPU hours charged to its user within the last 168 h, 20.5, have reached 20" */
static void add_usage_limit(
    struct text_line *line, const struct core *core, const struct task *task, int64_t now_us)
{
    bool is_project = task->gate == GATE_PROJECT_USAGE;
    const struct core_settings *settings = &core->settings;
    int64_t limit_us = is_project ? settings->project_limits.usage_us
                                  : settings->user_limits.usage_us;
    const char *who = is_project ? "project" : "user";
    long long limit_h = limit_us / HOUR_US;
    uint32_t id = is_project ? (uint32_t)core_find_user(core, task->uid)->fair.project : task->uid;
    char text[64];
    if (!settings->usage_window_us) {
        text_line_add(line,
            "the GPU hours charged to its %s, decayed by usage-half-life, have reached %lld "
            "(gpu-hours-per-%s)",
            who, limit_h, who);
        return;
    }
    text_line_add(line,
        "the GPU hours charged to its %s within the last %.4g h, %.1f, have reached %lld "
        "(gpu-hours-per-%s)",
        who, (double)settings->usage_window_us / (double)HOUR_US,
        (double)core_usage_of(core, is_project, id, now_us) / (double)HOUR_US, limit_h, who);
    int64_t then_us = core_usage_falls_below(core, is_project, id, limit_us, now_us);
    if (then_us > now_us)
        text_line_add(line, "; if nothing more is charged, they are fewer in %s",
            format_elapsed(then_us - now_us, text, sizeof text));
}

/* A limit of the task's user or project. */
static void add_use_limit(
    struct text_line *line, const struct core *core, const struct task *task, int64_t now_us)
{
    bool is_project = task->gate >= GATE_PROJECT_TASKS;
    const struct core_settings *settings = &core->settings;
    const struct use_limits *limits = is_project ? &settings->project_limits
                                                 : &settings->user_limits;
    const char *who = is_project ? "project" : "user";
    char text[32];
    switch (task->gate) {
    case GATE_USER_TASKS:
    case GATE_PROJECT_TASKS:
        text_line_add(line,
            "%d tasks of its %s are at work, as many as one may have (running-per-%s)",
            limits->tasks, who, who);
        break;
    case GATE_USER_GPUS:
    case GATE_PROJECT_GPUS:
        text_line_add(line, "with it, its %s would have more than %d GPUs (gpus-per-%s)", who,
            limits->gpus, who);
        break;
    case GATE_USER_MEMORY:
    case GATE_PROJECT_MEMORY:
        text_line_add(line,
            "with it, its %s would have more than %s of GPU memory (gpu-memory-per-%s)", who,
            format_size(limits->memory_bytes, text, sizeof text), who);
        break;
    default:
        add_usage_limit(line, core, task, now_us);
        break;
    }
}

/* The limit that keeps the task, which has no open dependency and may begin. */
static void add_limit(
    struct text_line *line, const struct core *core, const struct task *task, int64_t now_us)
{
    switch (task->gate) {
    case GATE_ARRAY:
        text_line_add(line,
            "%d tasks of its array %" PRIu64 " are at work, as many as its limit allows",
            task->array.limit, task->array.id);
        break;
    case GATE_NONE:
        text_line_add(line, "becomes eligible at once");
        break;
    default:
        add_use_limit(line, core, task, now_us);
        break;
    }
}

/* "ok:12"; "ok:14" on an array of which a task is left, "ok:14_3" on one of its tasks. */
static struct task_label name_dependency(const struct core *core, const struct dependency *on)
{
    const struct task *first = core_next_task(core, on->first - 1);
    if (on->first == on->last)
        return core_task_label(core, on->first);
    return task_label_of_id(first && first->id <= on->last ? first->array.id : on->first);
}

static void add_dependency(
    struct text_line *line, const struct core *core, const struct dependency *on)
{
    text_line_add(
        line, "%s:%s", dependency_kind_name((int)on->kind), name_dependency(core, on).text);
}

void explain_gate(
    struct text_line *line, const struct core *core, const struct task *task, int64_t now_us)
{
    char text[64];
    if (task->request.begin_us > now_us)
        text_line_add(line,
            task->run->service.restarts ? "it has ended and is started again in %s"
                                        : "may begin %s from now",
            format_elapsed(task->request.begin_us - now_us, text, sizeof text));
    for (int i = 0; i < task->n_after && i < DEPENDENCIES_LISTED; i++) {
        text_line_add(line, "%s", i ? ", " : line->used ? "; waits for " : "waits for ");
        add_dependency(line, core, &task->after[i]);
    }
    if (task->n_after > DEPENDENCIES_LISTED)
        text_line_add(line, " and %d more", task->n_after - DEPENDENCIES_LISTED);
    if (line->used == 0)
        add_limit(line, core, task, now_us);
}

const char *explain_gate_word(const struct task *task)
{
    static const char *const words[TASK_GATES] = {[GATE_NONE] = "BeginTime",
        [GATE_ARRAY] = "JobArrayTaskLimit",
        [GATE_USER_TASKS] = "QOSMaxJobsPerUserLimit",
        [GATE_USER_GPUS] = "QOSMaxGRESPerUser",
        [GATE_USER_MEMORY] = "QOSMaxMemoryPerUser",
        [GATE_USER_USAGE] = "AssocGrpGRESMinutes",
        [GATE_PROJECT_TASKS] = "AssocGrpJobsLimit",
        [GATE_PROJECT_GPUS] = "AssocGrpGRES",
        [GATE_PROJECT_MEMORY] = "AssocGrpMemLimit",
        [GATE_PROJECT_USAGE] = "AssocGrpGRESMinutes"};
    return task->n_after ? "Dependency" : words[task->gate];
}
