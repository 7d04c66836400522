/* Groups of a journal whose trainings failed, taken out of it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "bench/journal.h"

#define FILE_LIMIT ((size_t)1 << 30)

/* Takes what stands before `end` off the front. */
static struct span take(struct span *text, char end)
{
    const char *at = text->size ? memchr(text->at, end, text->size) : NULL;
    struct span part = {text->at, at ? (size_t)(at - text->at) : text->size};
    size_t used = part.size + (at != NULL);
    *text = (struct span){text->at + used, text->size - used};
    return part;
}

static struct span field(struct span line, int number)
{
    while (number-- > 0)
        take(&line, ',');
    return take(&line, ',');
}

/* -1: there is no such column. */
static int find_column(struct span header, const char *name)
{
    for (int i = 0; header.size; i++)
        if (span_is(take(&header, ','), name))
            return i;
    return -1;
}

static bool is_same(struct span a, struct span b)
{
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

struct table {
    char path[PATH_MAX];
    char *text;
    struct span header, rows;
    int group, repeat, failed;
};

static int table_read(
    struct table *table, const char *folder, const char *name, struct fault *fault)
{
    size_t size;
    snprintf(table->path, sizeof table->path, "%s/%s", folder, name);
    int r = file_read(table->path, FILE_LIMIT, fault, &table->text, &size);
    if (r < 0)
        return r;
    table->rows = (struct span){table->text, size};
    table->header = take(&table->rows, '\n');
    table->group = find_column(table->header, "group");
    table->repeat = find_column(table->header, "repeat");
    table->failed = find_column(table->header, "failed");
    if (table->group < 0 || table->repeat < 0)
        return fault_set(fault, EINVAL, "%s is not of the journal of a bench", table->path);
    return 0;
}

static bool has_failed(const struct table *groups, struct span row)
{
    struct span failed = field(row, groups->failed);
    return row.size && !span_is(failed, "0");
}

/* The row is of a group, that is of one time it was run, whose trainings failed. */
static bool is_of_failed(const struct table *groups, const struct table *table, struct span row)
{
    struct span rest = groups->rows;
    while (rest.size) {
        struct span line = take(&rest, '\n');
        if (has_failed(groups, line) &&
            is_same(field(line, groups->group), field(row, table->group)) &&
            is_same(field(line, groups->repeat), field(row, table->repeat)))
            return true;
    }
    return false;
}

static int table_write_others(
    const struct table *groups, const struct table *table, struct fault *fault)
{
    char *text = NULL;
    size_t size;
    struct span rest = table->rows;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return fault_set(fault, ENOMEM, "out of memory");
    fprintf(out, "%.*s\n", (int)table->header.size, table->header.at);
    while (rest.size) {
        struct span row = take(&rest, '\n');
        if (!is_of_failed(groups, table, row))
            fprintf(out, "%.*s\n", (int)row.size, row.at);
    }
    int r = fclose(out) == 0 ? file_write_atomic(table->path, text, size, 0644) : -ENOMEM;
    free(text);
    return r < 0 ? fault_set(fault, -r, "%s: %s", table->path, strerror(-r)) : 0;
}

/* Groups last: until they are gone, another try takes out what an interrupted one left. */
int journal_drop_failed(const char *folder, struct fault *fault)
{
    struct table *groups = calloc(1, sizeof *groups), *tasks = calloc(1, sizeof *tasks);
    char path[PATH_MAX];
    int r = groups && tasks ? 0 : fault_set(fault, ENOMEM, "out of memory");
    snprintf(path, sizeof path, "%s/groups.csv", folder);
    bool is_there = access(path, F_OK) == 0;
    if (r == 0 && is_there)
        r = table_read(groups, folder, "groups.csv", fault);
    if (r == 0 && is_there && groups->failed < 0)
        r = fault_set(fault, EINVAL, "%s is not the journal of a bench", groups->path);
    if (r == 0 && is_there)
        r = table_read(tasks, folder, "tasks.csv", fault);
    if (r == 0 && is_there)
        r = table_write_others(groups, tasks, fault);
    if (r == 0 && is_there)
        r = table_write_others(groups, groups, fault);
    free(groups ? groups->text : NULL);
    free(tasks ? tasks->text : NULL);
    free(groups);
    free(tasks);
    return r;
}
