/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up the tasks' use of the GPUs, for `colloc report`. The attempts of all tasks become spans:
 * one for each GPU and for each time between interruptions in which the task had it. The spans of a
 * GPU, sorted by their beginnings, are then swept: between two moments at which a task comes or
 * goes, n tasks hold the GPU, and each of them
 *
 *     holds   the whole time,
 *     saves   (1 - 1/n) of it, since the n tasks occupy one GPU instead of n.
 *
 *     task 1  |==========|              GPU 0: held 4 h + 4 h = 8 h, occupied 6 h, saved 2 h,
 *     task 2       |==========|                1 h by each task
 *             0    2     4    6 h
 *
 * A task's SM activity and energy are known for the whole of its time on GPUs. A period has the
 * part of them that it has of that time.
 *
 * Finish-time fairness compares the completion times of a user's tasks with those that they would
 * have alone on an equal share of the GPUs: the tasks, in the order of their submission, each take
 * the GPUs of the share that are free first, for as long as they really ran.
 */
#include "cli/usage_report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clamp.h"
#include "base/json_member.h"
#include "base/units.h"
#include "cli/task_words.h"
#include "sharing/gpu_kind.h"

#define HOUR_S 3600.0

/* A task on one GPU. */
struct gpu_span {
    const char *gpu; /* its UUID */
    double since_s, until_s;
    size_t task; /* in `infos` */
    bool is_repeated;
};

struct task_info {
    const json_t *task;
    const char *user;
    char id[32];
    struct { /* parts of its held hours; `alone` to `high`: what an hour would take alone */
        double known, shared, measured, unknown, alone, low, high;
    } ledger;
    double whole_h;         /* on GPUs, in the period or not */
    double smact, energy_j; /* negative: not known */
    bool is_counted;        /* it held a GPU in the period */
};

struct making {
    const struct report_query *query;
    struct report *report;
    struct task_info *infos;
    struct gpu_span *spans;
    size_t n_infos, n_spans, spans_capacity;
};

/* ---- spans ---- */

