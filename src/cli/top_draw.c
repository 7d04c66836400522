/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws `colloc top`: the GPUs, then the tasks, then the line of keys. Reads the state, changes
 * nothing but the picture.
 *
 *     GPU  NAME  MEMORY                   SMACT             RECENTLY    POWER   TEMP
 *     0    H200  [▊       ]  11.4/140.1G  [████▊   ]   61%  ▁▂▅█▆▅▅▅    412 W   52 C
 *
 * The widths of bars and graphs follow from the screen's; a narrow screen has no NAME and no TEMP.
 * An unhealthy GPU has the reason in place of its figures. The whole picture is drawn each time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clamp.h"
#include "cli/external.h"
#include "cli/task_view.h"
#include "cli/task_words.h"
#include "cli/top.h"

/* ---- one line of GPUs ---- */

/* The columns of the parts of variable width; 0: the part is not shown. */
struct layout {
    int name, bar, history;
};

enum {
    INDEX_WIDTH = 5,
    MEMORY_WIDTH = 12,
    PERCENT_WIDTH = 5,
    POWER_WIDTH = 7,
    HEAT_WIDTH = 6,
    SHARE_WIDTH = 6,
    STEPS_WIDTH = 9,
    EXTERNAL_MAX = 4, /* lines */
    OTHER_LINES = 4,  /* than those of GPUs: the header, the titles, an empty line and the footer */
    NARROW = 72,
    WIDE = 120,
    EXPLAINING_ROWS = 6, /* left for tasks, at least, where one of them is a reason */
};

static int at_least(int min, int n)
{
    return n < min ? min : n;
}

static int at_most(int max, int n)
{
    return n > max ? max : n;
}

static struct layout layout_of(int columns)
{
    struct layout layout = {.name = columns >= WIDE ? 22 : 0};
    int rest = columns - INDEX_WIDTH - layout.name - MEMORY_WIDTH - PERCENT_WIDTH - POWER_WIDTH - 2;
    if (columns >= WIDE)
        rest -= HEAT_WIDTH;
    layout.bar = at_least(5, at_most(40, rest * 3 / 10));
    layout.history = at_least(0, at_most(TEXT_GRAPH_WIDTH_MAX, rest - 2 * layout.bar));
    return layout;
}

static const struct history *find_history(const struct top *top, const char *uuid)
{
    static const struct history none;
    for (size_t i = 0; i < top->gpu_count; i++)
        if (strcmp(top->gpu[i].uuid, uuid) == 0)
            return &top->gpu[i].smact;
    return &none;
}

static void put_number(struct screen *screen, int width, const json_t *value, const char *unit)
{
    char text[32] = "-";
    if (json_is_number(value))
        snprintf(text, sizeof text, "%.0f%s", json_number_value(value), unit);
    screen_put(screen, STYLE_PLAIN, -width, text);
}

static void put_memory(struct screen *screen, const json_t *gpu, int bar)
{
    char text[TEXT_GRAPH_SIZE];
    double used = member_number(gpu, "mem_used_mib", NAN),
           total = member_number(gpu, "mem_total_mib", NAN);
    double fraction = used / total;
    screen_put(screen, fraction > 0.9 ? STYLE_YELLOW : STYLE_GREEN, bar,
        text_graph_bar(fraction, bar, screen_has_blocks(screen), text));
    if (isnan(fraction))
        snprintf(text, sizeof text, "-");
    else
        snprintf(text, sizeof text, "%.1f/%.1fG", used / 1024, total / 1024);
    screen_put(screen, STYLE_PLAIN, -MEMORY_WIDTH, text);
}

/* A bar, the figure, and the graph of the recent past. */
static void put_activity(const struct top *top, const json_t *gpu, const struct layout *layout)
{
    struct screen *screen = top->screen;
    char text[TEXT_GRAPH_SIZE], percent[CELL_SIZE];
    const json_t *smact = json_object_get(gpu, "smact");
    double fraction = member_number(gpu, "smact", NAN);
    bool blocks = screen_has_blocks(screen);
    snprintf(percent, sizeof percent, json_is_number(smact) ? "%.0f%%" : "-", 100 * fraction);
    screen_put(
        screen, STYLE_GREEN, layout->bar, text_graph_bar(fraction, layout->bar, blocks, text));
    screen_put(screen, STYLE_PLAIN, -PERCENT_WIDTH, percent);
    screen_put(screen, STYLE_PLAIN, 1, "");
    const struct history *history = find_history(top, member_text(gpu, "uuid", ""));
    screen_put(screen, STYLE_GREEN, layout->history,
        text_graph_history(history, layout->history, blocks, text));
}

