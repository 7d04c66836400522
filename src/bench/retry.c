/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes groups whose trainings failed out of a journal, so that they are run again: groups.csv and
 * tasks.csv are read as tables and written anew without the lines of these groups.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/columns.h"
#include "base/file.h"
#include "bench/journal.h"

/* Runs of groups: the name and the repeat of each. */
struct runs {
    struct run {
        char *group, *repeat;
    } * item;
    size_t n;
};

/* Where a table of the journal has what tells a run. */
struct place {
    int group, repeat;
};

static const char *field(const struct columns *columns, int column)
{
    const char *value = columns_get(columns, column);
    return value ? value : "";
}

static int find_place(const struct columns *columns, struct fault *fault, struct place *ret_place)
{
    ret_place->group = columns_find(columns, (const char *const[]){"group", NULL});
    ret_place->repeat = columns_find(columns, (const char *const[]){"repeat", NULL});
    if (ret_place->group < 0 || ret_place->repeat < 0)
        return fault_set(fault, EINVAL, "%s is not of the journal of a bench", columns->name);
    return 0;
}

static bool has(const struct runs *runs, const struct columns *columns, const struct place *place)
{
    for (size_t i = 0; i < runs->n; i++)
        if (strcmp(runs->item[i].group, field(columns, place->group)) == 0 &&
            strcmp(runs->item[i].repeat, field(columns, place->repeat)) == 0)
            return true;
    return false;
}

static int add(struct runs *runs, const struct columns *columns, const struct place *place)
{
    struct run *item = reallocarray(runs->item, runs->n + 1, sizeof *item);
    if (!item)
        return -ENOMEM;
    runs->item = item;
    item[runs->n] = (struct run){
        strdup(field(columns, place->group)), strdup(field(columns, place->repeat))};
    runs->n++;
    return item[runs->n - 1].group && item[runs->n - 1].repeat ? 0 : -ENOMEM;
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
    struct place place;
    int r = columns_open(&columns, path, fault);
    if (r == 0)
        r = find_place(&columns, fault, &place);
    int failed = r == 0 ? columns_find(&columns, (const char *const[]){"failed", NULL}) : 0;
    if (failed < 0)
        r = fault_set(fault, EINVAL, "%s is not the journal of a bench", path);
    while (r == 0 && (r = columns_next(&columns, fault)) == 1)
        r = strcmp(field(&columns, failed), "0") != 0 && add(ret_runs, &columns, &place) < 0
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
    struct place place;
    int r = find_place(columns, fault, &place);
    if (r < 0)
        return r;
    print_row(out, columns->name_at, columns->n);
    while ((r = columns_next(columns, fault)) == 1)
        if (!has(runs, columns, &place))
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

/* Groups last: until they are gone, another try takes out what an interrupted one left. */
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
