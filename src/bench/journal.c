/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and appends the CSV files of a journal. A run is added in two steps: first its trainings to
 * tasks.csv, then its line to groups.csv. Each file is appended whole and synced, or cut back to
 * what it was. A crash between the two leaves lines in tasks.csv of a run that groups.csv does not
 * name: the next bench repeats that run, and its lines then replace the earlier ones
 * (journal_read.c). */
#include "bench/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/columns.h"
#include "base/file.h"

#define GROUPS_HEADER                                                                              \
    "group,number,repeat,mix,sharing,gpu,gpu_name,way,tasks,failed,began_unix_s,total_s,energy_j\n"
#define TASKS_HEADER                                                                               \
    "group,repeat,task,name,threads,exit_code,failure,started_unix_s,ended_unix_s,ready_unix_s,"   \
    "reserved_mib,epoch,epoch_s,epoch_from_unix_s,epoch_to_unix_s,samples\n"

/* ---- reading ---- */

static int add_done(struct journal *journal, const char *group, const char *repeat)
{
    char *key;
    if (asprintf(&key, "%s\t%s", group, repeat) < 0)
        return -ENOMEM;
    int r = ARRAY_APPEND(journal->done, journal->n_done, journal->done_capacity, key);
    if (r < 0)
        free(key);
    return r;
}

static int read_groups(struct journal *journal, struct columns *columns, struct fault *fault)
{
    int group = columns_find(columns, (const char *const[]){"group", NULL});
    int repeat = columns_find(columns, (const char *const[]){"repeat", NULL});
    int total = columns_find(columns, (const char *const[]){"energy_j", NULL}), r;
    if (group < 0 || repeat < 0 || total < 0)
        return fault_set(fault, EINVAL, "%s is not the journal of a bench", columns->name);
    while ((r = columns_next(columns, fault)) > 0)
        if (columns_get(columns, group) && columns_get(columns, repeat) &&
            add_done(journal, columns_get(columns, group), columns_get(columns, repeat)) < 0)
            return fault_set(fault, ENOMEM, "out of memory");
    return r;
}

static int make_folders(const struct journal *journal, struct fault *fault)
{
    static const char *const kinds[] = {"looks", "logs", "profiles"};
    char path[PATH_MAX];
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        snprintf(path, sizeof path, "%s/%s", journal->folder, kinds[i]);
        int r = file_make_folders(path, 0755);
        if (r < 0)
            return fault_set(fault, -r, "%s: %s", path, strerror(-r));
    }
    return 0;
}

/* Trainings run in folders of their own, and their profilers write into the journal's. */
static int make_absolute(struct journal *journal, struct fault *fault)
{
    char *path = realpath(journal->folder, NULL);
    if (!path)
        return fault_set(fault, errno, "%s: %s", journal->folder, strerror(errno));
    free(journal->folder);
    journal->folder = path;
    return 0;
}

int journal_open(struct journal *journal, const char *folder, struct fault *fault)
{
    char path[PATH_MAX];
    struct columns columns;
    *journal = (struct journal){.folder = strdup(folder)};
    if (!journal->folder)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = make_folders(journal, fault);
    if (r == 0)
        r = make_absolute(journal, fault);
    snprintf(path, sizeof path, "%s/groups.csv", folder);
    if (r < 0 || access(path, F_OK) != 0)
        return r;
    r = columns_open(&columns, path, fault);
    if (r == 0)
        r = read_groups(journal, &columns, fault);
    columns_close(&columns);
    return r;
}

void journal_fini(struct journal *journal)
{
    for (size_t i = 0; i < journal->n_done; i++)
        free(journal->done[i]);
    free(journal->done);
    free(journal->folder);
    *journal = (struct journal){0};
}

bool journal_has(const struct journal *journal, const struct bench_group *group, int repeat)
{
    for (size_t i = 0; i < journal->n_done; i++) {
        const char *tab = strchr(journal->done[i], '\t');
        size_t size = (size_t)(tab - journal->done[i]);
        if (strlen(group->name) == size && memcmp(journal->done[i], group->name, size) == 0 &&
            atoi(tab + 1) == repeat)
            return true;
    }
    return false;
}

