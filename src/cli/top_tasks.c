/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks of `colloc top`: filter, order, selection, and the cancel key. And the histories of
 * GPUs that their graphs show.
 *
 * The daemon's answer is replaced with each sample, so nothing here points into an old answer: the
 * selection is a task's id. When the selected task is no longer listed, the one that moves to its
 * line is selected, so the cursor stays in its place.
 *
 * Before the first sample, the graphs are filled with the daemon's stored samples.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clamp.h"
#include "cli/task_view.h"
#include "cli/task_words.h"
#include "cli/top.h"

/* ---- GPUs ---- */

static struct history *history_of(struct top *top, const char *uuid)
{
    for (size_t i = 0; i < top->gpu_count; i++)
        if (strcmp(top->gpu[i].uuid, uuid) == 0)
            return &top->gpu[i].smact;
    struct top_gpu gpu = {.uuid = ""};
    strncpy(gpu.uuid, uuid, sizeof gpu.uuid - 1);
    if (ARRAY_APPEND(top->gpu, top->gpu_count, top->gpu_capacity, gpu) < 0)
        return NULL;
    return &top->gpu[top->gpu_count - 1].smact;
}

static void add_to_history(struct top *top)
{
    size_t i;
    json_t *gpu;
    json_array_foreach(json_object_get(top->gpus, "gpus"), i, gpu) {
        struct history *history = history_of(top, member_text(gpu, "uuid", ""));
        if (history)
            history_add(history, member_number(gpu, "smact", NAN));
    }
}

static size_t column_of(const json_t *samples, const char *name)
{
    size_t i;
    json_t *column;
    json_array_foreach(json_object_get(samples, "columns"), i, column) {
        if (json_is_string(column) && strcmp(json_string_value(column), name) == 0)
            return i;
    }
    return SIZE_MAX;
}

/* The value of a row holds from its time on, for a step or an interval. */
static void recall_gpu(
    struct history *history, const json_t *gpu, size_t smact, double now_s, double interval_s)
{
    const json_t *rows = json_object_get(gpu, "rows");
    double holds_s = fmax(member_number(gpu, "step_s", 0), interval_s);
    size_t row = 0, count = json_array_size(rows);
    for (int k = TEXT_GRAPH_WIDTH_MAX; k > 0; k--) {
        double at_s = now_s - k * interval_s, value = NAN, row_s = NAN;
        for (; row < count; row++) {
            double next_s = json_number_value(json_array_get(json_array_get(rows, row), 0));
            if (next_s > at_s)
                break;
        }
        if (row == 0)
            continue; /* before the first */
        const json_t *last = json_array_get(rows, row - 1);
        row_s = json_number_value(json_array_get(last, 0));
        if (at_s - row_s < 2 * holds_s && json_is_number(json_array_get(last, smact)))
            value = json_number_value(json_array_get(last, smact));
        history_add(history, value);
    }
}

void top_recall(struct top *top, const json_t *samples, double now_s, double interval_s)
{
    size_t i, smact = column_of(samples, "smact");
    json_t *gpu;
    json_array_foreach(json_object_get(samples, "gpus"), i, gpu) {
        struct history *history = history_of(top, member_text(gpu, "uuid", ""));
        if (history && smact != SIZE_MAX)
            recall_gpu(history, gpu, smact, now_s, interval_s);
    }
}

/* ---- tasks ---- */

static bool contains_text(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

static bool passes_filter(const json_t *task, const char *filter)
{
    char id[32], label[CELL_SIZE];
    snprintf(id, sizeof id, "%.0f", member_number(task, "id", 0));
    task_id_text(task, label, sizeof label);
    return !*filter || strcmp(id, filter) == 0 || strcmp(label, filter) == 0 ||
           contains_text(member_text(task, "name", ""), filter) ||
           contains_text(member_text(task, "user", ""), filter) ||
           contains_text(member_text(task, "state", ""), filter);
}

static int by_number(const json_t *a, const json_t *b, const char *key)
{
    double x = member_number(a, key, -1), y = member_number(b, key, -1);
    return (x < y) - (x > y);
}

static double time_of(const json_t *task)
{
    return member_number(
        task, json_is_null(json_object_get(task, "started_at")) ? "wait_s" : "exec_s", 0);
}

static int by_time(const void *a, const void *b)
{
    double x = time_of(*(const json_t *const *)a), y = time_of(*(const json_t *const *)b);
    return (x < y) - (x > y);
}

static int by_memory(const void *a, const void *b)
{
    return by_number(*(const json_t *const *)a, *(const json_t *const *)b, "mem_used_mib");
}

static int by_user(const void *a, const void *b)
{
    return strcmp(member_text(*(const json_t *const *)a, "user", ""),
        member_text(*(const json_t *const *)b, "user", ""));
}

/* glibc's qsort is a merge sort: equal tasks stay in the daemon's order. */
static void sort_tasks(const json_t **tasks, int count, enum top_sort how)
{
    static int (*const orders[SORTS])(const void *, const void *) = {
        [SORT_TIME] = by_time, [SORT_MEMORY] = by_memory, [SORT_USER] = by_user};
    if (orders[how] && count > 0)
        qsort(tasks, (size_t)count, sizeof *tasks, orders[how]);
}

static json_int_t id_of(const json_t *task)
{
    return json_integer_value(json_object_get(task, "id"));
}

int top_selected(const struct top *top)
{
    for (int i = 0; i < top->shown_count; i++)
        if (id_of(top->shown[i]) == top->selected)
            return i;
    return top->shown_count > 0 ? 0 : -1;
}

/* Filters and sorts the daemon's list anew, then puts the selection back on its task, or on the one
 * that is now in its line. */
void top_choose(struct top *top)
{
    const json_t *tasks = json_object_get(top->tasks, "tasks");
    const json_t **shown = realloc(top->shown, (json_array_size(tasks) + 1) * sizeof *shown);
    size_t i;
    json_t *task;
    if (!shown) {
        top->shown_count = 0;
        return;
    }
    top->shown = shown;
    int at = top_selected(top); /* among those before */
    top->shown_count = 0;
    json_array_foreach(tasks, i, task) {
        if (passes_filter(task, top->filter))
            shown[top->shown_count++] = task;
    }
    sort_tasks(shown, top->shown_count, top->sort);
    if (top->shown_count == 0 || id_of(shown[top_selected(top)]) == top->selected)
        return;
    int last = top->shown_count - 1;
    top->selected = id_of(shown[clamp_int(at, 0, last)]);
}

void top_take(struct top *top, json_t *gpus, json_t *tasks)
{
    json_t *old = top->tasks;
    json_decref(top->gpus);
    top->gpus = gpus;
    top->tasks = tasks;
    add_to_history(top);
    top_choose(top);
    json_decref(old);
}

void top_fini(struct top *top)
{
    free(top->gpu);
    free(top->shown);
    free(top->page);
    json_decref(top->gpus);
    json_decref(top->tasks);
}
