/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc report`: the use of the GPUs in a period, by user, project or GPU.
 *
 *     USER  TASKS    HELD      USED    IDLE  REPEATED   SAVED      ENERGY
 *     ada      41  96.0 h   >61.0 h   9.4 h     1.5 h  22.4 h  >31.20 kWh
 *
 * usage_report.c adds the rows up; this file reads the period and prints. Where activity or energy
 * of some hours is not known, a sum is at least what is printed (">"), and "-" where nothing is
 * known.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/moment.h"
#include "cli/estimate_report.h"
#include "cli/hours.h"
#include "cli/print.h"
#include "cli/saved_report.h"
#include "cli/session.h"
#include "cli/session_once.h"
#include "cli/table.h"
#include "cli/task_view.h"
#include "cli/usage_report.h"
#include "sharing/gpu_kind.h"

enum {
    REPORT_MONTH,
    REPORT_FROM,
    REPORT_TO,
    REPORT_BY,
    REPORT_CO2,
    REPORT_ESTIMATES,
    REPORT_SAVED,
    REPORT_CSV
};

static const char *const keys[] = {[REPORT_BY_USER] = "user",
    [REPORT_BY_PROJECT] = "project",
    [REPORT_BY_GPU] = "gpu",
    [REPORT_BY_TASK] = "task",
    NULL};

static const struct option_spec options[] = {
    [REPORT_MONTH] = FLAG_OPTION(
        "month", .help = "report this calendar month so far; this is the default"),
    [REPORT_FROM] = OPTION("from", TEXT, "WHEN",
        .help = "begin of the period: a date (2026-11-01, \"2026-11-01 16:00\"), a time of today "
                "(16:00), a time before now (7d), today or yesterday"),
    [REPORT_TO] = OPTION(
        "to", TEXT, "WHEN", .help = "end of the period (as for --from); default: now"),
    [REPORT_BY] = OPTION("by", CHOICE, "WHAT", .choices = keys,
        .help = "a row for each user, project, gpu or task; default: user"),
    [REPORT_CO2] = OPTION("co2-per-kwh", INTEGER, "GRAMS", .max = 100000,
        .help = "grams of CO2 for each kWh; default: the daemon's setting co2-per-kwh"),
    [REPORT_ESTIMATES] = FLAG_OPTION("estimates",
        .help = "instead, compare the estimates of GPU memory with the peaks of completed tasks"),
    [REPORT_SAVED] = FLAG_OPTION("saved",
        .help = "instead, print the ledger: what sharing GPUs saved or cost, against tasks that "
                "run alone in the same order"),
    [REPORT_CSV] = FLAG_OPTION(
        "csv", .help = "print CSV: a line of column names, then one line for each row"),
};

/* ---- the period ---- */

static double begin_of_month(int64_t now_s)
{
    time_t now = (time_t)now_s;
    struct tm date;
    localtime_r(&now, &date);
    date.tm_mday = 1;
    date.tm_hour = date.tm_min = date.tm_sec = 0;
    date.tm_isdst = -1;
    return (double)mktime(&date);
}

/* As `colloc history` reads them, in the user's time zone. */
static int read_moment(
    const struct option_value *value, const char *name, int64_t now_s, double *ret_s)
{
    int64_t moment;
    if (!value->set)
        return EXIT_OK;
    if (moment_parse(value->text, now_s, &moment) < 0) {
        print_error("--%s=%.60s: invalid time: give 2026-11-01, \"2026-11-01 16:00\", 16:00, 7d "
                    "(before now), today or yesterday",
            name, value->text);
        return EXIT_USAGE;
    }
    *ret_s = (double)moment;
    return EXIT_OK;
}

/* By default from the first of this month until now. A period ends now at the latest. */
static int read_period(const struct option_value *values, struct report_query *query)
{
    double exact_s = (double)clock_wall_us() / (double)SECOND_US;
    int64_t now_s = (int64_t)exact_s;
    query->from_s = begin_of_month(now_s);
    query->to_s = exact_s;
    if (values[REPORT_MONTH].set && (values[REPORT_FROM].set || values[REPORT_TO].set)) {
        print_error("report: give --month, or --from and --to");
        return EXIT_USAGE;
    }
    int code = read_moment(&values[REPORT_FROM], "from", now_s, &query->from_s);
    if (code == EXIT_OK)
        code = read_moment(&values[REPORT_TO], "to", now_s, &query->to_s);
    if (code == EXIT_OK && query->to_s > exact_s)
        query->to_s = exact_s;
    if (code == EXIT_OK && query->from_s >= query->to_s) {
        print_error("report: the period is empty: --from is not before --to, or not before now");
        return EXIT_USAGE;
    }
    return code;
}

/* ---- the answer as text ---- */

static const struct table_column columns[] = {
    {"", TABLE_CUT},
    {"TASKS", TABLE_RIGHT},
    {"HELD", TABLE_RIGHT},
    {"USED", TABLE_RIGHT},
    {"IDLE", TABLE_RIGHT},
    {"REPEATED", TABLE_RIGHT},
    {"SAVED", TABLE_RIGHT},
    {"ENERGY", TABLE_RIGHT},
    {"CO2", TABLE_RIGHT},
    {"FAIRNESS", TABLE_RIGHT},
};

/* Prints a lower bound if a part of the sum is unknown; "-" if all of it is, or the bound is 0,
 * which says nothing. */
static void add_sum(struct table *table, double sum, struct shown_unit unit, double unknown_h,
    const struct report_row *row)
{
    char text[64];
    snprintf(text, sizeof text, "%.*f %s", unit.digits, sum * unit.per_whole, unit.name);
    if (unknown_h > 0 && (unknown_h >= row->held_h || strtod(text, NULL) <= 0))
        table_cell(table, NULL, "-");
    else
        table_cell(table, NULL, "%s%s", unknown_h > 0 ? ">" : "", text);
}

/* A lower bound is in the unit of HELD: of less it says nothing. */
static void add_sum_of_hours(struct table *table, double hours, const struct report_row *row)
{
    struct shown_unit unit = hours_unit_of(row->unknown_activity_h > 0 ? row->held_h : hours);
    add_sum(table, hours, unit, row->unknown_activity_h, row);
}

/* A task on two GPUs would count twice, so a row of a GPU has no number of tasks. */
static void add_row(
    struct table *table, const struct report_query *query, const struct report_row *row)
{
    double kwh = row->energy_j / 3.6e6, kg = report_co2_g(query, row) / 1000;
    table_row(table);
    table_cell(table, NULL, "%s", row->name ? row->name : "all");
    if (query->by == REPORT_BY_GPU && row->name)
        table_cell(table, NULL, "-");
    else
        table_cell(table, NULL, "%lld", (long long)row->tasks);
    hours_cell(table, row->held_h);
    add_sum_of_hours(table, row->used_h, row);
    add_sum_of_hours(table, row->idle_h, row);
    hours_cell(table, row->repeated_h);
    hours_cell(table, row->saved_h);
    add_sum(table, kwh, thousandth_unit_of(kwh, "kWh", "Wh"), row->unknown_energy_h, row);
    add_sum(table, kg, thousandth_unit_of(kg, "kg", "g"), row->unknown_energy_h, row);
    if (report_fairness(row) > 0)
        table_cell(table, NULL, "%.2f", report_fairness(row));
    else
        table_cell(table, NULL, "-");
}

/* Below the table: what its reader would take for something else. */
static const char legend[] =
    "\nHELD counts a GPU once for each task on it: shared GPUs make it more than the\n"
    "hours above. SAVED takes tasks for as fast as alone; `colloc report --saved` does\n"
    "not. FAIRNESS: mean completion time, relative to that alone on an equal share of\n"
    "the GPUs.";

static const char *const headers[] = {[REPORT_BY_USER] = "USER",
    [REPORT_BY_PROJECT] = "PROJECT",
    [REPORT_BY_GPU] = "GPU",
    [REPORT_BY_TASK] = "TASK"};

/* The first line has the hours in which GPUs were free, which belong to no row. */
static void print_report(const struct report_query *query, const struct report *report)
{
    char from[CELL_SIZE], to[CELL_SIZE];
    json_auto_t *from_s = json_real(query->from_s), *to_s = json_real(query->to_s);
    struct table_column named[ARRAY_SIZE(columns)];
    memcpy(named, columns, sizeof named);
    named[0].header = headers[query->by];
    double all_h = report->n_gpus * (query->to_s - query->from_s) / 3600;
    struct shown_unit unit = hours_unit_of(all_h);
    char line[256];
    snprintf(line, sizeof line, "From %s to %s: %d GPU%s, free for %.*f of %.*f GPU %s",
        moment_text(from_s, from), moment_text(to_s, to), report->n_gpus,
        report->n_gpus == 1 ? "" : "s", unit.digits, report->free_h * unit.per_whole, unit.digits,
        all_h * unit.per_whole, unit.per_whole > 1 ? unit.name : "hours");
    print_wrapped(line, 0, output_width());
    putchar('\n');
    struct table *table = table_create(named, ARRAY_SIZE(named));
    for (int i = 0; i < report->n; i++)
        add_row(table, query, &report->rows[i]);
    if (report->n > 0)
        add_row(table, query, &report->total);
    table_print(table, "No task held a GPU.");
    table_destroy(table);
    if (report->n > 0)
        puts(legend);
}

/* ---- the answer for programs ---- */

static json_t *known_json(double value, bool is_known)
{
    return is_known ? json_real(value) : json_null();
}

/* A sum without a known part is null. If a part is unknown, the sum is a lower bound, and another
 * member has the hours of the unknown part. */
static json_t *row_json(const struct report_query *query, const struct report_row *row)
{
    bool has_activity = row->unknown_activity_h < row->held_h || row->held_h <= 0;
    bool has_energy = row->unknown_energy_h < row->held_h || row->held_h <= 0;
    bool counts_tasks = query->by != REPORT_BY_GPU || !row->name;
    json_t *object = json_object();
    if (row->name)
        json_object_set_new(object, keys[query->by], json_string(row->name));
    json_object_set_new(object, "tasks", counts_tasks ? json_integer(row->tasks) : json_null());
    if (query->is_ledger) {
        saved_report_add(object, row);
        return object;
    }
    json_object_set_new(
        object, "attempts", counts_tasks ? json_integer(row->attempts) : json_null());
    json_object_set_new(object, "gpu_hours_held", json_real(row->held_h));
    json_object_set_new(object, "gpu_hours_used", known_json(row->used_h, has_activity));
    json_object_set_new(object, "gpu_hours_idle", known_json(row->idle_h, has_activity));
    json_object_set_new(object, "gpu_hours_repeated", json_real(row->repeated_h));
    json_object_set_new(object, "gpu_hours_saved", json_real(row->saved_h));
    json_object_set_new(object, "energy_kwh", known_json(row->energy_j / 3.6e6, has_energy));
    json_object_set_new(object, "co2_kg", known_json(report_co2_g(query, row) / 1000, has_energy));
    json_object_set_new(object, "gpu_hours_activity_unknown", json_real(row->unknown_activity_h));
    json_object_set_new(object, "gpu_hours_energy_unknown", json_real(row->unknown_energy_h));
    json_object_set_new(
        object, "finish_time_fairness", known_json(report_fairness(row), report_fairness(row) > 0));
    return object;
}

static json_t *rows_json(const struct report_query *query, const struct report *report)
{
    json_t *rows = json_array();
    for (int i = 0; i < report->n; i++)
        json_array_append_new(rows, row_json(query, &report->rows[i]));
    return rows;
}

static void print_report_json(const struct report_query *query, const struct report *report)
{
    json_t *answer = json_pack("{s:f, s:f, s:s, s:f, s:i, s:f, s:o, s:o}", "from", query->from_s,
        "to", query->to_s, "by", keys[query->by], "co2_g_per_kwh", query->co2_g_per_kwh, "gpus",
        report->n_gpus, "gpu_hours_free", report->free_h, "total", row_json(query, &report->total),
        "rows", rows_json(query, report));
    print_json(answer);
    json_decref(answer);
}

/* The columns are the keys of row_json: CSV and JSON have the same names. */
static void print_report_csv(const struct report_query *query, const struct report *report)
{
    json_t *rows = rows_json(query, report), *first = row_json(query, &report->total), *row, *value;
    const char *key;
    size_t i;
    printf("%s", keys[query->by]);
    json_object_foreach(first, key, value) {
        printf(",%s", key);
    }
    putchar('\n');
    json_array_foreach(rows, i, row) {
        print_csv_cell(json_object_get(row, keys[query->by]));
        json_object_foreach(first, key, value) {
            putchar(',');
            print_csv_cell(json_object_get(row, key));
        }
        putchar('\n');
    }
    json_decref(rows);
    json_decref(first);
}

/* ---- estimates against peaks ---- */

static const struct table_column estimate_columns[] = {
    {"ESTIMATOR", 0},
    {"TASKS", TABLE_RIGHT},
    {"ERROR", TABLE_RIGHT},
    {"P95", TABLE_RIGHT},
    {"EXCEEDED", TABLE_RIGHT},
    {"ESTIMATED", TABLE_RIGHT},
    {"TAKEN", TABLE_RIGHT},
};

static void add_estimate_row(struct table *table, const struct estimate_row *row)
{
    table_row(table);
    table_cell(table, NULL, "%s", row->estimator ? row->estimator : "all");
    table_cell(table, NULL, "%zu", row->n);
    table_cell(table, NULL, "%.1f %%", 100 * row->median);
    table_cell(table, NULL, "%.1f %%", 100 * row->p95);
    table_cell(table, NULL, "%zu", row->n_exceeded);
    table_cell(table, NULL, "%.1f GiB", row->estimate_mib / 1024);
    table_cell(table, NULL, "%.1f GiB", row->peak_mib / 1024);
}

static void print_estimates(const struct estimate_report *report)
{
    const struct estimate_row *total = &report->total;
    if (total->n > 0)
        printf("%zu task%s: median error %.1f %%, %zu took more than estimated\n\n", total->n,
            total->n == 1 ? "" : "s", 100 * total->median, total->n_exceeded);
    struct table *table = table_create(estimate_columns, ARRAY_SIZE(estimate_columns));
    for (size_t i = 0; i < report->n; i++)
        add_estimate_row(table, &report->rows[i]);
    if (report->n > 1)
        add_estimate_row(table, total);
    table_print(table, "No task completed whose estimate and peak are known.");
    table_destroy(table);
}

static json_t *estimate_json(const struct estimate_row *row)
{
    json_t *object = json_object();
    if (row->estimator)
        json_object_set_new(object, "estimator", json_string(row->estimator));
    json_object_set_new(object, "tasks", json_integer((json_int_t)row->n));
    json_object_set_new(object, "median_error", known_json(row->median, row->n > 0));
    json_object_set_new(object, "p95_error", known_json(row->p95, row->n > 0));
    json_object_set_new(object, "exceeded", json_integer((json_int_t)row->n_exceeded));
    json_object_set_new(object, "estimate_mib", json_real(row->estimate_mib));
    json_object_set_new(object, "peak_mib", json_real(row->peak_mib));
    return object;
}

static void print_estimates_json(
    const struct report_query *query, const struct estimate_report *report)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < report->n; i++)
        json_array_append_new(rows, estimate_json(&report->rows[i]));
    json_t *answer = json_pack("{s:f, s:f, s:o, s:o}", "from", query->from_s, "to", query->to_s,
        "total", estimate_json(&report->total), "rows", rows);
    print_json(answer);
    json_decref(answer);
}

/* A row for each estimator. */
static void print_estimates_csv(const struct estimate_report *report)
{
    const char *key;
    json_t *value;
    printf("estimator,tasks,median_error,p95_error,exceeded,estimate_mib,peak_mib\n");
    for (size_t i = 0; i < report->n; i++) {
        json_t *row = estimate_json(&report->rows[i]);
        json_object_foreach(row, key, value) {
            if (strcmp(key, "estimator") != 0)
                putchar(',');
            print_csv_cell(value);
        }
        putchar('\n');
        json_decref(row);
    }
}

/* ---- the requests ---- */

/* --co2, or else the daemon's setting. And the period begins with the first task at the earliest:
 * before, colloc had no GPU to give. */
static int apply_info(const struct invocation *invocation, struct report_query *query)
{
    const struct option_value *given = &invocation->values[REPORT_CO2];
    json_t *info;
    int code = session_get(invocation, "/v1/info", &info);
    if (code != EXIT_OK)
        return code;
    query->co2_g_per_kwh = given->set ? (double)given->number
                                      : member_number(
                                            json_object_get(info, "settings"), "co2_g_per_kwh", 0);
    double first_s = member_number(info, "first_submitted_at", query->from_s);
    if (first_s > query->from_s)
        query->from_s = first_s < query->to_s ? first_s : query->to_s;
    json_decref(info);
    return EXIT_OK;
}

static void print_estimate_answer(
    const struct invocation *invocation, const struct report_query *query)
{
    struct estimate_report report;
    if (estimate_report_make(query->tasks, "estimate_mib", query->from_s, query->to_s, &report) < 0)
        print_error("out of memory");
    else if (invocation->common[COMMON_JSON].number)
        print_estimates_json(query, &report);
    else if (invocation->values[REPORT_CSV].number)
        print_estimates_csv(&report);
    else
        print_estimates(&report);
    estimate_report_fini(&report);
}

static void print_answer(const struct invocation *invocation, const struct report_query *query)
{
    struct report report;
    if (invocation->values[REPORT_ESTIMATES].number) {
        print_estimate_answer(invocation, query);
        return;
    }
    if (report_make(query, &report) < 0)
        print_error("out of memory");
    else if (invocation->common[COMMON_JSON].number)
        print_report_json(query, &report);
    else if (invocation->values[REPORT_CSV].number)
        print_report_csv(query, &report);
    else if (query->is_ledger)
        saved_report_print(headers[query->by], &report);
    else
        print_report(query, &report);
    report_fini(&report);
}

/* Tasks that ended before the period held no GPU in it. */
static int get_tasks(
    const struct invocation *invocation, const struct report_query *query, json_t **ret_reply)
{
    char path[160] = "/v1/tasks", since[32];
    snprintf(since, sizeof since, "%.0f", query->from_s);
    query_add(path, sizeof path, "state", "all");
    query_add(path, sizeof path, "limit", "1000000");
    query_add(path, sizeof path, "since", since);
    return session_get(invocation, path, ret_reply);
}

/* Three answers of the daemon are needed: tasks with their attempts, the GPUs, and the projects of
 * users. */
static int run(const struct invocation *invocation)
{
    const char *by = invocation->values[REPORT_BY].text;
    struct report_query query = {.by = REPORT_BY_USER};
    struct gpu_kinds kinds;
    struct fault fault;
    json_auto_t *tasks = NULL, *gpus = NULL, *share = NULL;
    for (int i = 0; by && keys[i]; i++)
        if (strcmp(keys[i], by) == 0)
            query.by = (enum report_key)i;
    if (invocation->values[REPORT_ESTIMATES].number && invocation->values[REPORT_BY].set) {
        print_error("report: give --estimates or --by");
        return EXIT_USAGE;
    }
    query.is_ledger = invocation->values[REPORT_SAVED].number;
    if (query.is_ledger && invocation->values[REPORT_ESTIMATES].number) {
        print_error("report: give --estimates or --saved");
        return EXIT_USAGE;
    }
    if (invocation->common[COMMON_JSON].number && invocation->values[REPORT_CSV].number) {
        print_error("report: give --json or --csv");
        return EXIT_USAGE;
    }
    int code = read_period(invocation->values, &query);
    if (code == EXIT_OK)
        code = apply_info(invocation, &query);
    if (code == EXIT_OK)
        code = get_tasks(invocation, &query, &tasks);
    if (code == EXIT_OK)
        code = session_get(invocation, "/v1/gpus", &gpus);
    if (code == EXIT_OK)
        code = session_get(invocation, "/v1/share", &share);
    if (code == EXIT_OK) {
        query.tasks = json_object_get(tasks, "tasks");
        query.gpus = json_object_get(gpus, "gpus");
        query.users = json_object_get(share, "users");
        query.kinds = gpu_kinds_init(&kinds, &fault) == 0 ? &kinds : NULL;
        print_answer(invocation, &query);
        if (member_text(tasks, "warning", NULL))
            print_error("%s", member_text(tasks, "warning", NULL));
    }
    return code;
}

const struct command command_report = {
    .name = "report",
    .usage = "[OPTION...]",
    .summary = "report the use of the GPUs in a period, by user, project or GPU",
    .description = "HELD is GPU hours: hours that tasks held a GPU, each task counted for itself. "
                   "USED is SM activity over time, IDLE the hours held by tasks with less than "
                   "1 % SM activity, REPEATED the hours of attempts that were run again, SAVED "
                   "the hours that sharing saved against a GPU for each task. ENERGY is the "
                   "tasks' part of what the GPUs drew. A sum of which a part is unknown has a "
                   "\">\".\n\n"
                   "FAIRNESS compares the completion times of the tasks that ended with those "
                   "that they would have alone on an equal share of the GPUs: above 1, others "
                   "took a part of the share (finish-time fairness).\n\n"
                   "--saved prints the ledger of sharing (docs/ledger.md).\n\n"
                   "--estimates prints a row for each estimator: the median error and its 95th "
                   "percentile, as parts of the peak; the tasks that took more than was estimated; "
                   "the sums of estimates and of peaks, on each GPU. The estimate is the quantile "
                   "of the setting reserve-quantile.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_NONE,
    .run = run,
};
