/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the metrics of a task over time: `colloc show --plot`. All lines have the same time axis,
 * from the first to the last sample:
 *
 *     16:02:11 to 16:20:41, a column is 20 s
 *     attempt          1111111111x  2222///2>22--222
 *     task 8_3, GPU 0       ===========
 *     GPU 0  memory    ▁▃▆█████████▁▃▆██████████████   0 to 11.2 GiB, mean 9.8 GiB
 *     GPU 0  SMACT     ▁▁▅▆▆▆▅▆▆▆▆▆▁▁▅▆▆▆▆▆▆▆▆▆▆▆▆▆▆   0 to 83 %, mean 61 %
 *
 * An attempt is its number in each column; x, where it did not end well; / while it was suspended,
 * - while it was paused, > where it went on on other GPUs. A column has the mean of
 * its time; an unknown time is a dot. Fractions are drawn to 1, all other values to their maximum.
 */
#include "cli/task_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clamp.h"
#include "cli/print.h"
#include "cli/task_view.h"
#include "cli/text_graph.h"

enum { LABEL_WIDTH = 20, FIGURES_WIDTH = 34, COLUMNS_MIN = 10, WIDTH_USUAL = 80 };

enum unit { UNIT_MIB, UNIT_FRACTION, UNIT_WATT, UNIT_MIB_PER_S, UNIT_CORES, UNIT_STEPS };

static const struct metric {
    const char *key, *label;
    enum unit unit;
} metrics[] = {
    {"mem_used_mib", "memory", UNIT_MIB},
    {"smact", "SMACT", UNIT_FRACTION},
    {"smocc", "SMOCC", UNIT_FRACTION},
    {"dram_active", "DRAM", UNIT_FRACTION},
    {"power_w", "power", UNIT_WATT},
    {"pcie_tx_mib_s", "PCIe out", UNIT_MIB_PER_S},
    {"pcie_rx_mib_s", "PCIe in", UNIT_MIB_PER_S},
    {"cpu_cores", "CPU", UNIT_CORES},
    {"host_mem_mib", "memory", UNIT_MIB},
    {"disk_read_mib_s", "disk read", UNIT_MIB_PER_S},
    {"disk_write_mib_s", "disk write", UNIT_MIB_PER_S},
    {"net_rx_mib_s", "net in", UNIT_MIB_PER_S},
    {"net_tx_mib_s", "net out", UNIT_MIB_PER_S},
    {"steps_per_s", "steps", UNIT_STEPS},
};

struct axis {
    FILE *out;           /* for its lines */
    double since, until; /* seconds since 1970 */
    int columns;
};

static double time_at(const json_t *times, size_t i)
{
    return json_number_value(json_array_get(times, i));
}

/* All lines share one axis, from the first to the last sample of any of them. A short run has as
 * many columns as it has samples. */
static struct axis axis_of(const json_t *answer, int width, FILE *out)
{
    struct axis axis = {out, INFINITY, -INFINITY, width - LABEL_WIDTH - FIGURES_WIDTH};
    size_t i;
    json_t *series;
    json_array_foreach(json_object_get(answer, "series"), i, series) {
        const json_t *times = json_object_get(series, "times");
        size_t n = json_array_size(times);
        if (n == 0)
            continue;
        axis.since = fmin(axis.since, time_at(times, 0));
        axis.until = fmax(axis.until, time_at(times, n - 1));
    }
    axis.until += member_number(answer, "step_s", 1);
    double steps = (axis.until - axis.since) / member_number(answer, "step_s", 1);
    axis.columns = clamp_int(axis.columns, COLUMNS_MIN, TEXT_GRAPH_WIDTH_MAX);
    if (steps < axis.columns) /* no column without a sample only because it is short */
        axis.columns = steps < 1 ? 1 : (int)steps;
    return axis;
}

