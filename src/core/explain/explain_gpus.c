/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands against a task on each GPU, as text for its user. GPUs against which the same stands
 * are named together, at the first of them, also when it is of different tasks:
 *
 *     GPUs 0 to 2, 5: tasks 7, 9 have them to themselves; GPU 3: 3.1 GiB short; GPU 4: lost
 *
 * Where three or more of a kind differ in their figure only, its range is named
 * (verdict_range.h).
 *
 * GPUs that the task cannot have are not named: those of another kind, and those that are divided
 * into MIG instances.
 */
#include <stdlib.h>
#include <string.h>

#include "core/explain/explain_parts.h"
#include "core/explain/verdict_range.h"
#include "core/explain/verdict_text.h"
#include "core/kind_match.h"
#include "core/node_spread.h"
#include "core/text_line.h"

/* Chosen: what fits on a line of a terminal; further tasks, and the GPUs of further texts, are
 * counted. */
#define TASKS_LISTED 8
#define TEXTS_LISTED 8
#define TEXT_SIZE    256

/* The verdicts on a task's GPUs. */
struct gpu_verdicts {
    const struct core *core;
    const struct task *task;
    const struct verdict *list; /* of each GPU of the core */
    struct verdict_range ranges[VERDICT_KINDS];
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
    if (task_context_gpu(task) >= 0)
        text_line_add(line, "goes on only on GPU %s, where its context has stayed: ",
            core->view.gpus[task_context_gpu(task)].id.label);
    else if (task->state == TASK_SUSPENDED)
        text_line_add(line, "goes on only on %s of the same model (%s): ", what,
            core->view.gpus[task->run->yield.from_gpu].id.name);
    else if (kind_names_gpus(task->request.gpu_kind))
        text_line_add(line, "waits for %s that it names (--gpu-ids): ", what);
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

/* ---- GPUs with the same text ---- */

/* Different texts, in the order of the first GPU of each; which GPU has which. */
struct gpu_texts {
    struct gpu_text {
        char text[TEXT_SIZE]; /* without the ids of its tasks */
        int first;            /* GPU */
    } list[TEXTS_LISTED];
    int n;
    int *of_gpu; /* of each GPU: a text, or one of the following */
};

enum { NOT_NAMED = -1, NOT_LISTED = -2 };

/* Returns the text's number, which is added if it is new; NOT_LISTED when there are too many. */
static int find_text(struct gpu_texts *texts, const char *text, int gpu)
{
    for (int i = 0; i < texts->n; i++)
        if (strcmp(texts->list[i].text, text) == 0)
            return i;
    if (texts->n == TEXTS_LISTED)
        return NOT_LISTED;
    struct gpu_text *added = &texts->list[texts->n];
    memcpy(added->text, text, TEXT_SIZE);
    added->first = gpu;
    return texts->n++;
}

static void find_ranges(struct gpu_verdicts *verdicts)
{
    for (int i = 0; i < verdicts->core->view.n_gpus; i++)
        if (is_named(verdicts, i))
            verdict_range_add(&verdicts->ranges[verdicts->list[i].kind], &verdicts->list[i]);
}

/* The text of one GPU, or that of all GPUs with the kind of its verdict. */
static void add_text(
    struct text_line *line, const struct gpu_verdicts *verdicts, const struct verdict *verdict)
{
    const struct verdict_range *range = &verdicts->ranges[verdict->kind];
    if (verdict_range_is_wide(range))
        verdict_range_write(line, verdict->kind, range);
    else
        verdict_text_add(line, verdicts->core, verdict);
}

/* The same without the ids of tasks. */
static void add_key(
    struct text_line *line, const struct gpu_verdicts *verdicts, const struct verdict *verdict)
{
    if (verdict_text_names_task(verdict->kind))
        verdict_text_add_tasks(line, verdict->kind, "");
    else
        add_text(line, verdicts, verdict);
}

static void find_texts(const struct gpu_verdicts *verdicts, struct gpu_texts *texts)
{
    for (int i = 0; i < verdicts->core->view.n_gpus; i++) {
        char text[TEXT_SIZE] = "";
        struct text_line line = {text, sizeof text, 0};
        texts->of_gpu[i] = NOT_NAMED;
        if (!is_named(verdicts, i))
            continue;
        add_key(&line, verdicts, &verdicts->list[i]);
        texts->of_gpu[i] = find_text(texts, text, i);
    }
}

static int count_gpus(const struct gpu_verdicts *verdicts, const struct gpu_texts *texts, int text)
{
    int n = 0;
    for (int i = 0; i < verdicts->core->view.n_gpus; i++)
        n += texts->of_gpu[i] == text;
    return n;
}

/* ---- their names ---- */

/* GPUs that follow each other: "0", "0, 1", "0 to 2". */
struct run_of_gpus {
    int first, last, n;
};

static void add_run(
    struct text_line *line, const struct gpu_verdicts *verdicts, const struct run_of_gpus *run)
{
    const struct gpu_view *gpus = verdicts->core->view.gpus;
    text_line_add(line, "%s", gpus[run->first].id.label);
    if (run->n > 1)
        text_line_add(line, "%s%s", run->n > 2 ? " to " : ", ", gpus[run->last].id.label);
}

/* Adds "GPUs 0 to 2, 5: ". Divided GPUs between two others do not part them. */
static void add_names(struct text_line *line, const struct gpu_verdicts *verdicts,
    const struct gpu_texts *texts, int text)
{
    struct run_of_gpus run = {0, 0, 0};
    const char *before = count_gpus(verdicts, texts, text) > 1 ? "GPUs " : "GPU ";
    for (int i = 0; i < verdicts->core->view.n_gpus; i++) {
        if (texts->of_gpu[i] == text) {
            text_line_add(line, "%s", run.n ? "" : before);
            before = ", ";
            run = (struct run_of_gpus){run.n ? run.first : i, i, run.n + 1};
        } else if (run.n && verdicts->list[i].kind != VERDICT_NOT_A_PLACE) {
            add_run(line, verdicts, &run);
            run.n = 0;
        }
    }
    if (run.n)
        add_run(line, verdicts, &run);
    text_line_add(line, ": ");
}

/* ---- what stands against them ---- */

/* Returns a GPU of the text whose verdict names the task with the smallest id above `after`; -1:
 * there is none. */
static int find_next_task(
    const struct gpu_verdicts *verdicts, const struct gpu_texts *texts, int text, uint64_t after)
{
    int next = -1;
    for (int i = texts->list[text].first; i < verdicts->core->view.n_gpus; i++) {
        uint64_t task = verdicts->list[i].task;
        if (texts->of_gpu[i] == text && task > after &&
            (next < 0 || task < verdicts->list[next].task))
            next = i;
    }
    return next;
}

/* Writes "7, 9, and 3 more", by rising ids. Returns how many tasks there are. */
static int list_tasks(const struct gpu_verdicts *verdicts, const struct gpu_texts *texts, int text,
    struct text_line *list)
{
    int n = 0, gpu = find_next_task(verdicts, texts, text, 0);
    for (; gpu >= 0; gpu = find_next_task(verdicts, texts, text, verdicts->list[gpu].task)) {
        if (n < TASKS_LISTED)
            text_line_add(list, "%s%s", n ? ", " : "",
                verdict_text_name(verdicts->core, &verdicts->list[gpu]).text);
        n++;
    }
    if (n > TASKS_LISTED)
        text_line_add(list, ", and %d more", n - TASKS_LISTED);
    return n;
}

static void add_reason(struct text_line *line, const struct gpu_verdicts *verdicts,
    const struct gpu_texts *texts, int text)
{
    const struct verdict *first = &verdicts->list[texts->list[text].first];
    char tasks[TEXT_SIZE] = "";
    struct text_line list = {tasks, sizeof tasks, 0};
    if (verdict_text_names_task(first->kind) && list_tasks(verdicts, texts, text, &list) > 1)
        verdict_text_add_tasks(line, first->kind, tasks);
    else
        add_text(line, verdicts, first);
}

static void add_verdicts(struct text_line *line, const struct gpu_verdicts *verdicts)
{
    struct gpu_texts texts = {.n = 0};
    texts.of_gpu = calloc((size_t)verdicts->core->view.n_gpus + 1, sizeof *texts.of_gpu);
    if (!texts.of_gpu)
        return;
    find_texts(verdicts, &texts);
    for (int i = 0; i < texts.n; i++) {
        text_line_add(line, "%s", i ? "; " : "");
        add_names(line, verdicts, &texts, i);
        add_reason(line, verdicts, &texts, i);
    }
    int more = count_gpus(verdicts, &texts, NOT_LISTED);
    if (more)
        text_line_add(line, "; and %d more", more);
    if (texts.n == 0)
        text_line_add(line, "there is no GPU");
    free(texts.of_gpu);
}

void explain_gpus(struct text_line *line, const struct core *core, const struct task *task,
    const struct verdict *list)
{
    struct gpu_verdicts verdicts = {core, task, list, {{0}}};
    find_ranges(&verdicts);
    if (is_never_under_power_limit(&verdicts))
        text_line_add(line,
            "it can never start under the server's power limit: submit it again with a lower "
            "--smact if it uses less, or have server-power-max raised: ");
    add_kind(line, core, task);
    if (node_spread_is_wanted(&task->request))
        text_line_add(line, "needs the same GPUs of %d nodes: ", task->request.nodes);
    add_verdicts(line, &verdicts);
}
