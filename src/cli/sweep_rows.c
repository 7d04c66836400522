/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CSV file of a sweep: a header, then one row for each combination, in order. --resume checks
 * that the rows there belong to the same sweep and continues after the last complete one.
 */
#include "cli/sweep_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char result_columns[] =
    "total_s,avg_wait_s,avg_exec_s,avg_jct_s,oom,completed,failed,left_out,energy_mj,"
    "mean_smact,lower_bound_s,fault\n";

/* ---- resuming ---- */

/* Row number k of the file must be combination k of this sweep. */
static int check_line(const struct sweep_grid *grid, int64_t number, const char *line,
    const char *path, struct fault *fault)
{
    if (number == 0) {
        size_t n = strlen(sweep_key_columns);
        if (strncmp(line, sweep_key_columns, n) == 0 && strcmp(line + n, result_columns) == 0)
            return 0;
        return fault_set(fault, EINVAL,
            "%s:1: not the columns of a sweep: give the output file of a sweep", path);
    }
    if (number > grid->n)
        return fault_set(fault, EINVAL,
            "%s:%" PRId64 ": more rows than this sweep has, which is %" PRId64 " runs", path,
            number + 1, grid->n);
    const char *key = grid->points[number - 1].key;
    if (strncmp(line, key, strlen(key)) == 0)
        return 0;
    return fault_set(fault, EINVAL,
        "%s:%" PRId64 ": the row belongs to another sweep: this one has %.200s in this place", path,
        number + 1, key);
}

/* Counts the complete lines of the file, which must be rows of this sweep, and finds their end. */
static int read_lines(FILE *file, const struct sweep_grid *grid, const char *path,
    struct fault *fault, int64_t *ret_lines, off_t *ret_end)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    int r = 0;
    *ret_lines = 0;
    *ret_end = 0;
    while (r == 0 && (size = getline(&line, &room, file)) > 0 && line[size - 1] == '\n') {
        r = check_line(grid, *ret_lines, line, path, fault);
        *ret_lines += 1;
        *ret_end += size;
    }
    free(line);
    return r < 0 || !ferror(file) ? r : fault_set(fault, EIO, "%s: cannot read the file", path);
}

static int go_on(FILE *file, const struct sweep_grid *grid, const char *path, struct fault *fault,
    int64_t *ret_lines)
{
    off_t end;
    int r = read_lines(file, grid, path, fault, ret_lines, &end);
    if (r == 0 && (ftruncate(fileno(file), end) < 0 || fseeko(file, end, SEEK_SET) < 0))
        r = fault_set(fault, errno, "%s: %s", path, strerror(errno));
    return r;
}

/* ---- writing ---- */

static bool holds_something(const char *path)
{
    struct stat status;
    return path && stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
}

/* An existing file is overwritten or continued only when the user says which. */
int sweep_rows_open(const char *path, enum sweep_rows rows, const struct sweep_grid *grid,
    struct fault *fault, FILE **ret_out, int64_t *ret_first)
{
    int64_t lines = 0;
    int r = 0;
    if (rows == SWEEP_ROWS_RESUME && !path)
        return fault_set(
            fault, EINVAL, "--resume needs --output=FILE: the file of the interrupted sweep");
    if (rows == SWEEP_ROWS_REFUSE && holds_something(path))
        return fault_set(fault, EEXIST,
            "%s exists already: continue it with --resume or overwrite it with "
            "--force",
            path);
    bool resume = rows == SWEEP_ROWS_RESUME && access(path, F_OK) == 0;
    FILE *file = path ? fopen(path, resume ? "r+e" : "we") : stdout;
    if (!file)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    if (resume)
        r = go_on(file, grid, path, fault, &lines);
    if (r < 0) {
        fclose(file);
        return r;
    }
    if (lines == 0)
        fprintf(file, "%s%s", sweep_key_columns, result_columns);
    fflush(file);
    *ret_out = file;
    *ret_first = lines > 0 ? lines - 1 : 0;
    return 0;
}

static void write_result(FILE *out, const struct simulation_result *result)
{
    fprintf(out,
        "%.15g,%.15g,%.15g,%.15g,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
        ",%.15g,%.15g,%.15g,\n",
        result->total_s, result->avg_wait_s, result->avg_exec_s, result->avg_jct_s, result->oom,
        result->completed, result->failed, result->left_out, result->energy_mj, result->mean_smact,
        result->lower_bound_s);
}

static void write_fault(FILE *out, const char *fault)
{
    fputs(",,,,,,,,,,,\"", out);
    for (; fault && *fault; fault++)
        fputs(*fault == '"' ? "\"\"" : (char[]){*fault, '\0'}, out);
    fputs("\"\n", out);
}

void sweep_rows_write(FILE *out, const char *key, const struct sweep_outcome *outcome)
{
    fputs(key, out);
    if (outcome->r < 0)
        write_fault(out, outcome->fault);
    else
        write_result(out, &outcome->result);
    fflush(out);
}