static void draw_gpu(struct top *top, const json_t *gpu, const struct layout *layout)
{
    struct screen *screen = top->screen;
    const char *health = member_text(gpu, "health", "?"), *name = member_text(gpu, "name", "-");
    screen_put(screen, STYLE_BOLD, INDEX_WIDTH - 1, member_text(gpu, "index", "?"));
    screen_put(screen, STYLE_PLAIN, 1, "");
    if (layout->name) {
        screen_put(screen, STYLE_PLAIN, layout->name - 1,
            strncmp(name, "NVIDIA ", 7) == 0 ? name + 7 : name);
        screen_put(screen, STYLE_PLAIN, 1, "");
    }
    if (strcmp(health, "ok") == 0) {
        put_memory(screen, gpu, layout->bar);
        screen_put(screen, STYLE_PLAIN, 1, "");
        put_activity(top, gpu, layout);
        put_number(screen, POWER_WIDTH, json_object_get(gpu, "power_w"), " W");
        if (layout->name)
            put_number(screen, HEAT_WIDTH, json_object_get(gpu, "temperature_c"), " C");
    } else {
        const char *words = member_text(gpu, "health_text", "");
        screen_print(screen, STYLE_RED, "%s%s%s", health, *words ? ": " : "", words);
    }
    screen_end_line(screen, STYLE_PLAIN);
}

static void draw_gpu_titles(struct screen *screen, const struct layout *layout)
{
    screen_put(screen, STYLE_DIM, INDEX_WIDTH, "GPU");
    if (layout->name)
        screen_put(screen, STYLE_DIM, layout->name, "NAME");
    screen_put(screen, STYLE_DIM, layout->bar, "MEMORY");
    screen_put(screen, STYLE_DIM, MEMORY_WIDTH + 1, "");
    screen_put(screen, STYLE_DIM, layout->bar, "SMACT");
    screen_put(screen, STYLE_DIM, PERCENT_WIDTH + 1, "");
    screen_put(screen, STYLE_DIM, layout->history, "RECENTLY");
    screen_put(screen, STYLE_DIM, -POWER_WIDTH, "POWER");
    if (layout->name)
        screen_put(screen, STYLE_DIM, -HEAT_WIDTH, "TEMP");
    screen_end_line(screen, STYLE_DIM);
}

/* Draws external processes, one line each, at most `room` lines. */
static void draw_external(struct top *top, int room)
{
    size_t i, k;
    json_t *gpu, *process;
    json_array_foreach(json_object_get(top->gpus, "gpus"), i, gpu) {
        json_array_foreach(json_object_get(gpu, "foreign_processes"), k, process) {
            char text[EXTERNAL_TEXT_SIZE];
            if (room-- <= 0)
                return;
            screen_put(top->screen, STYLE_DIM, INDEX_WIDTH - 1, member_text(gpu, "index", "?"));
            screen_print(top->screen, STYLE_DIM, " external %s", external_text(process, text));
            screen_end_line(top->screen, STYLE_PLAIN);
        }
    }
}

/* Draws the GPUs and their titles, in `room` lines without these. */
static void draw_gpu_lines(struct top *top, size_t room)
{
    struct screen *screen = top->screen;
    const json_t *gpus = json_object_get(top->gpus, "gpus");
    struct layout layout = layout_of(screen_columns(screen));
    size_t count = json_array_size(gpus), shown = count <= room ? count : room - 1;
    draw_gpu_titles(screen, &layout);
    for (size_t i = 0; i < shown; i++)
        draw_gpu(top, json_array_get(gpus, i), &layout);
    if (shown < count) {
        screen_print(screen, STYLE_DIM, "and %zu more", count - shown);
        screen_end_line(screen, STYLE_PLAIN);
    }
    int left = (int)(room - (shown < count ? room : count));
    draw_external(top, left < EXTERNAL_MAX ? left : EXTERNAL_MAX);
}

/* The GPUs get at most half of the screen, and nothing where the other lines need all of it. */
static void draw_gpus(struct top *top)
{
    struct screen *screen = top->screen;
    int room = at_most(screen_rows(screen) / 2, screen_rows(screen) - OTHER_LINES);
    if (room < 1)
        return;
    if (json_array_size(json_object_get(top->gpus, "gpus")) > 0) {
        draw_gpu_lines(top, (size_t)room);
    } else {
        screen_put(screen, STYLE_YELLOW, screen_columns(screen),
            member_text(top->gpus, "why_none", "no GPUs"));
        screen_end_line(screen, STYLE_PLAIN);
    }
    screen_end_line(screen, STYLE_PLAIN);
}

/* ---- tasks ---- */

static int name_width(const struct screen *screen)
{
    return clamp_int(screen_columns(screen) / 5, 10, 32);
}

static enum screen_style style_of(const json_t *task)
{
    const char *colour = task_colour(task);
    if (!colour)
        return STYLE_PLAIN;
    return strcmp(colour, "green") == 0    ? STYLE_GREEN
           : strcmp(colour, "yellow") == 0 ? STYLE_YELLOW
                                           : STYLE_RED;
}