/* One span for each GPU of the attempt. */
static int add_spans(struct making *making, const json_t *gpus, double since_s, double until_s,
    size_t task, bool is_repeated)
{
    size_t i;
    json_t *gpu;
    json_array_foreach(gpus, i, gpu) {
        const struct gpu_span span = {json_string_value(gpu), since_s, until_s, task, is_repeated};
        if (!span.gpu || until_s <= since_s)
            continue;
        making->infos[task].whole_h += (until_s - since_s) / HOUR_S;
        if (ARRAY_APPEND(making->spans, making->n_spans, making->spans_capacity, span) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* A suspended task has no GPU, and may have another one afterwards. A paused task keeps its GPU. */
static int add_attempt(
    struct making *making, const json_t *attempt, double now_s, size_t task, bool is_repeated)
{
    size_t i;
    json_t *each;
    const json_t *gpus = json_object_get(attempt, "gpu_uuids");
    double since_s = member_number(attempt, "started_at", now_s);
    double until_s = member_number(attempt, "ended_at", now_s);
    json_array_foreach(json_object_get(attempt, "interruptions"), i, each) {
        const json_t *next = json_object_get(each, "gpu_uuids");
        bool is_paused = strcmp(member_text(each, "kind", ""), "paused") == 0;
        if (is_paused)
            continue;
        double off_s = member_number(each, "since", until_s);
        if (add_spans(making, gpus, since_s, off_s, task, is_repeated) < 0)
            return -ENOMEM;
        since_s = member_number(each, "until", until_s);
        gpus = json_is_array(next) ? next : gpus;
    }
    return add_spans(making, gpus, since_s, until_s, task, is_repeated);
}

/* A member as a part of the time that the task had its GPUs: none of them is more. An older daemon
 * believed any number of steps that a task counted. */
static double ledger_part(const json_t *ledger, const char *key, double held_s)
{
    return fmax(0, fmin(1, member_number(ledger, key, 0) / held_s));
}

/* Its mean speed counts for all of its hours. A task without the record is of an older daemon. */
static void read_ledger(struct task_info *info)
{
    const json_t *ledger = json_object_get(info->task, "ledger");
    double held_s = member_number(ledger, "held_s", 0);
    info->ledger.unknown = 1;
    if (held_s <= 0)
        return;
    info->ledger.shared = ledger_part(ledger, "shared_s", held_s);
    info->ledger.measured = ledger_part(ledger, "measured_s", held_s);
    info->ledger.unknown = ledger_part(ledger, "unknown_s", held_s);
    info->ledger.known = 1 - info->ledger.unknown;
    info->ledger.alone = ledger_part(ledger, "alone_s", held_s);
    info->ledger.low = ledger_part(ledger, "alone_low_s", held_s);
    info->ledger.high = ledger_part(ledger, "alone_high_s", held_s);
}

/* An attempt that was followed by another has to be repeated: its hours count as such. */
static int add_task(struct making *making, const json_t *task)
{
    size_t i, number = making->n_infos++;
    json_t *attempt;
    const json_t *attempts = json_object_get(task, "attempts");
    making->infos[number] = (struct task_info){.task = task,
        .user = member_text(task, "user", "?"),
        .smact = member_number(task, "smact_mean", -1),
        .energy_j = member_number(task, "energy_j", -1)};
    task_id_text(task, making->infos[number].id, sizeof making->infos[number].id);
    read_ledger(&making->infos[number]);
    json_array_foreach(attempts, i, attempt) {
        if (add_attempt(making, attempt, making->query->to_s, number,
                i + 1 < json_array_size(attempts)) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* ---- rows ---- */

static const char *project_of(const struct report_query *query, const char *name)
{
    size_t i;
    json_t *user;
    json_array_foreach(query->users, i, user) {
        if (strcmp(member_text(user, "user", ""), name) == 0)
            return member_text(user, "project", "default");
    }
    return "default";
}

/* A GPU that is no longer there goes by its UUID. */
static const char *label_of(const struct report_query *query, const char *uuid)
{
    size_t i;
    json_t *gpu;
    json_array_foreach(query->gpus, i, gpu) {
        if (strcmp(member_text(gpu, "uuid", ""), uuid) == 0)
            return member_text(gpu, "index", uuid);
    }
    return uuid;
}

static const char *name_of(
    const struct report_query *query, const struct task_info *info, const char *gpu)
{
    if (query->by == REPORT_BY_GPU)
        return label_of(query, gpu);
    if (query->by == REPORT_BY_TASK)
        return info->id;
    return query->by == REPORT_BY_USER ? info->user : project_of(query, info->user);
}

/* Returns NULL when memory is out. */
static struct report_row *find_row(struct report *report, const char *name)
{
    int at = 0;
    while (at < report->n && strverscmp(report->rows[at].name, name) < 0)
        at++;
    if (at < report->n && strcmp(report->rows[at].name, name) == 0)
        return &report->rows[at];
    char *copy = strdup(name);
    if (!copy || ARRAY_RESERVE(report->rows, report->capacity, report->n + 1) < 0) {
        free(copy);
        return NULL;
    }
    memmove(&report->rows[at + 1], &report->rows[at],
        (size_t)(report->n++ - at) * sizeof *report->rows);
    report->rows[at] = (struct report_row){.name = copy};
    return &report->rows[at];
}

/* ---- the ledger ---- */

/* What a GPU draws more while it has work than while it idles; negative: not known. A MIG
 * instance's part of it is not known. */
static double awake_more_w(const struct report_query *query, const char *uuid)
{
    size_t i;
    json_t *gpu;
    json_array_foreach(query->gpus, i, gpu) {
        if (strcmp(member_text(gpu, "uuid", ""), uuid) != 0)
            continue;
        int64_t bytes = (int64_t)(member_number(gpu, "mem_total_mib", 0) * (double)MIB);
        const struct gpu_kind *kind = query->kinds && !*member_text(gpu, "parent_uuid", "")
                                          ? gpu_kinds_find_product(
                                                query->kinds, member_text(gpu, "name", ""), bytes)
                                          : NULL;
        return kind ? kind->awake_w - kind->idle_w : -1;
    }
    return -1;
}

/* Hours of a span, of which the task occupied a part, as others were there. */
static void add_ledger(struct ledger_sums *sums, const struct task_info *info, double hours,
    double occupied, double more_w)
{
    double known = info->ledger.known;
    sums->held_h += hours;
    sums->shared_h += info->ledger.shared * hours;
    sums->measured_h += info->ledger.measured * hours;
    sums->unknown_h += info->ledger.unknown * hours;
    sums->alone_h += info->ledger.alone * hours;
    sums->low_h += info->ledger.low * hours;
    sums->high_h += info->ledger.high * hours;
    sums->occupied_h += known * occupied;
    if (more_w >= 0)
        sums->energy_j += (info->ledger.alone * hours - known * occupied) * HOUR_S * more_w;
    else
        sums->energy_unknown_h += hours;
}

/* ---- the sweep ---- */

/* `hours` of a span while other tasks held the GPU too: `saved`. */
static void add_hours(struct report_row *row, const struct gpu_span *span,
    const struct task_info *info, double hours, double saved)
{
    row->held_h += hours;
    row->saved_h += saved;
    row->repeated_h += span->is_repeated ? hours : 0;
    if (info->smact < 0)
        row->unknown_activity_h += hours;
    else
        row->used_h += info->smact * hours;
    row->idle_h += info->smact >= 0 && info->smact < REPORT_IDLE ? hours : 0;
    if (info->energy_j < 0 || info->whole_h <= 0)
        row->unknown_energy_h += hours;
    else
        row->energy_j += info->energy_j * hours / info->whole_h;
}

static int count_span(
    struct making *making, const struct gpu_span *span, double hours, double saved)
{
    struct task_info *info = &making->infos[span->task];
    struct report_row *row = find_row(making->report, name_of(making->query, info, span->gpu));
    if (!row)
        return -ENOMEM;
    double more_w = awake_more_w(making->query, span->gpu);
    add_hours(row, span, info, hours, saved);
    add_hours(&making->report->total, span, info, hours, saved);
    add_ledger(&row->ledger, info, hours, hours - saved, more_w);
    add_ledger(&making->report->total.ledger, info, hours, hours - saved, more_w);
    info->is_counted = true;
    return 0;
}

static int by_gpu_and_time(const void *a, const void *b)
{
    const struct gpu_span *one = a, *other = b;
    int order = strcmp(one->gpu, other->gpu);
    return order ? order : (one->since_s > other->since_s) - (one->since_s < other->since_s);
}

/* The next moment after `time_s` at which a span of the GPU begins or ends. */
static double next_change(const struct gpu_span *spans, size_t n, double time_s)
{
    double next_s = INFINITY;
    for (size_t i = 0; i < n && spans[i].since_s < next_s; i++) {
        if (spans[i].since_s > time_s)
            next_s = fmin(next_s, spans[i].since_s);
        if (spans[i].until_s > time_s)
            next_s = fmin(next_s, spans[i].until_s);
    }
    return next_s;
}

/* Between two changes. */
static int count_segment(
    struct making *making, const struct gpu_span *spans, size_t n, double since_s, double until_s)
{
    int present = 0, r = 0;
    for (size_t i = 0; i < n && spans[i].since_s <= since_s; i++)
        present += spans[i].until_s > since_s;
    double hours = (fmin(until_s, making->query->to_s) - fmax(since_s, making->query->from_s)) /
                   HOUR_S;
    if (present == 0 || hours <= 0)
        return 0;
    making->report->free_h -= hours;
    for (size_t i = 0; i < n && spans[i].since_s <= since_s && r == 0; i++)
        if (spans[i].until_s > since_s)
            r = count_span(making, &spans[i], hours, hours * (1 - 1.0 / present));
    return r;
}

/* Spans that have ended before all following ones are skipped, so that a sweep is short. */
static int sweep_gpu(struct making *making, struct gpu_span *spans, size_t n)
{
    int r = 0;
    for (double time_s = spans[0].since_s; n > 0 && r == 0;) {
        double next_s = next_change(spans, n, time_s);
        if (isinf(next_s))
            break;
        r = count_segment(making, spans, n, time_s, next_s);
        time_s = next_s;
        while (n > 0 && spans[0].until_s <= time_s) {
            spans++;
            n--;
        }
    }
    return r;
}

static int sweep_all_gpus(struct making *making)
{
    int r = 0;
    if (making->n_spans > 0) /* without any there is no array */
        qsort(making->spans, making->n_spans, sizeof *making->spans, by_gpu_and_time);
    for (size_t begin = 0, end; begin < making->n_spans && r == 0; begin = end) {
        const char *gpu = making->spans[begin].gpu;
        for (end = begin; end < making->n_spans && strcmp(making->spans[end].gpu, gpu) == 0;)
            end++;
        r = sweep_gpu(making, making->spans + begin, end - begin);
    }
    return r;
}

/* ---- tasks, and fairness ---- */

static int count_attempts(const struct report_query *query, const json_t *task)
{
    size_t i;
    json_t *attempt;
    int n = 0;
    json_array_foreach(json_object_get(task, "attempts"), i, attempt) {
        n += member_number(attempt, "started_at", query->to_s) < query->to_s &&
             member_number(attempt, "ended_at", query->to_s) > query->from_s;
    }
    return n;
}

static bool has_ended_within(const struct report_query *query, const json_t *task)
{
    double ended_s = member_number(task, "ended_at", -1);
    return ended_s >= query->from_s && ended_s < query->to_s;
}

static void add_to_row(
    const struct making *making, const struct task_info *info, struct report_row *row)
{
    row->tasks++;
    row->attempts += count_attempts(making->query, info->task);
    if (has_ended_within(making->query, info->task))
        row->jct_s += member_number(info->task, "jct_s", 0);
}

static int by_submission(const void *a, const void *b)
{
    double one = member_number(((const struct task_info *)a)->task, "submitted_at", 0);
    double other = member_number(((const struct task_info *)b)->task, "submitted_at", 0);
    return (one > other) - (one < other);
}

static int by_time(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* The tasks of the row alone on `n` GPUs, which become free at the times in `free_s`. */
static void add_ideal(const struct making *making, struct report_row *row, double *free_s, int n)
{
    for (int i = 0; i < n; i++)
        free_s[i] = 0;
    for (size_t i = 0; i < making->n_infos; i++) {
        const struct task_info *info = &making->infos[i];
        if (!info->is_counted || !has_ended_within(making->query, info->task) ||
            strcmp(name_of(making->query, info, ""), row->name) != 0)
            continue;
        double submitted_s = member_number(info->task, "submitted_at", 0);
        int wanted = clamp_int((int)member_number(info->task, "gpus_requested", 1), 1, n);
        qsort(free_s, (size_t)n, sizeof *free_s, by_time);
        double end_s = fmax(submitted_s, free_s[wanted - 1]) +
                       member_number(info->task, "exec_s", 0);
        for (int k = 0; k < wanted; k++)
            free_s[k] = end_s;
        row->ideal_jct_s += end_s - submitted_s;
    }
}

/* Tasks count in the total and in their row, by submission: finish-time fairness schedules them in
 * that order on an equal share of the GPUs. */
static int count_tasks(struct making *making)
{
    struct report *report = making->report;
    bool by_gpu = making->query->by == REPORT_BY_GPU;
    int share = report->n_gpus / (report->n > 1 ? report->n : 1);
    share = share > 1 ? share : 1;
    double *free_s = calloc((size_t)share, sizeof *free_s);
    if (!free_s)
        return -ENOMEM;
    qsort(making->infos, making->n_infos, sizeof *making->infos, by_submission);
    for (size_t i = 0; i < making->n_infos; i++) {
        if (!making->infos[i].is_counted)
            continue;
        add_to_row(making, &making->infos[i], &report->total);
        if (!by_gpu)
            add_to_row(making, &making->infos[i],
                find_row(report, name_of(making->query, &making->infos[i], "")));
    }
    bool has_shares = !by_gpu && making->query->by != REPORT_BY_TASK;
    for (int i = 0; i < report->n && has_shares; i++)
        add_ideal(making, &report->rows[i], free_s, share);
    free(free_s);
    return 0;
}

/* ---- the same tasks alone ---- */

static const json_t *first_attempt(const json_t *task)
{
    return json_array_get(json_object_get(task, "attempts"), 0);
}

static const json_t *last_gpus(const json_t *task)
{
    const json_t *attempts = json_object_get(task, "attempts");
    size_t n = json_array_size(attempts);
    return json_object_get(json_array_get(attempts, n ? n - 1 : 0), "gpu_uuids");
}

static int by_start(const void *a, const void *b)
{
    double one = member_number(
        first_attempt(((const struct task_info *)a)->task), "started_at", INFINITY);
    double other = member_number(
        first_attempt(((const struct task_info *)b)->task), "started_at", INFINITY);
    return (one > other) - (one < other);
}

/* When the task would end, alone on the GPUs that it had, after those that started before it;
 * `free_s`: of each GPU, since when it is free. */
static double end_alone(const struct making *making, const struct task_info *info, double *free_s)
{
    const json_t *uuids = last_gpus(info->task);
    double begin_s = member_number(first_attempt(info->task), "started_at", 0);
    double held_s = member_number(json_object_get(info->task, "ledger"), "held_s", 0);
    double work_s = info->ledger.alone * held_s;
    size_t i, k;
    json_t *gpu, *uuid;
    for (int pass = 0; pass < 2; pass++) {
        json_array_foreach(making->query->gpus, i, gpu) {
            json_array_foreach(uuids, k, uuid) {
                if (strcmp(json_string_value(uuid), member_text(gpu, "uuid", "")) != 0)
                    continue;
                if (pass == 0)
                    begin_s = fmax(begin_s, free_s[i]);
                else
                    free_s[i] = begin_s + work_s;
            }
        }
    }
    return begin_s + work_s;
}

static void add_sooner(struct ledger_sums *sums, double sooner_h)
{
    sums->n_ended++;
    sums->sooner_h += sooner_h;
}

/* The tasks one after the other on each GPU, in the order of their starts. */
static int add_ends_alone(struct making *making)
{
    struct report *report = making->report;
    double *free_s = calloc(json_array_size(making->query->gpus) + 1, sizeof *free_s);
    if (!free_s)
        return -ENOMEM;
    qsort(making->infos, making->n_infos, sizeof *making->infos, by_start);
    for (size_t i = 0; i < making->n_infos; i++) {
        const struct task_info *info = &making->infos[i];
        if (!info->is_counted || info->ledger.known < 1)
            continue;
        double end_s = end_alone(making, info, free_s);
        const char *gpu = json_string_value(json_array_get(last_gpus(info->task), 0));
        if (!has_ended_within(making->query, info->task) || !gpu)
            continue;
        double sooner_h = (end_s - member_number(info->task, "ended_at", 0)) / HOUR_S;
        struct report_row *row = find_row(report, name_of(making->query, info, gpu));
        if (row)
            add_sooner(&row->ledger, sooner_h);
        add_sooner(&report->total.ledger, sooner_h);
    }
    free(free_s);
    return 0;
}

/* ---- all of it ---- */

/* If the tasks run on a GPU's MIG instances, the GPU itself has none. */
static bool is_parent(const json_t *gpus, const char *uuid)
{
    size_t i;
    json_t *gpu;
    json_array_foreach(gpus, i, gpu) {
        if (strcmp(member_text(gpu, "parent_uuid", ""), uuid) == 0)
            return true;
    }
    return false;
}

static int count_gpus(const json_t *gpus)
{
    size_t i;
    json_t *gpu;
    int n = 0;
    json_array_foreach(gpus, i, gpu) {
        n += !is_parent(gpus, member_text(gpu, "uuid", "?"));
    }
    return n;
}

/* Spans of all tasks first, then the sweep over each GPU, then the sums. */
int report_make(const struct report_query *query, struct report *ret_report)
{
    size_t i;
    json_t *task;
    struct making making = {.query = query, .report = ret_report};
    *ret_report = (struct report){.n_gpus = count_gpus(query->gpus)};
    ret_report->free_h = ret_report->n_gpus * (query->to_s - query->from_s) / HOUR_S;
    making.infos = calloc(json_array_size(query->tasks) + 1, sizeof *making.infos);
    int r = making.infos ? 0 : -ENOMEM;
    json_array_foreach(query->tasks, i, task) {
        if (r == 0)
            r = add_task(&making, task);
    }
    if (r == 0)
        r = sweep_all_gpus(&making);
    if (r == 0)
        r = count_tasks(&making);
    if (r == 0)
        r = add_ends_alone(&making);
    free(making.infos);
    free(making.spans);
    return r;
}

void report_fini(struct report *report)
{
    for (int i = 0; i < report->n; i++)
        free(report->rows[i].name);
    free(report->rows);
    *report = (struct report){0};
}

double report_saved_h(const struct ledger_sums *sums)
{
    return sums->alone_h - sums->occupied_h;
}

double report_fairness(const struct report_row *row)
{
    return row->ideal_jct_s > 0 ? row->jct_s / row->ideal_jct_s : 0;
}

double report_co2_g(const struct report_query *query, const struct report_row *row)
{
    return row->energy_j / 3.6e6 * query->co2_g_per_kwh;
}
