/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes groups with failed trainings from a journal: rewrites tasks.csv and then groups.csv
 * without the lines of these groups. An interrupted removal is completed by the next one, since
 * groups.csv still names the groups.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/columns.h"
#include "base/file.h"
#include "bench/journal.h"

/* A list of runs: the repeats of groups that are to be removed. */
struct runs {
    struct run_key {
        char *group, *repeat;
    } * item;
    size_t n, capacity;
};

/* The columns of a table that identify a run. */
struct run_columns {
    int group, repeat;
};

static const char *field_text(const struct columns *columns, int column)
{
    const char *value = columns_get(columns, column);
    return value ? value : "";
}

static int find_run_columns(
    const struct columns *columns, struct fault *fault, struct run_columns *ret_columns)
{
    ret_columns->group = columns_find(columns, (const char *const[]){"group", NULL});
    ret_columns->repeat = columns_find(columns, (const char *const[]){"repeat", NULL});
    if (ret_columns->group < 0 || ret_columns->repeat < 0)
        return fault_set(
            fault, EINVAL, "%s does not belong to the journal of a bench", columns->name);
    return 0;
}

static bool contains_run(
    const struct runs *runs, const struct columns *columns, const struct run_columns *at)
{
    for (size_t i = 0; i < runs->n; i++)
        if (strcmp(runs->item[i].group, field_text(columns, at->group)) == 0 &&
            strcmp(runs->item[i].repeat, field_text(columns, at->repeat)) == 0)
            return true;
    return false;
}

static int add_run(struct runs *runs, const struct columns *columns, const struct run_columns *at)
{
    if (ARRAY_RESERVE(runs->item, runs->capacity, runs->n + 1) < 0)
        return -ENOMEM;
    struct run_key *key = &runs->item[runs->n++];
    *key = (struct run_key){
        strdup(field_text(columns, at->group)), strdup(field_text(columns, at->repeat))};
    return key->group && key->repeat ? 0 : -ENOMEM;
}

static void runs_fini(struct runs *runs)
{
    for (size_t i = 0; i < runs->n; i++) {
        free(runs->item[i].group);
        free(runs->item[i].repeat);
    }
    free(runs->item);
}

static int read_failed(const char *path, struct fault *fault, struct runs *ret_runs)
{
    struct columns columns;
    struct run_columns at;
    int r = columns_open(&columns, path, fault);
    if (r == 0)
        r = find_run_columns(&columns, fault, &at);
    int failed = r == 0 ? columns_find(&columns, (const char *const[]){"failed", NULL}) : 0;
    if (failed < 0)
        r = fault_set(fault, EINVAL, "%s is not the journal of a bench", path);
    while (r == 0 && (r = columns_next(&columns, fault)) == 1)
        r = strcmp(field_text(&columns, failed), "0") != 0 && add_run(ret_runs, &columns, &at) < 0
                ? fault_set(fault, ENOMEM, "out of memory")
                : 0;
    columns_close(&columns);
    return r;
}

static void print_row(FILE *out, char *const *fields, int n)
{
    for (int i = 0; i < n; i++) {
        if (i)
            fputc(',', out);
        columns_print(out, fields[i]);
    }
    fputc('\n', out);
}

static int print_others(
    struct columns *columns, const struct runs *runs, FILE *out, struct fault *fault)
{
    struct run_columns at;
    int r = find_run_columns(columns, fault, &at);
    if (r < 0)
        return r;
    print_row(out, columns->name_at, columns->n);
    while ((r = columns_next(columns, fault)) == 1)
        if (!contains_run(runs, columns, &at))
            print_row(out, columns->field, columns->n);
    return r;
}

static int write_others(const char *path, const struct runs *runs, struct fault *fault)
{
    char *text = NULL;
    size_t size;
    struct columns columns;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = columns_open(&columns, path, fault);
    if (r == 0)
        r = print_others(&columns, runs, out, fault);
    columns_close(&columns);
    if (fclose(out) != 0 && r == 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    int written = r == 0 ? file_write_atomic(path, text, size, 0644) : 0;
    free(text);
    return written < 0 ? fault_set(fault, -written, "%s: %s", path, strerror(-written)) : r;
}

int journal_drop_failed(const char *folder, struct fault *fault)
{
    char groups[PATH_MAX], tasks[PATH_MAX];
    struct runs failed = {0};
    snprintf(groups, sizeof groups, "%s/groups.csv", folder);
    snprintf(tasks, sizeof tasks, "%s/tasks.csv", folder);
    if (access(groups, F_OK) != 0)
        return 0;
    int r = read_failed(groups, fault, &failed);
    if (r == 0)
        r = write_others(tasks, &failed, fault);
    if (r == 0)
        r = write_others(groups, &failed, fault);
    runs_fini(&failed);
    return r;
}