/* The column of a moment, kept within the axis. */
static int column_of(const struct axis *axis, double at)
{
    int column = (int)floor((at - axis->since) / (axis->until - axis->since) * axis->columns);
    return clamp_int(column, 0, axis->columns - 1);
}

static const char *value_text(double value, enum unit unit, char cell[CELL_SIZE])
{
    json_t *mib;
    switch (unit) {
    case UNIT_MIB:
        mib = json_real(value);
        mib_text(mib, cell);
        json_decref(mib);
        break;
    case UNIT_FRACTION:
        snprintf(cell, CELL_SIZE, "%.0f %%", 100 * value);
        break;
    case UNIT_WATT:
        snprintf(cell, CELL_SIZE, "%.0f W", value);
        break;
    case UNIT_MIB_PER_S:
        snprintf(cell, CELL_SIZE, "%.1f MiB/s", value);
        break;
    case UNIT_CORES:
        snprintf(cell, CELL_SIZE, "%.2f cores", value);
        break;
    case UNIT_STEPS:
        snprintf(cell, CELL_SIZE, "%.3g/s", value);
        break;
    }
    return cell;
}

struct line {
    double sum[TEXT_GRAPH_WIDTH_MAX];
    int n[TEXT_GRAPH_WIDTH_MAX];
    double min, max, total;
    int known;
};

static void line_add(struct line *line, int column, double value, double min, double max)
{
    line->sum[column] += value;
    line->n[column]++;
    line->min = line->known ? fmin(line->min, min) : min;
    line->max = line->known ? fmax(line->max, max) : max;
    line->total += value;
    line->known++;
}

/* The mean of the samples in each column, and the least and the greatest of all for the figures
 * beside it. */
static struct line line_of(const json_t *series, const char *key, const struct axis *axis)
{
    struct line line = {.known = 0};
    const json_t *times = json_object_get(series, "times"),
                 *values = json_object_get(json_object_get(series, "values"), key),
                 *min = json_object_get(json_object_get(series, "min"), key),
                 *max = json_object_get(json_object_get(series, "max"), key);
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value) {
        if (json_is_number(value))
            line_add(&line, column_of(axis, time_at(times, i)), json_number_value(value),
                json_number_value(json_array_get(min, i)),
                json_number_value(json_array_get(max, i)));
    }
    return line;
}

static void print_line(const char *label, const struct line *line, const struct metric *metric,
    const struct axis *axis, bool blocks)
{
    struct history history = {.next = 0};
    char text[TEXT_GRAPH_SIZE], min[CELL_SIZE], max[CELL_SIZE], mean[CELL_SIZE];
    double top = metric->unit == UNIT_FRACTION ? 1 : line->max;
    for (int i = 0; i < axis->columns; i++)
        history_add(
            &history, line->n[i] ? line->sum[i] / line->n[i] / (top > 0 ? top : 1) : (double)NAN);
    fprintf(axis->out, "%-*s%s  %s to %s, mean %s\n", LABEL_WIDTH, label,
        text_graph_history(&history, axis->columns, blocks, text),
        value_text(line->min, metric->unit, min), value_text(line->max, metric->unit, max),
        value_text(line->total / line->known, metric->unit, mean));
}

/* A metric without a known sample has no line. */
static void print_series(const json_t *series, const struct axis *axis, bool blocks)
{
    const char *gpu = member_text(series, "gpu", NULL);
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
        char label[64];
        struct line line = line_of(series, metrics[i].key, axis);
        if (line.known == 0)
            continue;
        if (gpu)
            snprintf(label, sizeof label, "GPU %s  %s", gpu, metrics[i].label);
        else
            snprintf(label, sizeof label, "%s  %s",
                member_text(series, "uuid", NULL) ? "GPU ?" : "Host", metrics[i].label);
        print_line(label, &line, &metrics[i], axis, blocks);
    }
}

