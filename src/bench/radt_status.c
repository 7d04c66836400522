/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces lines of a table. The text is read once more as a table, row by row: a row that belongs
 * to a task of the group is printed anew, everything else is copied, comments and blank lines
 * included. The file is replaced atomically, and only if it still has the text that was read.
 */
#include "bench/radt_status.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/columns.h"
#include "base/file.h"
#include "bench/radt.h"

static const char *const columns_written[] = {"Status", "Run"};
enum { STATUS, RUN, WRITTEN };

/* What is written into a row. */
struct outcome {
    int line;
    char value[WRITTEN][256];
};

void radt_letter(const struct bench_group *group, int i, char *buffer, size_t size)
{
    const struct bench_task *task = &group->tasks[i];
    char devices[BENCH_GPUS_SIZE], ordinal[16] = "";
    int before = 0, same = 0;
    for (int n = 0; n < group->n_tasks; n++) {
        bool is_same = strcmp(group->tasks[n].gpus, task->gpus) == 0;
        same += is_same;
        before += is_same && n < i;
    }
    snprintf(devices, sizeof devices, "%s", task->gpus);
    for (char *at = devices; (at = strchr(at, ','));)
        *at = '+';
    if (same > 1 && before < 26)
        snprintf(ordinal, sizeof ordinal, "_%c", 'A' + before);
    else if (same > 1)
        snprintf(ordinal, sizeof ordinal, "_%d", before + 1);
    bool shares = task->sharing == BENCH_MPS || task->sharing == BENCH_MIG;
    const char *way = task->sharing == BENCH_MPS ? "MPS" : task->profile;
    snprintf(buffer, size, "%s%s%s%s", devices, ordinal, shares ? "_" : "", shares ? way : "");
}

/* ---- the text ---- */

/* Finds the start of a line, counted from 1. Returns the end of the text for a later one. */
static const char *line_at(const char *text, int64_t number)
{
    for (; number > 1 && *text; number--) {
        const char *end = strchr(text, '\n');
        text = end ? end + 1 : text + strlen(text);
    }
    return text;
}

static const struct outcome *find_outcome(const struct outcome *outcomes, int n, int64_t line)
{
    for (int i = 0; i < n; i++)
        if (outcomes[i].line == line)
            return &outcomes[i];
    return NULL;
}

static void print_row(FILE *out, const struct columns *columns, const int *at,
    const struct outcome *outcome, const char *line_end)
{
    for (int i = 0; i < columns->n; i++) {
        if (i)
            fputc(',', out);
        columns_print(out, i == at[STATUS] ? outcome->value[STATUS]
                           : i == at[RUN]  ? outcome->value[RUN]
                                           : columns->field[i]);
    }
    fputs(line_end, out);
}

static int find_columns(const struct columns *columns, struct fault *fault, int *ret_at)
{
    if (columns->separator != ',')
        return fault_set(fault, EINVAL, "the table is not separated by commas");
    for (int i = 0; i < WRITTEN; i++) {
        ret_at[i] = columns_find(columns, (const char *const[]){columns_written[i], NULL});
        if (ret_at[i] < 0)
            return fault_set(fault, EINVAL, "it has no column %s", columns_written[i]);
    }
    return 0;
}

/* Copies the text with the outcomes' rows replaced. */
static int print_table(const char *text, struct columns *columns, const struct outcome *outcomes,
    int n, FILE *out, struct fault *fault)
{
    const char *copied = text; /* up to here */
    int64_t line = 1;          /* of `copied` */
    int at[WRITTEN], r = find_columns(columns, fault, at);
    if (r < 0)
        return r;
    while ((r = columns_next(columns, fault)) > 0) {
        const struct outcome *outcome = find_outcome(outcomes, n, columns->number);
        if (!outcome)
            continue;
        const char *begin = line_at(copied, columns->number - line + 1);
        fwrite(copied, 1, (size_t)(begin - copied), out);
        copied = line_at(begin, columns->lines - columns->number + 2);
        bool is_dos = copied - begin >= 2 && memcmp(copied - 2, "\r\n", 2) == 0;
        print_row(out, columns, at, outcome, is_dos ? "\r\n" : "\n");
        line = columns->lines + 1;
    }
    fputs(copied, out);
    return r;
}

