/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a task, one row each: its name for `--output`, and how a table and CSV show it.
 * Most are a member of the TASK object and its format; a field made from several members has a
 * function.
 */
#include "cli/task_fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "cli/print.h"
#include "cli/table.h"
#include "cli/task_words.h"

/* ---- formats ---- */

static const char *plain_text(const json_t *value, char cell[CELL_SIZE])
{
    if (json_is_string(value))
        return json_string_value(value);
    if (!json_is_number(value))
        return "-";
    snprintf(cell, CELL_SIZE, "%.10g", json_number_value(value));
    return cell;
}

/* Short, for a table: "11-20 16:02" in this year, "2025-11-20" in another. */
static const char *short_moment(const json_t *value, char cell[CELL_SIZE])
{
    struct tm then, today;
    time_t moment = (time_t)json_number_value(value), now = time(NULL);
    if (!json_is_number(value) || !localtime_r(&moment, &then) || !localtime_r(&now, &today))
        return "-";
    strftime(cell, CELL_SIZE, then.tm_year == today.tm_year ? "%m-%d %H:%M" : "%Y-%m-%d", &then);
    return cell;
}

/* "12_7" for a task of an array. */
static void write_id(const json_t *task, FILE *out)
{
    char cell[CELL_SIZE];
    fputs(task_id_text(task, cell, sizeof cell), out);
}

/* The task's GPUs; after its end those of the last attempt. */
static void write_gpus(const json_t *task, FILE *out)
{
    char cell[CELL_SIZE];
    bool has_none = member_number(task, "gpus_requested", 1) < 1;
    fputs(has_none ? "no GPU" : list_text(task_gpus(task), cell), out);
}

/* As Slurm writes it: code:signal. */
static void write_exit(const json_t *task, FILE *out)
{
    if (json_is_number(json_object_get(task, "exit_code")) ||
        json_is_number(json_object_get(task, "signal")))
        fprintf(out, "%.0f:%.0f", member_number(task, "exit_code", 0),
            member_number(task, "signal", 0));
    else
        fputc('-', out);
}

/* "2xOOM: " for GPU memory crashes, which a completed task may have had, too; then the reason. */
static void write_reason(const json_t *task, FILE *out)
{
    const char *word = member_text(task, "reason", "-"),
               *words = member_text(task, "reason_text", "");
    double crashes = member_number(task, "oom_count", 0);
    bool is_none = strcmp(word, "None") == 0 && !*words;
    if (crashes > 0)
        fprintf(out, "%.0fxOOM%s", crashes, is_none ? "" : ": ");
    if (!is_none)
        fputs(*words ? words : word, out);
}

static const struct task_field fields[] = {
    {"id", "ID", TABLE_RIGHT, "id", plain_text, write_id},
    {"name", "NAME", TABLE_CUT, "name", plain_text, NULL},
    {"user", "USER", 0, "user", plain_text, NULL},
    {"state", "STATE", 0, "state", plain_text, NULL},
    {"submitted", "SUBMITTED", TABLE_WIDEST, "submitted_at", short_moment, NULL},
    {"started", "STARTED", TABLE_WIDEST, "started_at", short_moment, NULL},
    {"ended", "ENDED", 0, "ended_at", short_moment, NULL},
    {"wait", "WAIT", TABLE_RIGHT | TABLE_WIDE, "wait_s", seconds_text, NULL},
    {"run", "RUN", TABLE_RIGHT, "exec_s", seconds_text, NULL},
    {"total", "TOTAL", TABLE_RIGHT, "jct_s", seconds_text, NULL},
    {"gpus", "GPUS", TABLE_RIGHT, "gpus_requested", plain_text, NULL},
    {"gpu", "GPU", 0, NULL, NULL, write_gpus},
    {"attempts", "ATTEMPTS", TABLE_RIGHT, "attempt_count", plain_text, NULL},
    {"oom", "OOM", TABLE_RIGHT, "oom_count", plain_text, NULL},
    {"memory", "MEMORY", TABLE_RIGHT, "need_mib", mib_text, NULL},
    {"peak", "PEAK", TABLE_RIGHT | TABLE_WIDE, "mem_peak_mib", mib_text, NULL},
    {"smact", "SMACT", TABLE_RIGHT | TABLE_WIDEST, "smact_mean", fraction_text, NULL},
    {"steps", "STEPS/S", TABLE_RIGHT | TABLE_WIDEST, "steps_per_s_mean", rate_text, NULL},
    {"energy", "ENERGY", TABLE_RIGHT | TABLE_WIDEST, "energy_j", joules_text, NULL},
    {"policy", "POLICY", 0, "policy", plain_text, NULL},
    {"sharing", "SHARING", 0, "sharing", plain_text, NULL},
    {"estimator", "ESTIMATOR", 0, "estimator", plain_text, NULL},
    {"exit", "EXIT", TABLE_WIDE, NULL, NULL, write_exit},
    {"reason", "REASON", TABLE_REST, NULL, NULL, write_reason},
    {"command", "COMMAND", TABLE_REST, "command", plain_text, NULL},
};

enum { FIELDS = ARRAY_SIZE(fields) };

static const struct task_field *find_field(const char *name, size_t size)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (strlen(fields[i].name) == size && strncmp(fields[i].name, name, size) == 0)
            return &fields[i];
    return NULL;
}

static int unknown_field(const char *name, size_t size, struct fault *fault)
{
    char all[400] = "";
    for (size_t i = 0; i < FIELDS; i++)
        snprintf(
            all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", fields[i].name);
    return fault_set(fault, EINVAL, "'%.*s': no such field: give some of %s",
        (int)(size < 40 ? size : 40), name, all);
}

/* Columns are in the order in which they are named; a name may be there twice. */
int task_fields_parse(
    const char *text, struct fault *fault, const struct task_field *ret_fields[TASK_FIELDS_MAX])
{
    int count = 0;
    for (const char *name = text;; name++) {
        size_t size = strcspn(name, ",");
        const struct task_field *field = find_field(name, size);
        if (!field)
            return unknown_field(name, size, fault);
        if (count == TASK_FIELDS_MAX)
            return fault_set(fault, EINVAL, "more than %d fields", TASK_FIELDS_MAX);
        ret_fields[count++] = field;
        name += size;
        if (*name == '\0')
            return count;
    }
}

void task_field_write(const struct task_field *field, const json_t *task, FILE *out)
{
    char cell[CELL_SIZE];
    if (field->write)
        field->write(task, out);
    else
        fputs(field->format(json_object_get(task, field->key), cell), out);
}

/* ---- CSV ---- */

static void print_csv_text(const struct task_field *field, const json_t *task)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    task_field_write(field, task, out);
    fclose(out);
    json_t *value = text && strcmp(text, "-") != 0 ? json_string(text) : NULL;
    print_csv_cell(value);
    json_decref(value);
    free(text);
}

/* A field that is one member of TASK has that member's key as its title and its plain value; texts
 * of a table are for people. */
void task_fields_print_csv(const struct task_field *const *chosen, int count, const json_t *tasks)
{
    size_t k;
    json_t *task;
    for (int i = 0; i < count; i++)
        printf("%s%s", i ? "," : "", chosen[i]->key ? chosen[i]->key : chosen[i]->name);
    putchar('\n');
    json_array_foreach(tasks, k, task) {
        for (int i = 0; i < count; i++) {
            if (i)
                putchar(',');
            if (chosen[i]->key)
                print_csv_cell(json_object_get(task, chosen[i]->key));
            else
                print_csv_text(chosen[i], task);
        }
        putchar('\n');
    }
}
