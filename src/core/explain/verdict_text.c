/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands against a placement, as text for its user.
 *
 * The verdicts of a policy (core/policy.h) become text here and nowhere else. A verdict has its
 * kind, a value, the limit that it exceeds, and perhaps a task, so the text can say how much:
 *
 *     VERDICT_MEMORY_SHORT  have 20 GiB, limit 23.1 GiB    "3.1 GiB short"
 *     VERDICT_SMACT_HIGH    have 0.91, limit 0.8           "SMACT 91 % over 80 %"
 *     VERDICT_RESERVED      task 12                        "reserved for task 12"
 */
#include "core/explain/verdict_text.h"

#include <math.h>

#include "base/clamp.h"
#include "base/units.h"
#include "core/state/tasks.h"

static void add_memory_short(struct text_line *line, const struct verdict *verdict)
{
    char text[32];
    text_line_add(line, "%s short%s",
        format_size(clamp_bytes(verdict->limit - verdict->have), text, sizeof text),
        verdict->kind == VERDICT_MEMORY_KEPT
            ? " with what is kept for tasks of unknown memory that are starting"
            : "");
}

/* In per cent; with decimals where the value is close to its limit. */
static void add_activity(
    struct text_line *line, const char *what, const struct verdict *verdict, const char *remark)
{
    int decimals = verdict->have - verdict->limit < 0.005 ? 2 : 0;
    text_line_add(line, "%s %.*f %% over %.4g %%%s", what, decimals, 100 * verdict->have,
        100 * verdict->limit, remark);
}

static void add_not_idle(struct text_line *line, const struct verdict *verdict)
{
    if (verdict->have > 0)
        text_line_add(
            line, "%.0f task%s there, must be idle", verdict->have, verdict->have > 1 ? "s" : "");
    else if (verdict->limit > 0)
        text_line_add(line, "in use by %.0f external process%s, must be idle", verdict->limit,
            verdict->limit > 1 ? "es" : "");
    else
        text_line_add(line, "not known to be idle (memory in use, or no list of processes)");
}

static void add_one_process(
    struct text_line *line, const struct core *core, const struct verdict *verdict)
{
    text_line_add(line, "its compute mode admits one process, now ");
    if (verdict->task)
        text_line_add(line, "task %s", core_task_label(core, verdict->task).text);
    else
        text_line_add(line, "an external one");
}

void verdict_text_add_host(
    struct text_line *line, const struct core *core, const struct verdict *verdict)
{
    const struct host_resources *all = &core->settings.host;
    char free_text[32], all_text[32], needed[32];
    if (verdict->kind == VERDICT_HOST_CPUS)
        text_line_add(line, "%.0f of %d CPUs are free, it needs %.0f", verdict->have, all->cpus,
            verdict->limit);
    else
        text_line_add(line, "%s of %s of main memory are free, it needs %s",
            format_size(clamp_bytes(verdict->have), free_text, sizeof free_text),
            format_size(all->memory_bytes, all_text, sizeof all_text),
            format_size(clamp_bytes(verdict->limit), needed, sizeof needed));
}

/* The text of a verdict without figures. If it names a task: what follows the task's id, and the
 * text for several GPUs with different tasks. */
