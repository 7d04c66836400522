/* SPDX-License-Identifier: Apache-2.0 */
/* The epochs of tasks.csv are read first, all of them: each group of groups.csv gets its own. */
#include "bench/journal_read.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/columns.h"
#include "bench/experiment.h"

/* What the lines of the files are read into. */
struct reader {
    struct epochs epochs;
    void (*on_group)(const struct measured_group *group, void *data);
    void *data;
};

/* Reads a column as a number. `must`: an empty field is an error. */
static int read_number(
    struct columns *columns, const char *name, bool must, struct fault *fault, double *ret_value)
{
    int r = columns_number(columns, columns_find(columns, (const char *const[]){name, NULL}),
        -MEASURED_MAX, MEASURED_MAX, fault, ret_value);
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

static int read_epoch(struct columns *columns, struct reader *reader, struct fault *fault)
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
    struct epoch *place = find_or_add_epoch(&reader->epochs, &read);
    if (!place)
        return fault_set(fault, ENOMEM, "out of memory");
    read.group = place->group;
    *place = read;
    return 0;
}

/* Copies the epochs of one group; names stay borrowed from `all`. */
static int find_epochs(const struct epochs *all, struct measured_group *group)
{
    group->epochs.item = calloc(all->n + 1, sizeof *group->epochs.item);
    if (!group->epochs.item)
        return -ENOMEM;
    for (size_t i = 0; i < all->n; i++)
        if (all->item[i].repeat == group->repeat && strcmp(all->item[i].group, group->name) == 0)
            group->epochs.item[group->epochs.n++] = all->item[i];
    return 0;
}

static int read_group(struct columns *columns, struct reader *reader, struct fault *fault)
{
    struct measured_group group = {.name = column_text(columns, "group"),
        .mix = column_text(columns, "mix"),
        .sharing = column_text(columns, "sharing")};
    double number, repeat, tasks, failed;
    int r;
    if ((r = read_number(columns, "number", true, fault, &number)) < 0 ||
        (r = read_number(columns, "repeat", true, fault, &repeat)) < 0 ||
        (r = read_number(columns, "tasks", true, fault, &tasks)) < 0 ||
        (r = read_number(columns, "failed", true, fault, &failed)) < 0 ||
        (r = read_number(columns, "began_unix_s", true, fault, &group.began_s)) < 0 ||
        (r = read_number(columns, "total_s", true, fault, &group.total_s)) < 0 ||
        (r = read_number(columns, "energy_j", true, fault, &group.energy_j)) < 0)
        return r;
    if (tasks < 1 || tasks > BENCH_TASKS_MAX)
        return columns_wrong(columns, fault, "tasks is %g: 1 to %d", tasks, BENCH_TASKS_MAX);
    group.number = (int)number;
    group.repeat = (int)repeat;
    group.n_tasks = (int)tasks;
    group.failed = (int)failed;
    if (find_epochs(&reader->epochs, &group) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    reader->on_group(&group, reader->data);
    free(group.epochs.item);
    return 0;
}

/* Reads a file that may not be there, a line at a time. */
static int read_lines(const char *folder, const char *name,
    int (*read_line)(struct columns *, struct reader *, struct fault *), struct reader *reader,
    struct fault *fault)
{
    char path[PATH_MAX];
    struct columns columns;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (access(path, F_OK) != 0)
        return 0;
    int r = columns_open(&columns, path, fault), more = 1;
    while (r == 0 && (more = columns_next(&columns, fault)) > 0)
        r = read_line(&columns, reader, fault);
    columns_close(&columns);
    return r < 0 ? r : more < 0 ? more : 0;
}

int journal_read(const char *folder,
    void (*on_group)(const struct measured_group *group, void *data), void *data,
    struct fault *fault)
{
    struct reader reader = {.on_group = on_group, .data = data};
    int r = read_lines(folder, "tasks.csv", read_epoch, &reader, fault);
    if (r == 0)
        r = read_lines(folder, "groups.csv", read_group, &reader, fault);
    for (size_t i = 0; i < reader.epochs.n; i++)
        free(reader.epochs.item[i].group);
    free(reader.epochs.item);
    return r;
}
