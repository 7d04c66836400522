/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of a task in `colloc top`: its properties, its attempts, and its metrics over time, as
 * `colloc show --plot` draws them. The page is text, which is scrolled by lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/task_plot.h"
#include "cli/task_view.h"
#include "cli/task_words.h"
#include "cli/top.h"

static const char *plain_text(const json_t *value, char cell[CELL_SIZE])
{
    const char *text = json_string_value(value);
    snprintf(cell, CELL_SIZE, "%s", text && *text ? text : "-");
    return cell;
}

static const struct page_field {
    const char *label, *key;
    const char *(*format)(const json_t *value, char cell[CELL_SIZE]);
} fields[] = {
    {"State", "state", plain_text},
    {"Reason", "reason_text", plain_text},
    {"Command", "command", plain_text},
    {"GPUs", "gpus", list_text},
    {"Sharing", "sharing", plain_text},
    {"Waited", "wait_s", seconds_text},
    {"Ran", "exec_s", seconds_text},
    {"Memory req.", "need_mib", mib_text},
    {"Memory now", "mem_used_mib", mib_text},
    {"Memory peak", "mem_peak_mib", mib_text},
    {"SMACT mean", "smact_mean", fraction_text},
    {"Steps/s now", "steps_per_s", rate_text},
    {"Steps/s mean", "steps_per_s_mean", rate_text},
    {"Energy", "energy_j", joules_text},
};

static void write_attempts(FILE *out, const json_t *task)
{
    size_t i;
    json_t *attempt;
    json_array_foreach(json_object_get(task, "attempts"), i, attempt) {
        char line[512];
        fprintf(out, "Attempt %-4zu %s\n", i + 1, attempt_text(attempt, line, sizeof line));
    }
}

void top_page_take(struct top *top, const json_t *task, const json_t *series)
{
    char cell[CELL_SIZE], *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    fprintf(out, "Task %s  %s, of %s\n", task_id_text(task, cell, sizeof cell),
        member_text(task, "name", ""), member_text(task, "user", "?"));
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const char *value = fields[i].format(json_object_get(task, fields[i].key), cell);
        if (strcmp(value, "-") != 0)
            fprintf(out, "%-12s %s\n", fields[i].label, value);
    }
    write_attempts(out, task);
    fputc('\n', out);
    if (series)
        task_plot_print(series, screen_columns(top->screen), screen_has_blocks(top->screen), out);
    if (fclose(out) != 0) {
        free(text);
        return;
    }
    free(top->page);
    top->page = text;
}

static int count_lines(const char *text)
{
    int n = 0;
    for (; text && *text; text++)
        n += *text == '\n';
    return n;
}

void top_page_draw(struct top *top)
{
    struct screen *screen = top->screen;
    int rows = screen_rows_left(screen) - 1, last = count_lines(top->page) - rows;
    if (top->page_first > last)
        top->page_first = last;
    if (top->page_first < 0)
        top->page_first = 0;
    const char *at = top->page ? top->page : "";
    for (int i = 0; i < top->page_first && *at; i++)
        at += strcspn(at, "\n") + 1;
    while (screen_rows_left(screen) > 1) {
        size_t length = strcspn(at, "\n");
        char *line = strndup(at, length);
        screen_put(screen, at == top->page ? STYLE_BOLD : STYLE_PLAIN, screen_columns(screen),
            line ? line : "");
        screen_end_line(screen, STYLE_PLAIN);
        free(line);
        at += length + (at[length] == '\n');
    }
}