static const struct verdict_text {
    const char *text, *behind_task;
    const char *of_many, *behind_tasks;
} verdict_texts[VERDICT_KINDS] = {
    [VERDICT_FITS] = {.text = "fits"},
    [VERDICT_NOT_A_PLACE] = {.text = "split into MIG instances"},
    [VERDICT_OTHER_KIND] = {.text = "of another kind"},
    [VERDICT_LOST] = {.text = "lost"},
    [VERDICT_FAULTY] = {.text = "faulty"},
    [VERDICT_OUT_OF_USE] = {.text = "out of use (setting drain)"},
    [VERDICT_NO_SAMPLE] = {.text = "no recent reading"},
    [VERDICT_MIG_ONE_ONLY] = {.text = "MIG instances serve tasks of one GPU only"},
    [VERDICT_EXCLUSIVE] = {"task ", " has it to itself", "tasks ", " have them to themselves"},
    [VERDICT_DRAINED] = {"kept empty for task ", ", which recovers", "kept empty for tasks ",
        ", which recover"},
    [VERDICT_RESERVED] = {"reserved for task ", "", "reserved for tasks ", ""},
    [VERDICT_RETURN] = {"kept for task ", ", which is suspended and comes back only to it",
        "kept for tasks ", ", which are suspended and come back only to them"},
    [VERDICT_SET_ASIDE] = {"kept free for reservation ", "", "kept free for reservations ", ""},
    [VERDICT_HOLD_OFF] = {"task ", " is still taking its memory", "tasks ",
        " are still taking their memory"},
    [VERDICT_LEAVING] = {"task ", " is still leaving it", "tasks ", " are still leaving them"},
    [VERDICT_MEMORY_UNKNOWN] = {.text = "free memory not known"},
    [VERDICT_SMACT_UNKNOWN] = {.text = "activity not known"},
    [VERDICT_POWER_UNKNOWN] = {.text = "power not known"},
    [VERDICT_PCIE_UNKNOWN] = {.text = "PCIe traffic not known"},
    [VERDICT_OTHER_MPS_USER] = {"task ",
        " of another user shares it by MPS, which serves one user at a time (mps-users-together)",
        "tasks ",
        " of other users share them by MPS, which serves one user at a time (mps-users-together)"},
    [VERDICT_MPS_ON_SOME] = {"task ",
        " has it, and its compute mode admits others only by MPS, which mps-gpus does not allow on "
        "all GPUs that this task may get",
        "tasks ",
        " have them, and their compute mode admits others only by MPS, which mps-gpus does not allow "
        "on all GPUs that this task may get"},
    [VERDICT_SERVICE] = {"task ", ", a service, has not met its latency target for long enough",
        "tasks ", ", services, have not met their latency targets for long enough"},
    [VERDICT_PROMISE] = {"task ", " does not have its promised speed, or has not had it for long",
        "tasks ", " do not have their promised speeds, or have not had them for long"},
    [VERDICT_CROWDED] = {"too many shared it; tasks have given way to task ", " there",
        "too many shared them; tasks have given way to tasks ", " there"},
    [VERDICT_NODE] = {.text = "its server lacks CPUs, host memory or a slot"},
};

/* How many tasks are there, or are starting. */
static void add_task_figures(struct text_line *line, const struct verdict *verdict)
{
    switch (verdict->kind) {
    case VERDICT_FULL:
        text_line_add(line, "%.0f tasks there already", verdict->have);
        break;
    case VERDICT_MPS_FULL:
        text_line_add(
            line, "%.0f clients of MPS, which serves %.0f on a GPU", verdict->have, verdict->limit);
        break;
    case VERDICT_STARTING:
        text_line_add(line,
            "%.0f task%s of unknown activity %s starting there, at most %.0f may (starting-max)",
            verdict->have, verdict->have > 1 ? "s" : "", verdict->have > 1 ? "are" : "is",
            verdict->limit);
        break;
    case VERDICT_START_LATE:
        text_line_add(line,
            "%.0f task%s starting there, whose activity is measured first (after a long wait)",
            verdict->have, verdict->have > 1 ? "s are" : " is");
        break;
    default:
        break;
    }
}