void journal_path(const struct journal *journal, const char *kind, size_t number, int repeat,
    char *path, size_t size)
{
    snprintf(path, size, "%s/%s/%zu-%d", journal->folder, kind, number, repeat);
}

/* ---- adding ---- */

/*
 * Appends whole lines durably, or leaves the file as it was: half a line could not be read again.
 */
static int append_lines(const struct journal *journal, const char *name, const char *header,
    const char *text, size_t size, struct fault *fault)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", journal->folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    off_t before = lseek(fd, 0, SEEK_END);
    int r = before < 0 ? -errno : before == 0 ? file_write_fd(fd, header, strlen(header)) : 0;
    if (r == 0)
        r = file_write_fd(fd, text, size);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r < 0 && before >= 0 && ftruncate(fd, before) < 0)
        r = -errno;
    close(fd);
    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 0;
}

static void print_reading(FILE *out, struct reading value)
{
    if (value.valid)
        fprintf(out, ",%.6f", value.value);
    else
        fputc(',', out);
}

static void print_task(FILE *out, const struct bench_group *group, int repeat, int i,
    const struct training_result *task, const struct training_epoch *epoch)
{
    columns_print(out, group->name);
    fprintf(out, ",%d,%d,", repeat, i);
    columns_print(out, group->tasks[i].name);
    fprintf(out, ",%d,%d,", group->tasks[i].threads, task->exit_code);
    columns_print(out, task->failure);
    fprintf(out, ",%.6f,%.6f", task->started_unix_s, task->ended_unix_s);
    print_reading(out, task->report.ready_unix_s);
    print_reading(out, task->report.reserved_mib);
    if (epoch)
        fprintf(out, ",%d,%.6f,%.6f,%.6f,%.0f\n", epoch->number, epoch->seconds, epoch->from_unix_s,
            epoch->to_unix_s, epoch->samples);
    else
        fputs(",,,,,\n", out);
}

static void print_tasks(
    FILE *out, const struct bench_group *group, int repeat, const struct training_result *tasks)
{
    for (int i = 0; i < group->n_tasks; i++) {
        const struct training_result *task = &tasks[i];
        for (int n = 0; n < task->report.n_epochs; n++)
            print_task(out, group, repeat, i, task, &task->report.epochs[n]);
        if (task->report.n_epochs == 0)
            print_task(out, group, repeat, i, task, NULL);
    }
}

static void print_group(FILE *out, const struct bench_group *group, size_t number, int repeat,
    const struct group_result *result)
{
    int failed = 0;
    for (int i = 0; i < group->n_tasks; i++)
        failed += *result->tasks[i].failure != '\0';
    columns_print(out, group->name);
    fprintf(out, ",%zu,%d,", number, repeat);
    columns_print(out, group->mix);
    fprintf(out, ",%s,", group->sharing);
    columns_print(out, group->gpu);
    fputc(',', out);
    columns_print(out, result->gpu_name);
    fprintf(out, ",%s,%d,%d,%.6f,%.6f,%.3f\n", result->way, group->n_tasks, failed,
        result->began_unix_s, result->total_s, result->energy_j);
}

int journal_add(struct journal *journal, const struct bench_group *group, size_t number, int repeat,
    const struct group_result *result, struct fault *fault)
{
    char *tasks = NULL, *line = NULL, count[16];
    size_t tasks_size, line_size;
    FILE *tasks_out = open_memstream(&tasks, &tasks_size),
         *line_out = open_memstream(&line, &line_size);
    int r = tasks_out && line_out ? 0 : fault_set(fault, ENOMEM, "out of memory");
    if (r == 0) {
        print_tasks(tasks_out, group, repeat, result->tasks);
        print_group(line_out, group, number, repeat, result);
    }
    if (tasks_out)
        fclose(tasks_out);
    if (line_out)
        fclose(line_out);
    if (r == 0)
        r = append_lines(journal, "tasks.csv", TASKS_HEADER, tasks, tasks_size, fault);
    if (r == 0)
        r = append_lines(journal, "groups.csv", GROUPS_HEADER, line, line_size, fault);
    snprintf(count, sizeof count, "%d", repeat);
    if (r == 0 && add_done(journal, group->name, count) < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    free(tasks);
    free(line);
    return r;
}