/* Returns the sum of a value of the task over its GPUs; NAN if one of them is unknown. */
static double sum_over_gpus(const struct top *top, json_int_t id, const char *key, int *ret_gpus)
{
    size_t i, k;
    json_t *gpu, *task;
    double sum = 0;
    *ret_gpus = 0;
    json_array_foreach(json_object_get(top->gpus, "gpus"), i, gpu) {
        json_array_foreach(json_object_get(gpu, "tasks"), k, task) {
            if (json_integer_value(json_object_get(task, "id")) != id)
                continue;
            sum += member_number(task, key, NAN);
            ++*ret_gpus;
        }
    }
    return *ret_gpus ? sum : NAN;
}

/* The task's part of its GPUs' activity and, on a wide screen, of their power; and its steps a
 * second. */
static void put_shares(const struct top *top, const json_t *task, enum screen_style plain)
{
    struct screen *screen = top->screen;
    json_int_t id = json_integer_value(json_object_get(task, "id"));
    char text[32];
    int gpus;
    double smact = sum_over_gpus(top, id, "smact", &gpus),
           power = sum_over_gpus(top, id, "power_w", &gpus);
    snprintf(text, sizeof text, isnan(smact) ? "-" : "%.0f%%", 100 * smact / gpus);
    screen_put(screen, plain, -SHARE_WIDTH, text);
    if (screen_columns(screen) < WIDE)
        return;
    snprintf(text, sizeof text, isnan(power) ? "-" : "%.0f W", power);
    screen_put(screen, plain, -POWER_WIDTH, text);
    char cell[CELL_SIZE];
    screen_put(screen, plain, -STEPS_WIDTH, rate_text(json_object_get(task, "steps_per_s"), cell));
}

/* A waiting task's TIME is how long it has waited, and its reason is in place of what it has of the
 * GPU. Columns that a narrow screen lacks are the user and the power. */
static void draw_task(const struct top *top, const json_t *task, bool is_selected)
{
    struct screen *screen = top->screen;
    enum screen_style plain = is_selected ? STYLE_REVERSE : STYLE_PLAIN;
    char id[32], cell[CELL_SIZE];
    bool waits = json_is_null(json_object_get(task, "started_at"));
    char *place = task_place_text(task, true);
    screen_put(screen, plain, -6, task_id_text(task, id, sizeof id));
    screen_put(screen, plain, 1, "");
    screen_put(screen, plain, name_width(screen), member_text(task, "name", "-"));
    screen_put(screen, plain, 1, "");
    if (screen_columns(screen) >= NARROW) {
        screen_put(screen, plain, 8, member_text(task, "user", "-"));
        screen_put(screen, plain, 1, "");
    }
    screen_put(screen, is_selected ? plain : style_of(task), 10, member_text(task, "state", "?"));
    screen_put(
        screen, plain, -9, seconds_text(json_object_get(task, waits ? "wait_s" : "exec_s"), cell));
    if (!waits) {
        screen_put(screen, plain, -10, mib_text(json_object_get(task, "mem_used_mib"), cell));
        put_shares(top, task, plain);
    }
    screen_put(screen, plain, 1, "");
    screen_put(screen, plain, screen_columns_left(screen), place ? place : "");
    free(place);
    screen_end_line(screen, plain);
}

static void draw_task_titles(struct screen *screen)
{
    screen_put(screen, STYLE_DIM, -6, "ID");
    screen_put(screen, STYLE_DIM, 1, "");
    screen_put(screen, STYLE_DIM, name_width(screen) + 1, "NAME");
    if (screen_columns(screen) >= NARROW)
        screen_put(screen, STYLE_DIM, 9, "USER");
    screen_put(screen, STYLE_DIM, 10, "STATE");
    screen_put(screen, STYLE_DIM, -9, "TIME");
    screen_put(screen, STYLE_DIM, -10, "MEMORY");
    screen_put(screen, STYLE_DIM, -SHARE_WIDTH, "SMACT");
    if (screen_columns(screen) >= WIDE)
        screen_put(screen, STYLE_DIM, -POWER_WIDTH, "POWER");
    if (screen_columns(screen) >= WIDE)
        screen_put(screen, STYLE_DIM, -STEPS_WIDTH, "STEPS/S");
    screen_put(screen, STYLE_DIM, 1, "");
    screen_put(screen, STYLE_DIM, screen_columns_left(screen), "GPU(REASON)");
    screen_end_line(screen, STYLE_DIM);
}

static bool is_waiting(const json_t *task)
{
    return strcmp(member_text(task, "state", ""), "PENDING") == 0 &&
           *member_text(task, "reason_text", "");
}

