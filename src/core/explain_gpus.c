/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands against a task on each GPU, as text for its user. GPUs against which the same stands
 * are named together, at the first of them:
 *
 *     GPUs 0 to 2, 5: task 7 has it to itself; GPU 3: 3.1 GiB short; GPU 4: lost
 *
 * GPUs that the task cannot have are not named: those of another kind, and those that are divided
 * into MIG instances.
 */
#include <string.h>

#include "core/explain_parts.h"
#include "core/node_spread.h"
#include "core/verdict_text.h"

/* Chosen: what fits on a line of a terminal; the GPUs of further texts are counted. */
#define TEXTS_LISTED 8
#define TEXT_SIZE    256

/* The verdicts on a task's GPUs. */
struct gpu_verdicts {
    const struct core *core;
    const struct task *task;
    const struct verdict *list; /* of each GPU of the core */
};

static bool is_any_of_another_kind(const struct core *core, const struct task *task)
{
    for (int i = 0; i < core->view.n_gpus; i++)
        if (core->view.gpus[i].id.is_place && !cluster_view_is_of_kind(&core->view, i, task))
            return true;
    return false;
}

/* "waits for a GPU of kind A100: "; nothing where all GPUs are of the kind */
static void add_kind(struct text_line *line, const struct core *core, const struct task *task)
{
    const char *what = task->request.gpus > 1 ? "GPUs" : "a GPU";
    if (!is_any_of_another_kind(core, task))
        return;
    if (task->state == TASK_SUSPENDED)
        text_line_add(line, "goes on only on %s of the same model (%s): ", what,
            core->view.gpus[task->run->yield.from_gpu].id.name);
    else
        text_line_add(line, "waits for %s of kind %s: ", what, task->request.gpu_kind);
}

static bool is_named(const struct gpu_verdicts *verdicts, int gpu)
{
    return verdicts->list[gpu].kind != VERDICT_NOT_A_PLACE &&
           cluster_view_is_of_kind(&verdicts->core->view, gpu, verdicts->task);
}

/* Is the server's power the reason on each of the task's GPUs, whatever else runs? */
static bool is_never_under_power_limit(const struct gpu_verdicts *verdicts)
{
    bool is_any = false;
    for (int i = 0; i < verdicts->core->view.n_gpus; i++) {
        if (verdicts->list[i].kind == VERDICT_POWER_NEVER)
            is_any = true;
        else if (is_named(verdicts, i))
            return false;
    }
    return is_any;
}

static const char *text_of(const struct verdict *verdict, char *text)
{
    struct text_line line = {text, TEXT_SIZE, 0};
    text[0] = '\0';
    verdict_text_add(&line, verdict);
    return text;
}

/* Does the same text stand against both? */
static bool is_alike(const struct gpu_verdicts *verdicts, int gpu, int other)
{
    const struct verdict *one = &verdicts->list[gpu], *two = &verdicts->list[other];
    char text_one[TEXT_SIZE], text_two[TEXT_SIZE];
    return one->kind == two->kind && strcmp(text_of(one, text_one), text_of(two, text_two)) == 0;
}

/* Is it named with a GPU before it? */
static bool is_named_before(const struct gpu_verdicts *verdicts, int gpu)
{
    for (int i = 0; i < gpu; i++)
        if (is_named(verdicts, i) && is_alike(verdicts, i, gpu))
            return true;
    return false;
}

/* GPUs that follow each other: "0", "0, 1", "0 to 2". */
struct run_of_gpus {
    int first, last, n;
};

static void add_run(
    struct text_line *line, const struct gpu_verdicts *verdicts, struct run_of_gpus run)
{
    const struct gpu_view *gpus = verdicts->core->view.gpus;
    text_line_add(line, "%s", gpus[run.first].id.label);
    if (run.n > 1)
        text_line_add(line, "%s%s", run.n > 2 ? " to " : ", ", gpus[run.last].id.label);
}

static int count_alike(const struct gpu_verdicts *verdicts, int first)
{
    int n = 0;
    for (int i = first; i < verdicts->core->view.n_gpus; i++)
        n += is_named(verdicts, i) && is_alike(verdicts, first, i);
    return n;
}

/* Adds "GPUs 0 to 2, 5: " and what stands against them. */
static void add_alike(struct text_line *line, const struct gpu_verdicts *verdicts, int first)
{
    struct run_of_gpus run = {first, first, 0};
    text_line_add(line, count_alike(verdicts, first) > 1 ? "GPUs " : "GPU ");
    for (int i = first; i < verdicts->core->view.n_gpus; i++) {
        if (verdicts->list[i].kind == VERDICT_NOT_A_PLACE)
            continue;
        if (is_named(verdicts, i) && is_alike(verdicts, first, i)) {
            if (run.n == 0 && i != first)
                text_line_add(line, ", ");
            run = (struct run_of_gpus){run.n ? run.first : i, i, run.n + 1};
        } else if (run.n) {
            add_run(line, verdicts, run);
            run.n = 0;
        }
    }
    if (run.n)
        add_run(line, verdicts, run);
    text_line_add(line, ": ");
    verdict_text_add(line, &verdicts->list[first]);
}

static void add_verdicts(struct text_line *line, const struct gpu_verdicts *verdicts)
{
    int listed = 0, more = 0;
    for (int i = 0; i < verdicts->core->view.n_gpus; i++) {
        if (!is_named(verdicts, i) || is_named_before(verdicts, i))
            continue;
        if (listed == TEXTS_LISTED) {
            more += count_alike(verdicts, i);
            continue;
        }
        text_line_add(line, "%s", listed ? "; " : "");
        add_alike(line, verdicts, i);
        listed++;
    }
    if (more)
        text_line_add(line, "; and %d more", more);
    if (listed == 0)
        text_line_add(line, "there is no GPU");
}

void explain_gpus(struct text_line *line, const struct core *core, const struct task *task,
    const struct verdict *list)
{
    struct gpu_verdicts verdicts = {core, task, list};
    if (is_never_under_power_limit(&verdicts))
        text_line_add(line,
            "it can never start under the server's power limit: submit it again with a lower "
            "--smact if it uses less, or have server-power-max raised: ");
    add_kind(line, core, task);
    if (node_spread_is_wanted(&task->request))
        text_line_add(line, "needs the same GPUs of %d nodes: ", task->request.nodes);
    add_verdicts(line, &verdicts);
}
