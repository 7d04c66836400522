/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the summary of a bench. The first epoch of a training is warm-up, the second is timed, and
 * later ones only keep the GPU busy for the other tasks. Throughput and activity of a group are
 * means over the time in which all its tasks train:
 *
 *     task 0   | 1: warms up |  2: timed   |  3  |
 *     task 1       | 1: warms up    |  2: timed     |
 *                                   |-- together -|
 *
 * If all others were busy during the whole second epoch of each task, throughput is that of the
 * second epochs. GPU means are over the samples within the time together; if there was none, within
 * the timed epochs. Where no task reports epochs (a user's own script) they are over the whole time
 * from the first start to the last end. The peak of memory is always of the whole time. Unknown
 * values are empty fields.
 */
#include "bench/bench_summary.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/columns.h"
#include "base/file.h"
#include "base/reading.h"
#include "bench/experiment.h"

#define NUMBER_MAX 1e15 /* chosen: no figure of a training is larger */
/* The first epoch that is timed: in the one before, libraries choose their kernels. */
enum { TIMED = 2 };

static const char *const activities[] = {"smact", "smocc", "dram_active", "gract", "power_w",
    "mem_used_mib", "pcie_rx_mib_per_s", "pcie_tx_mib_per_s"};
enum { POWER = 4, MEMORY = 5, ACTIVITIES = ARRAY_SIZE(activities) };

/* A line of tasks.csv with an epoch. Seconds are of the wall clock. */
struct epoch {
    char *group;
    int repeat, task, number;
    double took_s, from_s, to_s, samples;
};

struct epochs {
    struct epoch *item;
    size_t n, capacity;
};

/* A line of groups.csv, and its epochs. */
struct group {
    const char *name, *mix, *sharing;
    int number, repeat, n_tasks, failed;
    double began_s, total_s, energy_j;
    struct epochs epochs;
};

struct interval {
    double from_s, to_s;
};

/* ---- one group ---- */

/* The time in which every task was in its epochs from `first` on. False: there is none. */
static bool all_busy(const struct group *group, int first, struct interval *ret_span)
{
    bool is_serial = strcmp(group->sharing, "serial") == 0;
    *ret_span = (struct interval){-INFINITY, INFINITY};
    for (int task = 0; task < group->n_tasks; task++) {
        struct interval own = {INFINITY, -INFINITY};
        for (size_t i = 0; i < group->epochs.n; i++) {
            const struct epoch *epoch = &group->epochs.item[i];
            if (epoch->task != task || epoch->number < first)
                continue;
            own.from_s = fmin(own.from_s, epoch->from_s);
            own.to_s = fmax(own.to_s, epoch->to_s);
        }
        ret_span->from_s = fmax(ret_span->from_s, own.from_s);
        ret_span->to_s = fmin(ret_span->to_s, own.to_s);
    }
    return !is_serial && ret_span->from_s < ret_span->to_s;
}

/* The mean length of the second epochs, and how many there are. */
static struct reading timed_s(const struct group *group, int *ret_count)
{
    double sum = 0;
    *ret_count = 0;
    for (size_t i = 0; i < group->epochs.n; i++)
        if (group->epochs.item[i].number == TIMED) {
            sum += group->epochs.item[i].took_s;
            ++*ret_count;
        }
    return *ret_count ? reading_of(sum / *ret_count) : READING_NONE;
}

/* The time from the first start to the last end of the second epochs. */
static struct interval timed_interval(const struct group *group)
{
    struct interval span = {INFINITY, -INFINITY};
    for (size_t i = 0; i < group->epochs.n; i++) {
        const struct epoch *epoch = &group->epochs.item[i];
        if (epoch->number == TIMED)
            span = (struct interval){
                fmin(span.from_s, epoch->from_s), fmax(span.to_s, epoch->to_s)};
    }
    return span;
}

/* The time from the first start of a task to the last end. */
static struct interval whole_interval(const struct group *group)
{
    return (struct interval){group->began_s, group->began_s + group->total_s};
}

/* The time that the means of the GPU are of. Empty if it is not known when the tasks trained: they
 * report no epochs, and none ended well. */
static struct interval measured_interval(const struct group *group)
{
    struct interval together;
    if (all_busy(group, TIMED, &together))
        return together;
    if (group->epochs.n == 0 && group->failed < group->n_tasks)
        return whole_interval(group);
    return timed_interval(group);
}

static bool timed_among_all(const struct group *group)
{
    struct interval busy, timed = timed_interval(group);
    int count;
    timed_s(group, &count);
    return all_busy(group, 1, &busy) && count == group->n_tasks && busy.from_s <= timed.from_s &&
           timed.to_s <= busy.to_s;
}

static double samples_within(const struct epoch *epoch, const struct interval *span)
{
    double overlap_s = fmin(epoch->to_s, span->to_s) - fmax(epoch->from_s, span->from_s);
    double whole_s = epoch->to_s - epoch->from_s;
    return whole_s > 0 ? epoch->samples * fmax(0, overlap_s) / whole_s : 0;
}

static struct reading samples_per_s(const struct group *group)
{
    bool by_epochs = timed_among_all(group);
    struct interval together;
    double rate = 0, samples = 0;
    if (!by_epochs && !all_busy(group, TIMED, &together))
        return READING_NONE;
    for (size_t i = 0; i < group->epochs.n; i++) {
        const struct epoch *epoch = &group->epochs.item[i];
        if (by_epochs && epoch->number == TIMED)
            rate += epoch->samples / epoch->took_s;
        else if (!by_epochs && epoch->number >= TIMED)
            samples += samples_within(epoch, &together);
    }
    return reading_of(by_epochs ? rate : samples / (together.to_s - together.from_s));
}

/* ---- samples of the GPU ---- */

/* What the samples of a group say. */
struct usage {
    double sums[ACTIVITIES];
    int counts[ACTIVITIES];
    struct reading peak_mib;
};

static bool is_within(double at_s, struct interval span)
{
    return span.from_s <= at_s && at_s <= span.to_s;
}

/* Adds the columns `at` of a sample: all to the means if it is `measured`, memory to the peak. */
static void add_sample(struct columns *columns, const int *at, bool measured, struct usage *usage)
{
    for (int i = 0; i < ACTIVITIES; i++) {
        double value;
        if (columns_number(columns, at[i], -NUMBER_MAX, NUMBER_MAX, NULL, &value) != 1)
            continue;
        if (i == MEMORY)
            usage->peak_mib = reading_of(
                usage->peak_mib.valid ? fmax(usage->peak_mib.value, value) : value);
        if (measured) {
            usage->sums[i] += value;
            usage->counts[i]++;
        }
    }
}

/* Reads the samples of the group's time. Of a file that cannot be read to its end the lines before
 * count. */
static struct usage read_samples(const char *path, const struct group *group)
{
    struct columns columns;
    struct interval whole = whole_interval(group), measured = measured_interval(group);
    struct usage usage = {.peak_mib = READING_NONE};
    double time_s;
    int at[ACTIVITIES];
    if (columns_open(&columns, path, NULL) == 0) {
        int time = columns_find(&columns, (const char *const[]){"time_s", NULL});
        for (int i = 0; i < ACTIVITIES; i++)
            at[i] = columns_find(&columns, (const char *const[]){activities[i], NULL});
        while (columns_next(&columns, NULL) == 1)
            if (columns_number(&columns, time, 0, NUMBER_MAX, NULL, &time_s) == 1 &&
                is_within(group->began_s + time_s, whole))
                add_sample(&columns, at, is_within(group->began_s + time_s, measured), &usage);
    }
    columns_close(&columns);
    return usage;
}

static struct reading usage_mean(const struct usage *usage, int activity)
{
    int count = usage->counts[activity];
    return count ? reading_of(usage->sums[activity] / count) : READING_NONE;
}

/* ---- one line ---- */

static void print_reading(FILE *out, struct reading value)
{
    if (value.valid)
        fprintf(out, ",%.6g", value.value);
    else
        fputc(',', out);
}

static void print_header(FILE *out)
{
    fputs("group,repeat,mix,sharing,tasks,failed,total_s,epoch_s,samples_per_s", out);
    for (int i = 0; i < ACTIVITIES; i++)
        fprintf(out, ",%s", activities[i]);
    fputs(",energy_j,joule_per_sample,mem_peak_mib\n", out);
}

static void print_group(FILE *out, const char *folder, const struct group *group)
{
    char path[PATH_MAX];
    struct reading rate = samples_per_s(group), joule = READING_NONE;
    int count;
    snprintf(path, sizeof path, "%s/looks/%d-%d.csv", folder, group->number, group->repeat);
    struct usage usage = read_samples(path, group);
    struct reading power_w = usage_mean(&usage, POWER);
    if (power_w.valid && rate.valid && rate.value > 0)
        joule = reading_of(power_w.value / rate.value);
    columns_print(out, group->name);
    fprintf(out, ",%d,", group->repeat);
    columns_print(out, group->mix);
    fprintf(out, ",%s,%d,%d,%.6g", group->sharing, group->n_tasks, group->failed, group->total_s);
    print_reading(out, timed_s(group, &count));
    print_reading(out, rate);
    for (int i = 0; i < ACTIVITIES; i++)
        print_reading(out, usage_mean(&usage, i));
    fprintf(out, ",%.6g", group->energy_j);
    print_reading(out, joule);
    print_reading(out, usage.peak_mib);
    fputc('\n', out);
}

/* ---- the journal ---- */

/* Reads a column as a number. `must`: an empty field is an error. */
static int read_number(
    struct columns *columns, const char *name, bool must, struct fault *fault, double *ret_value)
{
    int r = columns_number(columns, columns_find(columns, (const char *const[]){name, NULL}),
        -NUMBER_MAX, NUMBER_MAX, fault, ret_value);
    return r == 0 && must ? columns_wrong(columns, fault, "no %s", name) : r;
}

static const char *column_text(const struct columns *columns, const char *name)
{
    const char *value = columns_get(
        columns, columns_find(columns, (const char *const[]){name, NULL}));
    return value ? value : "";
}

/* Returns the entry for an epoch. A line that was written twice, after a crash, has one entry. */
static struct epoch *find_or_add_epoch(struct epochs *epochs, const struct epoch *epoch)
{
    for (size_t i = 0; i < epochs->n; i++) {
        struct epoch *other = &epochs->item[i];
        if (other->repeat == epoch->repeat && other->task == epoch->task &&
            other->number == epoch->number && strcmp(other->group, epoch->group) == 0)
            return other;
    }
    if (ARRAY_RESERVE(epochs->item, epochs->capacity, epochs->n + 1) < 0)
        return NULL;
    struct epoch *added = &epochs->item[epochs->n];
    added->group = strdup(epoch->group);
    epochs->n += added->group != NULL;
    return added->group ? added : NULL;
}

static int read_epoch(struct columns *columns, struct epochs *epochs, struct fault *fault)
{
    double repeat, task, epoch, took_s, from_s, to_s, samples;
    int r = read_number(columns, "epoch", false, fault, &epoch);
    if (r <= 0)
        return r;
    if ((r = read_number(columns, "repeat", true, fault, &repeat)) < 0 ||
        (r = read_number(columns, "task", true, fault, &task)) < 0 ||
        (r = read_number(columns, "epoch_s", true, fault, &took_s)) < 0 ||
        (r = read_number(columns, "epoch_from_unix_s", true, fault, &from_s)) < 0 ||
        (r = read_number(columns, "epoch_to_unix_s", true, fault, &to_s)) < 0 ||
        (r = read_number(columns, "samples", true, fault, &samples)) < 0)
        return r;
    struct epoch read = {(char *)column_text(columns, "group"), (int)repeat, (int)task, (int)epoch,
        took_s, from_s, to_s, samples};
    struct epoch *place = find_or_add_epoch(epochs, &read);
    if (!place)
        return fault_set(fault, ENOMEM, "out of memory");
    read.group = place->group;
    *place = read;
    return 0;
}

static int read_epochs(const char *folder, struct epochs *epochs, struct fault *fault)
{
    char path[PATH_MAX];
    struct columns columns;
    snprintf(path, sizeof path, "%s/tasks.csv", folder);
    if (access(path, F_OK) != 0)
        return 0;
    int r = columns_open(&columns, path, fault), more = 1;
    while (r == 0 && (more = columns_next(&columns, fault)) > 0)
        r = read_epoch(&columns, epochs, fault);
    columns_close(&columns);
    return r < 0 ? r : more < 0 ? more : 0;
}

/* Copies the epochs of one group; names stay borrowed from `all`. */
static int find_epochs(const struct epochs *all, struct group *group)
{
    group->epochs.item = calloc(all->n + 1, sizeof *group->epochs.item);
    if (!group->epochs.item)
        return -ENOMEM;
    for (size_t i = 0; i < all->n; i++)
        if (all->item[i].repeat == group->repeat && strcmp(all->item[i].group, group->name) == 0)
            group->epochs.item[group->epochs.n++] = all->item[i];
    return 0;
}

static int add_group(struct columns *columns, const char *folder, const struct epochs *epochs,
    FILE *out, struct fault *fault)
{
    struct group group = {.name = column_text(columns, "group"),
        .mix = column_text(columns, "mix"),
        .sharing = column_text(columns, "sharing")};
    double number_, repeat, tasks, failed;
    int r;
    if ((r = read_number(columns, "number", true, fault, &number_)) < 0 ||
        (r = read_number(columns, "repeat", true, fault, &repeat)) < 0 ||
        (r = read_number(columns, "tasks", true, fault, &tasks)) < 0 ||
        (r = read_number(columns, "failed", true, fault, &failed)) < 0 ||
        (r = read_number(columns, "began_unix_s", true, fault, &group.began_s)) < 0 ||
        (r = read_number(columns, "total_s", true, fault, &group.total_s)) < 0 ||
        (r = read_number(columns, "energy_j", true, fault, &group.energy_j)) < 0)
        return r;
    if (tasks < 1 || tasks > BENCH_TASKS_MAX)
        return columns_wrong(columns, fault, "tasks is %g: 1 to %d", tasks, BENCH_TASKS_MAX);
    group.number = (int)number_;
    group.repeat = (int)repeat;
    group.n_tasks = (int)tasks;
    group.failed = (int)failed;
    if (find_epochs(epochs, &group) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    print_group(out, folder, &group);
    free(group.epochs.item);
    return 0;
}

static int print_groups(
    const char *folder, const struct epochs *epochs, FILE *out, struct fault *fault)
{
    char path[PATH_MAX];
    struct columns columns;
    snprintf(path, sizeof path, "%s/groups.csv", folder);
    print_header(out);
    if (access(path, F_OK) != 0)
        return 0;
    int r = columns_open(&columns, path, fault), more = 1;
    while (r == 0 && (more = columns_next(&columns, fault)) > 0)
        r = add_group(&columns, folder, epochs, out, fault);
    columns_close(&columns);
    return r < 0 ? r : more < 0 ? more : 0;
}

static int write_file(const char *folder, const char *lines, size_t size, struct fault *fault)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/summary.csv", folder);
    int r = file_write_atomic(path, lines, size, 0644);
    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 0;
}

int bench_summary_write(const char *folder, struct fault *fault)
{
    struct epochs epochs = {0};
    char *lines = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&lines, &size);
    if (!out)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = read_epochs(folder, &epochs, fault);
    if (r == 0)
        r = print_groups(folder, &epochs, out, fault);
    if (fclose(out) != 0 && r == 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        r = write_file(folder, lines, size, fault);
    for (size_t i = 0; i < epochs.n; i++)
        free(epochs.item[i].group);
    free(epochs.item);
    free(lines);
    return r;
}