/* The task whose reason has a line for itself: the selected one, if it waits, or the first that
 * does. NULL: none. */
static const json_t *explained_task(const struct top *top)
{
    int selected = top_selected(top);
    if (selected >= 0 && selected < top->shown_count && is_waiting(top->shown[selected]))
        return top->shown[selected];
    for (int i = 0; i < top->shown_count; i++)
        if (is_waiting(top->shown[i]))
            return top->shown[i];
    return NULL;
}

/* Above the last line, since the task's own line has little room. */
static void draw_explanation(const struct top *top, const json_t *task)
{
    char id[32];
    while (screen_rows_left(top->screen) > 2)
        screen_end_line(top->screen, STYLE_PLAIN);
    screen_print(top->screen, STYLE_DIM, "%s waits: %s", task_id_text(task, id, sizeof id),
        member_text(task, "reason_text", ""));
    screen_end_line(top->screen, STYLE_PLAIN);
}

static void draw_tasks(struct top *top)
{
    struct screen *screen = top->screen;
    if (screen_rows_left(screen) < 3)
        return;
    draw_task_titles(screen);
    const json_t *explained = screen_rows_left(screen) >= EXPLAINING_ROWS ? explained_task(top)
                                                                          : NULL;
    int rows = screen_rows_left(screen) - (explained ? 2 : 1), selected = top_selected(top);
    top->task_rows = rows;
    if (selected < top->first)
        top->first = selected < 0 ? 0 : selected;
    if (selected >= top->first + rows)
        top->first = selected - rows + 1;
    for (int i = top->first; i < top->shown_count && i < top->first + rows; i++)
        draw_task(top, top->shown[i], i == selected);
    if (top->shown_count == 0) {
        screen_put(screen, STYLE_DIM, screen_columns(screen),
            *top->filter ? "  no matching task" : "  no tasks");
        screen_end_line(screen, STYLE_PLAIN);
    }
    if (explained)
        draw_explanation(top, explained);
}

/* ---- first and last line ---- */

static int count_state(const struct top *top, const char *state)
{
    size_t i;
    json_t *task;
    int count = 0;
    json_array_foreach(json_object_get(top->tasks, "tasks"), i, task) {
        count += strcmp(member_text(task, "state", ""), state) == 0;
    }
    return count;
}

static void draw_header(struct top *top)
{
    char text[256], clock[16] = "";
    struct tm local;
    time_t now = time(NULL);
    if (localtime_r(&now, &local))
        strftime(clock, sizeof clock, "%H:%M:%S ", &local);
    snprintf(text, sizeof text, " colloc  %d running, %d waiting  %s on %s",
        count_state(top, "RUNNING"), count_state(top, "PENDING"),
        member_text(top->gpus, "policy", "?"), member_text(top->gpus, "sharing", "?"));
    screen_put(top->screen, STYLE_REVERSE, screen_columns(top->screen) - (int)strlen(clock), text);
    screen_put(top->screen, STYLE_REVERSE, (int)strlen(clock), clock);
    screen_end_line(top->screen, STYLE_REVERSE);
}

/* The last line: a question, the filter being typed, or a message, if there is one; otherwise the
 * keys. */
static void draw_footer(struct top *top)
{
    static const char *const sorts[SORTS] = {"queue", "time", "memory", "user"};
    struct screen *screen = top->screen;
    if (top->mode == TOP_FILTER)
        screen_print(screen, STYLE_BOLD, "filter: %s_", top->filter);
    else if (top->mode == TOP_CONFIRM)
        screen_print(
            screen, STYLE_BOLD, "cancel task %" JSON_INTEGER_FORMAT "? y/n", top->to_cancel);
    else if (top->is_cut_off)
        screen_print(screen, STYLE_RED, "%s", top->message);
    else if (top->mode == TOP_PAGE)
        screen_print(screen, STYLE_DIM, "q quit  Escape back  up/down scroll");
    else if (*top->message)
        screen_print(screen, STYLE_YELLOW, "%s", top->message);
    else
        screen_print(screen, STYLE_DIM,
            "q quit  s sort: %s  / filter%s%s  c cancel  up/down select  Enter page",
            sorts[top->sort], *top->filter ? ": " : "", top->filter);
    screen_put(screen, STYLE_PLAIN, screen_columns_left(screen), "");
}

/* The footer is the last line of every screen, and the only one of a screen of one line. */
void top_draw(struct top *top)
{
    screen_begin(top->screen);
    if (screen_rows(top->screen) > 1)
        draw_header(top);
    if (top->mode == TOP_PAGE) {
        top_page_draw(top);
    } else {
        draw_gpus(top);
        draw_tasks(top);
    }
    while (screen_rows_left(top->screen) > 1)
        screen_end_line(top->screen, STYLE_PLAIN);
    draw_footer(top);
    screen_show(top->screen);
}