/* Fills columns from one moment to another. */
static void mark_span(char *marks, const struct axis *axis, double since, double until, char sign)
{
    if (until < axis->since || since > axis->until)
        return;
    for (int i = column_of(axis, since); i <= column_of(axis, until); i++)
        marks[i] = sign;
}

static void print_marks(const struct axis *axis, const char *label, const char *marks)
{
    fprintf(axis->out, "%-*s%s\n", LABEL_WIDTH, label, marks);
}

static void clear_marks(char marks[TEXT_GRAPH_WIDTH_MAX + 1], const struct axis *axis)
{
    memset(marks, ' ', (size_t)axis->columns);
    marks[axis->columns] = '\0';
}

/* Where an attempt was suspended, paused or moved. */
static void mark_interruptions(char *marks, const struct axis *axis, const json_t *attempt)
{
    const json_t *where = json_object_get(attempt, "gpus");
    size_t i;
    json_t *interruption;
    json_array_foreach(json_object_get(attempt, "interruptions"), i, interruption) {
        double since = member_number(interruption, "since", NAN),
               until = member_number(interruption, "until", axis->until);
        bool is_paused = strcmp(member_text(interruption, "kind", ""), "paused") == 0;
        const json_t *gpus = json_object_get(interruption, "gpus");
        if (isnan(since))
            continue;
        mark_span(marks, axis, since, until, is_paused ? '-' : '/');
        if (json_array_size(gpus) && !json_equal(gpus, where)) {
            mark_span(marks, axis, until, until, '>');
            where = gpus;
        }
    }
}

/* Interruptions are drawn over the attempt, and its end over both. */
static void print_attempts(const json_t *answer, const struct axis *axis)
{
    char marks[TEXT_GRAPH_WIDTH_MAX + 1];
    const json_t *attempts = json_object_get(answer, "attempts");
    size_t i;
    json_t *attempt;
    clear_marks(marks, axis);
    json_array_foreach(attempts, i, attempt) {
        double since = member_number(attempt, "started_at", NAN),
               until = member_number(attempt, "ended_at", axis->until);
        const char *reason = member_text(attempt, "reason", "None");
        if (isnan(since))
            continue;
        mark_span(marks, axis, since, until, (char)('1' + (int)(i % 9)));
        mark_interruptions(marks, axis, attempt);
        if (strcmp(reason, "None") != 0)
            mark_span(marks, axis, until, until, 'x');
    }
    if (json_array_size(attempts))
        print_marks(axis, "attempt", marks);
}

static void print_neighbours(const json_t *answer, const struct axis *axis)
{
    size_t i;
    json_t *neighbour;
    json_array_foreach(json_object_get(answer, "neighbours"), i, neighbour) {
        char marks[TEXT_GRAPH_WIDTH_MAX + 1], label[64];
        clear_marks(marks, axis);
        mark_span(marks, axis, member_number(neighbour, "since", 0),
            member_number(neighbour, "until", 0), '=');
        snprintf(label, sizeof label, "task %s, GPU %s", member_text(neighbour, "label", "?"),
            member_text(neighbour, "gpu", "?"));
        print_marks(axis, label, marks);
    }
}

void task_plot_print(const json_t *answer, int width, bool blocks, FILE *out)
{
    struct axis axis = axis_of(answer, width ? width : WIDTH_USUAL, out);
    char since[CELL_SIZE], until[CELL_SIZE];
    size_t i;
    json_t *series;
    if (isinf(axis.since)) {
        fprintf(out, "No metrics are stored of this task.\n");
        return;
    }
    json_t *first = json_real(axis.since), *last = json_real(axis.until);
    fprintf(out, "%s to %s, a column is %.3g s\n", moment_text(first, since),
        moment_text(last, until), (axis.until - axis.since) / axis.columns);
    json_decref(first);
    json_decref(last);
    print_attempts(answer, &axis);
    print_neighbours(answer, &axis);
    json_array_foreach(json_object_get(answer, "series"), i, series) {
        print_series(series, &axis, blocks);
    }
}
