/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools read tasks in Slurm's forms, and count on each letter of them:
 *
 *     squeue -h -o '%i %T %B'                12 RUNNING gpu-server
 *     sacct -P -n --format=JobID,State       12|COMPLETED
 *     scontrol show job 12                   JobId=12 JobName=net ...
 *
 * Here are widths, separators and order. What a letter or name stands for is in the table of
 * task_fields.c.
 */
#include "cli/slurm_fields.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/slurm_states.h"
#include "cli/task_fields.h"

enum { FIELD_WIDTH_MAX = 10000 };

/* ---- squeue ---- */

static void print_cell(const char *text, long width, bool is_right, FILE *out)
{
    if (text && width > 0)
        fprintf(out, is_right ? "%*.*s" : "%-*.*s", (int)width, (int)width, text);
    else if (text)
        fputs(text, out);
}

/* The value, or without a task the header. */
static void print_value(
    const struct task_name *name, const json_t *task, long width, bool is_right, FILE *out)
{
    char *text = task ? task_name_text(name, task) : strdup(name->header);
    print_cell(text, width, is_right, out);
    free(text);
}

/* "%.18i": flush right in 18 columns; "%8u": flush left, cut; "%T": as long as it is. */
static int print_queue_field(const char **at, const json_t *task, FILE *out)
{
    bool is_right = *++*at == '.';
    *at += is_right;
    char *end;
    long width = strtol(*at, &end, 10);
    *at = end;
    const struct task_name name = task_name_of_letter(**at);
    if (!name.field || width < 0 || width > FIELD_WIDTH_MAX)
        return -EINVAL;
    print_value(&name, task, width, is_right, out);
    return 0;
}

int slurm_print_queue_line(const char *format, const json_t *task, FILE *out)
{
    char *line = NULL;
    size_t size;
    FILE *text = open_memstream(&line, &size);
    int r = text ? 0 : -ENOMEM;
    for (const char *at = format; text && *at && r == 0; at++)
        if (*at == '%')
            r = print_queue_field(&at, task, text);
        else
            fputc(*at, text);
    if (text)
        fclose(text);
    if (r == 0)
        fprintf(out, "%s\n", line);
    free(line);
    return r;
}

enum { NAMED_WIDTH = 20 }; /* of a field without one: squeue(1) */

/* "JobID,State:8,Name:.6|,Reason:\x1f": a width, and what is printed behind the field. */
int slurm_print_named_line(const char *list, const json_t *task, FILE *out, char ret_unknown[64])
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t size = strcspn(at, ",:");
        const struct task_name name = task_name_of_queue(at, size);
        bool has_width = at[size] == ':', is_right = has_width && at[size + 1] == '.';
        const char *start = at + size + 1 + is_right;
        char *end = NULL;
        long width = has_width ? strtol(start, &end, 10) : NAMED_WIDTH; /* ":": as long as it is */
        const char *suffix = has_width ? end : at + size;
        if (!name.field || width < 0 || width > FIELD_WIDTH_MAX) {
            snprintf(ret_unknown, 64, "%.*s", (int)(size < 60 ? size : 60), at);
            return -EINVAL;
        }
        print_value(&name, task, width, is_right, out);
        fprintf(out, "%.*s", (int)strcspn(suffix, ","), suffix);
    }
    fputc('\n', out);
    return 0;
}

/* ---- squeue -S ---- */

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

/* By the number that the field has for that; else by the text, in which numbers come first. */
static int compare_field(const struct task_name *name, const json_t *a, const json_t *b)
{
    if (name->field->order)
        return compare_numbers(name->field->order(a), name->field->order(b));
    char *text_a = task_name_text(name, a), *text_b = task_name_text(name, b), *end_a, *end_b;
    int order = 0;
    if (text_a && text_b) {
        double number_a = strtod(text_a, &end_a), number_b = strtod(text_b, &end_b);
        bool is_a = *text_a && !*end_a && isfinite(number_a),
             is_b = *text_b && !*end_b && isfinite(number_b);
        order = is_a && is_b   ? compare_numbers(number_a, number_b)
                : is_a == is_b ? strcmp(text_a, text_b)
                               : is_b - is_a;
    }
    free(text_a);
    free(text_b);
    return order;
}

/* Takes the next key off, and whether it is reversed. 'p' is squeue's letter of the priority.
 * Returns false at the end, or at what is no key. */
static bool take_key(const char **keys, struct task_name *ret_name, bool *ret_is_reversed)
{
    if (!**keys)
        return false;
    *ret_is_reversed = **keys == '-';
    *keys += **keys == '-' || **keys == '+';
    *ret_name = task_name_of_letter(**keys == 'p' ? 'Q' : **keys);
    if (!ret_name->field || ((*keys)[1] && (*keys)[1] != ','))
        return false;
    *keys += 1;
    *keys += **keys == ',';
    return true;
}

bool slurm_sort_is_known(const char *keys)
{
    struct task_name name;
    bool is_reversed;
    while (take_key(&keys, &name, &is_reversed))
        ;
    return !*keys;
}