/* Makes the new text. Returns 0 with *ret_text, which the caller frees, or -errno with a fault. */
static int replace_rows(const struct radt_table *table, const struct outcome *outcomes, int n,
    struct fault *fault, char **ret_text, size_t *ret_size)
{
    struct columns columns;
    *ret_text = NULL;
    FILE *out = open_memstream(ret_text, ret_size);
    if (!out)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = columns_open_text(&columns, table->text, table->path, fault);
    if (r == 0)
        r = print_table(table->text, &columns, outcomes, n, out, fault);
    columns_close(&columns);
    if (fclose(out) != 0 && r == 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    return r;
}

/* ---- the file ---- */

static int read_table(struct radt_table *table, struct fault *fault)
{
    struct stat status;
    if (stat(table->path, &status) < 0)
        return fault_set(fault, errno, "%s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return fault_set(fault, EINVAL, "it is not a regular file");
    if (status.st_uid != geteuid())
        return fault_set(fault, EPERM, "it belongs to another user");
    if (access(table->path, W_OK) < 0)
        return fault_set(fault, errno, "%s", strerror(errno));
    table->mode = status.st_mode & 07777;
    int r = file_read(table->path, RADT_TABLE_MAX, fault, &table->text, &table->size);
    if (r == 0 && strlen(table->text) != table->size)
        r = fault_set(fault, EINVAL, "it has binary characters");
    return r;
}

int radt_table_open(const char *path, struct fault *fault, struct radt_table *ret_table)
{
    struct columns columns;
    int at[WRITTEN];
    *ret_table = (struct radt_table){0};
    if (strcmp(path, "-") == 0)
        return fault_set(fault, EINVAL, "it is standard input");
    if (!(ret_table->path = realpath(path, NULL)))
        return fault_set(fault, errno, "%s", strerror(errno));
    int r = read_table(ret_table, fault);
    if (r < 0)
        return r;
    r = columns_open_text(&columns, ret_table->text, path, fault);
    if (r == 0)
        r = find_columns(&columns, fault, at);
    columns_close(&columns);
    return r;
}

void radt_table_fini(struct radt_table *table)
{
    free(table->path);
    free(table->text);
    *table = (struct radt_table){0};
}

static int check_unchanged(const struct radt_table *table, struct fault *fault)
{
    char *text;
    size_t size;
    int r = file_read(table->path, RADT_TABLE_MAX, fault, &text, &size);
    if (r < 0)
        return r;
    bool same = size == table->size && memcmp(text, table->text, size) == 0;
    free(text);
    return same ? 0 : fault_set(fault, ESTALE, "%s has changed while the bench ran", table->path);
}

int radt_table_write(struct radt_table *table, const struct bench_group *group, size_t number,
    int repeat, const struct training_result *results, char (*run_ids)[BENCH_RUN_ID_SIZE],
    struct fault *fault)
{
    struct outcome outcomes[BENCH_TASKS_MAX];
    char letter[BENCH_GPUS_SIZE + 64], *text;
    size_t size;
    for (int i = 0; i < group->n_tasks; i++) {
        struct outcome *outcome = &outcomes[i];
        radt_letter(group, i, letter, sizeof letter);
        outcome->line = group->tasks[i].line;
        snprintf(outcome->value[STATUS], sizeof outcome->value[STATUS], "%s %.120s (%.120s)",
            *results[i].failure ? "FAILED" : "FINISHED", group->tasks[i].name, letter);
        if (run_ids && *run_ids[i])
            snprintf(outcome->value[RUN], sizeof outcome->value[RUN], "%s", run_ids[i]);
        else
            snprintf(
                outcome->value[RUN], sizeof outcome->value[RUN], "%zu-%d.%d", number, repeat, i);
    }
    int r = check_unchanged(table, fault);
    if (r < 0)
        return r;
    r = replace_rows(table, outcomes, group->n_tasks, fault, &text, &size);
    int written = r == 0 ? file_write_atomic(table->path, text, size, table->mode) : 0;
    if (r < 0 || written < 0) {
        free(text);
        return r < 0 ? r : fault_set(fault, -written, "%s: %s", table->path, strerror(-written));
    }
    free(table->text);
    table->text = text;
    table->size = size;
    return 0;
}