/* Power, PCIe traffic and activity. */
static void add_load_figures(struct text_line *line, const struct verdict *verdict)
{
    switch (verdict->kind) {
    case VERDICT_SERVER_POWER:
        text_line_add(line, "all GPUs would draw %.0f W with it, at most %.0f W (server-power-max)",
            verdict->have, verdict->limit);
        break;
    case VERDICT_POWER_NEVER:
        text_line_add(line,
            "all GPUs would draw at least %.0f W with it even if no other task ran, at most %.0f W "
            "(server-power-max)",
            verdict->have, verdict->limit);
        break;
    case VERDICT_POWER_HIGH:
        text_line_add(line, "power %.0f W over %.0f W", verdict->have, verdict->limit);
        break;
    case VERDICT_PCIE_HIGH:
        text_line_add(line, "PCIe traffic %.1f GB/s over %.1f GB/s", verdict->have / 1e9,
            verdict->limit / 1e9);
        break;
    case VERDICT_SMACT_HIGH:
        add_activity(line, "SMACT", verdict, "");
        break;
    case VERDICT_SMACT_EXPECTED:
        add_activity(line, "expected SMACT", verdict, " (a task is starting)");
        break;
    case VERDICT_UTILISATION_HIGH:
        add_activity(line, "utilisation", verdict, " (SMACT not reported)");
        break;
    default:
        break;
    }
}

/* Of the speeds that are predicted. */
static void add_speed_figures(
    struct text_line *line, const struct core *core, const struct verdict *verdict)
{
    switch (verdict->kind) {
    case VERDICT_SLOWDOWN:
        text_line_add(line,
            "a task would take %.2f times as long as alone, at most %.2f is allowed", verdict->have,
            verdict->limit);
        break;
    case VERDICT_NO_GAIN:
        text_line_add(line,
            "shared, all tasks together would %s %.0f %% of a GPU, at least %.0f %% is required",
            verdict->have < 0 ? "lose" : "gain", 100 * fabs(verdict->have), 100 * verdict->limit);
        break;
    case VERDICT_SERVICE_SLOWED:
        text_line_add(line,
            "requests of task %s, a service, would take %.2f times as long, at most %.2f meets its "
            "latency target",
            core_task_label(core, verdict->task).text, verdict->have, verdict->limit);
        break;
    case VERDICT_PROMISE_SLOWED:
        text_line_add(line,
            "task %s would take %.2f times as long as alone, at most %.2f is promised",
            core_task_label(core, verdict->task).text, verdict->have, verdict->limit);
        break;
    case VERDICT_PROMISE_OWN:
        text_line_add(line,
            "the task itself would take %.2f times as long as alone, at most %.2f is promised",
            verdict->have, verdict->limit);
        break;
    default:
        break;
    }
}

/* A verdict has figures of one of these kinds, or none. VERDICT_HOST_CPUS and VERDICT_HOST_MEMORY
 * are not of one GPU: verdict_text_add_host. */
static void add_figures(
    struct text_line *line, const struct core *core, const struct verdict *verdict)
{
    add_task_figures(line, verdict);
    add_load_figures(line, verdict);
    add_speed_figures(line, core, verdict);
    switch (verdict->kind) {
    case VERDICT_NOT_IDLE:
        add_not_idle(line, verdict);
        break;
    case VERDICT_MEMORY_SHORT:
    case VERDICT_MEMORY_KEPT:
        add_memory_short(line, verdict);
        break;
    case VERDICT_ONE_PROCESS:
        add_one_process(line, core, verdict);
        break;
    default:
        break;
    }
}

bool verdict_text_names_task(enum verdict_kind kind)
{
    return verdict_texts[kind].behind_task != NULL;
}

struct task_label verdict_text_name(const struct core *core, const struct verdict *verdict)
{
    /* The number of a reservation is no task. */
    return verdict->kind == VERDICT_SET_ASIDE ? task_label_of_id(verdict->task)
                                              : core_task_label(core, verdict->task);
}

void verdict_text_add_tasks(struct text_line *line, enum verdict_kind kind, const char *tasks)
{
    text_line_add(
        line, "%s%s%s", verdict_texts[kind].of_many, tasks, verdict_texts[kind].behind_tasks);
}

void verdict_text_add(
    struct text_line *line, const struct core *core, const struct verdict *verdict)
{
    const struct verdict_text *entry = &verdict_texts[verdict->kind];
    if (!entry->text)
        add_figures(line, core, verdict);
    else if (entry->behind_task)
        text_line_add(
            line, "%s%s%s", entry->text, verdict_text_name(core, verdict).text, entry->behind_task);
    else
        text_line_add(line, "%s", entry->text);
}
