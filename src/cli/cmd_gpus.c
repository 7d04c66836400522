/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc gpus`: a table, CSV or JSON of the GPUs now (GET /v1/gpus) or of their recorded samples
 * (GET /v1/samples).
 *
 * A value that the driver does not report is "-" in the table, an empty cell in CSV, null in JSON.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/external.h"
#include "cli/print.h"
#include "cli/reply_list.h"
#include "cli/session_once.h"
#include "cli/task_view.h"

enum { GPUS_CSV, GPUS_SINCE, GPUS_CLEAR };

static const struct option_spec options[] = {
    [GPUS_CSV] = FLAG_OPTION(
        "csv", .help = "print CSV: a line of column names, then one line for each GPU"),
    [GPUS_SINCE] = OPTION("since", DURATION, "TIME", .min = SECOND_US, .max = 3650 * DAY_US,
        .help = "print the recorded samples of this period until now as CSV (with --json: as "
                "JSON)"),
    [GPUS_CLEAR] = OPTION("clear", TEXT, "GPU",
        .help = "let this GPU take tasks again after an Xid error excluded it and it was "
                "reset or replaced (root only)"),
};

static const struct table_column columns[] = {
    {"GPU", 0},
    {"NAME", TABLE_CUT},
    {"HEALTH", 0},
    {"MEMORY", TABLE_RIGHT},
    {"SMACT", TABLE_RIGHT},
    {"POWER", TABLE_RIGHT},
    {"TEMP", TABLE_RIGHT},
    {"TASKS", 0},
    {"NOTES", TABLE_WRAP},
};

/* How people name the task: "12", or "14_3" of an array. */
static const char *label_text(const json_t *gpu, const json_t *id, char *text)
{
    snprintf(text, CELL_SIZE, "%.0f", json_number_value(id));
    const char *label = member_text(json_object_get(gpu, "task_labels"), text, NULL);
    if (label)
        snprintf(text, CELL_SIZE, "%s", label);
    return text;
}

static void tasks_cell(struct table *table, const json_t *gpu)
{
    char cell[CELL_SIZE], label[CELL_SIZE];
    json_t *labels = json_array(), *task;
    size_t i;
    json_array_foreach(json_object_get(gpu, "tasks"), i, task) {
        json_array_append_new(
            labels, json_string(label_text(gpu, json_object_get(task, "id"), label)));
    }
    table_cell(table, NULL, "%s", list_text(labels, cell));
    json_decref(labels);
}

/* Appends a note. */
static void add_note(char *notes, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add_note(char *notes, size_t size, const char *format, ...)
{
    size_t used = strlen(notes);
    va_list args;
    if (used && used + 2 < size)
        used += (size_t)snprintf(notes + used, size - used, "; ");
    va_start(args, format);
    vsnprintf(notes + used, size - used, format, args);
    va_end(args);
}

static void add_unused_notes(char *notes, size_t size, const json_t *gpu)
{
    char cell[CELL_SIZE], label[CELL_SIZE];
    size_t i;
    json_t *task;
    json_array_foreach(json_object_get(gpu, "tasks"), i, task) {
        if (json_is_true(json_object_get(task, "unused_for_long")))
            add_note(notes, size, "task %s has not used it for %s",
                label_text(gpu, json_object_get(task, "id"), label),
                seconds_text(json_object_get(task, "unused_s"), cell));
    }
}

static void add_external_notes(char *notes, size_t size, const json_t *gpu)
{
    enum { SHOWN_MAX = 4 }; /* chosen: the column stays narrow */
    const json_t *processes = json_object_get(gpu, "foreign_processes");
    size_t count = json_array_size(processes);
    for (size_t i = 0; i < count && i < SHOWN_MAX; i++) {
        char text[EXTERNAL_TEXT_SIZE];
        add_note(notes, size, "external %s", external_text(json_array_get(processes, i), text));
    }
    if (count > SHOWN_MAX)
        add_note(notes, size, "and %zu more external processes", count - SHOWN_MAX);
}

static void add_context_notes(char *notes, size_t size, const json_t *gpu)
{
    char label[CELL_SIZE];
    size_t i;
    json_t *task;
    json_array_foreach(json_object_get(gpu, "contexts"), i, task)
        add_note(
            notes, size, "task %s is suspended, its context stays", label_text(gpu, task, label));
}

/* Once for each task. */
static void add_misplaced_notes(char *notes, size_t size, const json_t *gpu)
{
    char label[CELL_SIZE];
    double last = 0;
    size_t i;
    json_t *process;
    json_array_foreach(json_object_get(gpu, "misplaced_processes"), i, process) {
        double task = member_number(process, "task", 0);
        if (task > last || task < last)
            add_note(notes, size,
                "task %s uses it, though it was not given it: its script sets "
                "CUDA_VISIBLE_DEVICES",
                label_text(gpu, json_object_get(process, "task"), label));
        last = task;
    }
}

/* Errors of the GPU, why it takes no task now, idle holders, other tasks, external processes. */
static void notes_cell(struct table *table, const json_t *gpu)
{
    char notes[2048] = "";
    const char *hold_off = member_text(gpu, "hold_off", ""),
               *health = member_text(gpu, "health_text", "");
    if (*health)
        add_note(notes, sizeof notes, "%s", health);
    if (*hold_off)
        add_note(notes, sizeof notes, "%s", hold_off);
    add_unused_notes(notes, sizeof notes, gpu);
    add_context_notes(notes, sizeof notes, gpu);
    add_misplaced_notes(notes, sizeof notes, gpu);
    add_external_notes(notes, sizeof notes, gpu);
    table_cell(table, NULL, "%s", notes);
}

static void quantity_cell(struct table *table, const json_t *value, const char *unit)
{
    if (json_is_number(value))
        table_cell(table, NULL, "%.0f %s", json_number_value(value), unit);
    else
        table_cell(table, NULL, "-");
}

/* "29.8/40.0 GiB": used of total. */
static void memory_cell(struct table *table, const json_t *gpu)
{
    const json_t *used = json_object_get(gpu, "mem_used_mib"),
                 *total = json_object_get(gpu, "mem_total_mib");
    char used_text[16] = "-";
    if (json_is_number(used))
        snprintf(used_text, sizeof used_text, "%.1f", json_number_value(used) / 1024);
    if (json_is_number(total))
        table_cell(table, NULL, "%s/%.1f GiB", used_text, json_number_value(total) / 1024);
    else
        table_cell(table, NULL, "-");
}

/* SMACT is the mean over the scheduler's window, by which placements are decided. The last sample
 * stands in until there is one. */
static void add_gpu(struct table *table, const json_t *gpu)
{
    char cell[CELL_SIZE];
    const char *health = member_text(gpu, "health", "?"), *name = member_text(gpu, "name", "-");
    const json_t *smact = json_object_get(gpu, "smact_window");
    table_row(table);
    table_cell(table, NULL, "%s", member_text(gpu, "index", "?"));
    table_cell(table, NULL, "%s", strncmp(name, "NVIDIA ", 7) == 0 ? name + 7 : name);
    table_cell(table, strcmp(health, "ok") == 0 ? "green" : "red", "%s", health);
    memory_cell(table, gpu);
    table_cell(table, NULL, "%s",
        fraction_text(json_is_number(smact) ? smact : json_object_get(gpu, "smact"), cell));
    quantity_cell(table, json_object_get(gpu, "power_w"), "W");
    quantity_cell(table, json_object_get(gpu, "temperature_c"), "C");
    tasks_cell(table, gpu);
    notes_cell(table, gpu);
}

/* ---- CSV ---- */

/* One line for each GPU, with the time first, so that the lines of several calls form a record. */
static void print_csv(const json_t *reply)
{
    static const char *const keys[] = {
        "index",
        "uuid",
        "name",
        "mig_profile",
        "health",
        "mem_total_mib",
        "mem_used_mib",
        "mem_free_mib",
        "utilisation",
        "smact",
        "smact_window",
        "smocc",
        "dram_active",
        "power_w",
        "energy_mj",
        "temperature_c",
    };
    size_t i;
    json_t *gpu;
    printf("sampled_at");
    for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
        printf(",%s", keys[k]);
    putchar('\n');
    json_array_foreach(json_object_get(reply, "gpus"), i, gpu) {
        print_csv_cell(json_object_get(reply, "sampled_at"));
        for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
            putchar(',');
            print_csv_cell(json_object_get(gpu, keys[k]));
        }
        putchar('\n');
    }
}

/* A line for each GPU and step. Unknown values are empty. */
static void print_past_csv(const json_t *reply)
{
    size_t g, r, c;
    json_t *gpu, *row, *value;
    printf("index,uuid,step_s");
    json_array_foreach(json_object_get(reply, "columns"), c, value) {
        printf(",%s", json_string_value(value));
    }
    putchar('\n');
    json_array_foreach(json_object_get(reply, "gpus"), g, gpu) {
        json_array_foreach(json_object_get(gpu, "rows"), r, row) {
            printf("%s,%s,%g", member_text(gpu, "index", ""), member_text(gpu, "uuid", ""),
                member_number(gpu, "step_s", 0));
            json_array_foreach(row, c, value) {
                putchar(',');
                print_csv_cell(value);
            }
            putchar('\n');
        }
    }
}

/* With --since: the daemon's stored samples, as CSV or JSON. */
static int print_past(const struct invocation *invocation)
{
    char path[64];
    json_t *reply;
    snprintf(path, sizeof path, "/v1/samples?since_s=%.3f",
        (double)invocation->values[GPUS_SINCE].number / 1e6);
    int code = session_get(invocation, path, &reply);
    if (code != EXIT_OK)
        return code;
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    else
        print_past_csv(reply);
    json_decref(reply);
    return EXIT_OK;
}

static const struct reply_list list = {.path = "/v1/gpus",
    .member = "gpus",
    REPLY_LIST_COLUMNS(columns),
    .add_row = add_gpu,
    .none = "No GPUs."};

static int clear_gpu(const struct invocation *invocation)
{
    json_t *reply, *body = json_pack("{s:s}", "gpu", invocation->values[GPUS_CLEAR].text);
    int code = session_post(invocation, "/v1/gpus/clear", body, &reply);
    json_decref(reply);
    return code;
}

/* External processes get their names here: the daemon reports pids, and what this user may read of
 * them in /proc is added. */
static int run(const struct invocation *invocation)
{
    json_t *reply;
    if (invocation->values[GPUS_CLEAR].set)
        return clear_gpu(invocation);
    if (invocation->values[GPUS_CSV].number && invocation->common[COMMON_JSON].number) {
        print_error("gpus: --csv and --json exclude each other: give one of them");
        return EXIT_USAGE;
    }
    if (invocation->values[GPUS_SINCE].set)
        return print_past(invocation);
    int code = session_get(invocation, list.path, &reply);
    if (code != EXIT_OK)
        return code;
    external_name(reply);
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    else if (invocation->values[GPUS_CSV].number)
        print_csv(reply);
    else
        reply_list_print(&list, reply);
    json_decref(reply);
    return EXIT_OK;
}

const struct command command_gpus = {
    .name = "gpus",
    .usage = "[OPTION...]",
    .summary = "show the GPUs, their tasks and external processes",
    .description = "SMACT is the SM activity, the fraction of streaming multiprocessors that "
                   "were active, averaged over the scheduler's window. NOTES says why a GPU "
                   "takes no further task now, which task holds it without using it, and which "
                   "external processes (not started by colloc) use it, with their user, "
                   "command, memory and age. An unknown value is \"-\" (with --csv: empty).",
    COMMAND_OPTIONS(options),
    .run = run,
};