int slurm_compare(const char *keys, const json_t *a, const json_t *b)
{
    struct task_name name;
    bool is_reversed;
    int order = 0;
    while (order == 0 && take_key(&keys, &name, &is_reversed))
        order = is_reversed ? compare_field(&name, b, a) : compare_field(&name, a, b);
    return order;
}

/* ---- sacct ---- */

/* In columns as sacct prints them: cut with a '+', a blank behind each. */
static void print_column(const char *text, int width, FILE *out)
{
    int columns = abs(width), size = (int)strlen(text);
    if (size > columns)
        fprintf(out, "%.*s+ ", columns - 1, text);
    else
        fprintf(out, width < 0 ? "%-*s " : "%*s ", columns, text);
}

static int width_of(const struct task_name *name, const char *given)
{
    long width = given ? strtol(given, NULL, 10) : 0;
    bool is_width = width && width >= -FIELD_WIDTH_MAX && width <= FIELD_WIDTH_MAX;
    return is_width ? (int)width : name->width;
}

static void print_dashes(const char *list, FILE *out)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t size = strcspn(at, ",%");
        const struct task_name name = task_name_of_account(at, size);
        int width = abs(width_of(&name, at[size] == '%' ? at + size + 1 : NULL));
        for (int i = 0; i < width; i++)
            fputc('-', out);
        fputc(' ', out);
    }
    fputc('\n', out);
}

int slurm_print_account_line(const char *list, const struct slurm_layout *layout,
    const json_t *task, FILE *out, char ret_unknown[64])
{
    bool is_first = true;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t size = strcspn(at, ",%");
        const struct task_name name = task_name_of_account(at, size);
        char *text = !name.field ? NULL : task ? task_name_text(&name, task) : strdup(name.name);
        if (!text) {
            snprintf(ret_unknown, 64, "%.*s", (int)(size < 60 ? size : 60), at);
            return -EINVAL;
        }
        if (layout->between)
            fprintf(out, "%s%s", is_first ? "" : layout->between, text);
        else
            print_column(text, width_of(&name, at[size] == '%' ? at + size + 1 : NULL), out);
        free(text);
        is_first = false;
    }
    fprintf(out, "%s\n", layout->ends_so ? layout->between : "");
    if (!task && !layout->between)
        print_dashes(list, out);
    return 0;
}

static void print_name(const char *name, void *out)
{
    fprintf(out, "%s\n", name);
}

void slurm_print_account_fields(FILE *out)
{
    task_names_of_account(print_name, out);
}

/* ---- scontrol show job ---- */

/* "%T": a letter of squeue; "@Elapsed;": a field of sacct. */
static void print_pattern(const char *pattern, const json_t *task, FILE *out)
{
    for (const char *at = pattern; *at; at++) {
        size_t size = *at == '@' ? strcspn(at + 1, ";") : 0;
        const struct task_name name = size ? task_name_of_account(at + 1, size)
                                           : (struct task_name){0};
        if (name.field)
            task_name_write(&name, task, out);
        if (*at == '%')
            print_queue_field(&at, task, out);
        else if (!name.field)
            fputc(*at, out);
        at += name.field ? size + 1 : 0;
    }
}

void slurm_print_job(const json_t *task, bool is_one_line, FILE *out)
{
    static const char *const lines[] = {"UserId=%u(%U) GroupId=%g(%G) MCS_label=N/A",
        "Priority=%Q Nice=%y Account=%a QOS=%q", "JobState=%T Reason=%r Dependency=%E",
        "Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=@ExitCode;",
        "RunTime=@Elapsed; TimeLimit=@Timelimit; TimeMin=N/A",
        "SubmitTime=@Submit; EligibleTime=@Submit;", "StartTime=@Start; EndTime=@End; Deadline=N/A",
        "Partition=%P AllocNode:Sid=N/A:N/A", "ReqNodeList=(null) ExcNodeList=(null)",
        "NodeList=%N", "BatchHost=%B",
        "NumNodes=%D NumCPUs=%C NumTasks=1 CPUs/Task=%C ReqB:S:C:T=0:0:*:*",
        "Features=(null) DelayBoot=00:00:00",
        "OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)", "Command=%o", "WorkDir=%Z",
        "TresPerNode=%b"};
    print_pattern("JobId=%A ", task, out);
    if (member_number(task, "array_id", 0) > 0)
        print_pattern("ArrayJobId=%F ArrayTaskId=%K ", task, out);
    print_pattern("JobName=%j", task, out);
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        if (strncmp(lines[i], "BatchHost", 9) == 0 && !slurm_has_started(task))
            continue;
        fputs(is_one_line ? " " : "\n   ", out);
        if (strncmp(lines[i], "Requeue", 7) != 0) {
            print_pattern(lines[i], task, out);
            continue;
        }
        double attempts = member_number(task, "attempt_count", 1);
        fprintf(out, "Requeue=%d Restarts=%.0f BatchFlag=1 Reboot=0 ",
            !json_is_false(json_object_get(task, "requeue")), attempts > 1 ? attempts - 1 : 0);
        print_pattern("ExitCode=@ExitCode;", task, out);
    }
    fputs(is_one_line ? "\n" : "\n\n", out);
}
