/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads metrics over time for a request. A query selects series, reads each in buckets of one
 * length, and writes columns:
 *
 *     {"task": 12, "step_s": 10, "series": [
 *         {"task": 12, "label": "12", "gpu": "0", "uuid": "GPU-...", "times": [t0, t1],
 *          "values": {"smact": [0.4, null]}, "min": {...}, "max": {...}}, ...],
 *      "neighbours": [{"task": 13, "label": "8_3", "gpu": "0", "since": ..., "until": ...}]}
 *
 * `neighbours` of a task are the tasks that were on its GPUs at the same time.
 */
#include "daemon/metric_query.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "daemon/metric_names.h"

int64_t metric_query_step(int64_t span_ms, int64_t wanted_ms)
{
    /* Seconds; from 10 on they are whole buckets of the older data. */
    static const int steps[] = {1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200,
        14400, 28800, 86400, 7 * 86400, 28 * 86400};
    int64_t least_ms = wanted_ms > 0 ? wanted_ms : span_ms / METRIC_POINTS_USUAL;
    if (least_ms < span_ms / METRIC_POINTS_MAX)
        least_ms = span_ms / METRIC_POINTS_MAX;
    if (wanted_ms > 0 && least_ms == wanted_ms)
        return wanted_ms;
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
        if (steps[i] * 1000LL >= least_ms)
            return steps[i] * 1000LL;
    return least_ms;
}

/* ---- columns of one series ---- */

struct columns {
    int n_values;
    size_t count, capacity, values_capacity;
    int64_t *at_ms;
    struct metric_value *values; /* count * n_values */
    bool is_out_of_memory;
};

static void on_bucket(void *context, int64_t at_ms, const struct metric_value *values)
{
    struct columns *columns = context;
    size_t n = (size_t)columns->n_values;
    if (ARRAY_RESERVE(columns->at_ms, columns->capacity, columns->count + 1) < 0 ||
        ARRAY_RESERVE(columns->values, columns->values_capacity, (columns->count + 1) * n) < 0) {
        columns->is_out_of_memory = true;
        return;
    }
    columns->at_ms[columns->count] = at_ms;
    memcpy(columns->values + columns->count * n, values, n * sizeof *values);
    columns->count++;
}

static void write_number(FILE *out, float value)
{
    if (isnan(value))
        fputs("null", out);
    else
        fprintf(out, "%.6g", (double)value);
}

enum figure { FIGURE_MEAN, FIGURE_MIN, FIGURE_MAX };

static float figure_of(const struct metric_value *value, enum figure figure)
{
    return figure == FIGURE_MIN ? value->min : figure == FIGURE_MAX ? value->max : value->mean;
}

static void write_figure(FILE *out, const struct columns *columns, enum metric_kind kind,
    const char *metrics, enum figure figure)
{
    static const char *const keys[] = {"values", "min", "max"};
    bool any = false;
    fprintf(out, ",\"%s\":{", keys[figure]);
    for (int i = 0; i < columns->n_values; i++) {
        if (!metric_is_listed(kind, i, metrics))
            continue;
        fprintf(out, "%s\"%s\":[", any ? "," : "", metric_name(kind, i));
        any = true;
        for (size_t k = 0; k < columns->count; k++) {
            fputs(k ? "," : "", out);
            write_number(out,
                figure_of(&columns->values[k * (size_t)columns->n_values + (size_t)i], figure));
        }
        fputc(']', out);
    }
    fputc('}', out);
}

/* ---- the answer ---- */

struct answer {
    struct metric_db *db;
    const struct metric_query *query;
    int64_t since_ms, step_ms;
    FILE *out;
    bool any;
};

/* "task" and "label", how people name it. A series of its processes has no label. */
static void write_task(const struct answer *answer, const struct metric_series *series)
{
    unsigned long long id = series->key.task;
    if (!id)
        fputs("\"task\":null,", answer->out);
    else if (!*series->key.gpu)
        fprintf(answer->out, "\"task\":%llu,", id);
    else if (*series->label)
        fprintf(answer->out, "\"task\":%llu,\"label\":\"%s\",", id, series->label);
    else
        fprintf(answer->out, "\"task\":%llu,\"label\":\"%llu\",", id, id);
}

/* "gpu" and "uuid"; a GPU that is no more has no index. */
static void write_gpu(const struct answer *answer, const char *uuid)
{
    const struct metric_query *query = answer->query;
    const char *index = NULL;
    for (size_t i = 0; i < query->n_gpus; i++)
        if (strcmp(query->gpus[i].uuid, uuid) == 0)
            index = query->gpus[i].index;
    if (index)
        fprintf(answer->out, "\"gpu\":\"%s\"", index);
    else
        fputs("\"gpu\":null", answer->out);
    if (*uuid)
        fprintf(answer->out, ",\"uuid\":\"%s\"", uuid);
    else
        fputs(",\"uuid\":null", answer->out);
}

static bool has_wanted(enum metric_kind kind, const char *metrics)
{
    for (int i = 0; i < metric_count(kind); i++)
        if (metric_is_listed(kind, i, metrics))
            return true;
    return false;
}

static int write_series(
    struct answer *answer, const struct metric_series *series, struct fault *fault)
{
    const struct metric_query *query = answer->query;
    enum metric_kind kind = metric_kind_of(&series->key);
    struct columns columns = {.n_values = metric_count(kind)};
    if (!has_wanted(kind, query->metrics))
        return 0;
    int r = metric_db_read(answer->db, series, answer->since_ms, query->until_ms, answer->step_ms,
        on_bucket, &columns, fault);
    if (r == 0 && columns.is_out_of_memory)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0) {
        fprintf(answer->out, "%s{", answer->any ? "," : "");
        answer->any = true;
        write_task(answer, series);
        write_gpu(answer, series->key.gpu);
        fputs(",\"times\":[", answer->out);
        for (size_t i = 0; i < columns.count; i++)
            fprintf(answer->out, "%s%.3f", i ? "," : "", (double)columns.at_ms[i] / 1e3);
        fputc(']', answer->out);
        for (int figure = 0; figure <= (query->with_range ? FIGURE_MAX : FIGURE_MEAN); figure++)
            write_figure(answer->out, &columns, kind, query->metrics, (enum figure)figure);
        fputc('}', answer->out);
    }
    free(columns.at_ms);
    free(columns.values);
    return r;
}

/* The tasks that were on a GPU of this series while it was. */
static int write_neighbours(
    struct answer *answer, const struct metric_series *series, bool *any, struct fault *fault)
{
    struct metric_series *list;
    int n = metric_db_list(
        answer->db, 0, series->key.gpu, series->first_ms, series->last_ms + 1, fault, &list);
    for (int i = 0; i < n; i++) {
        if (!list[i].key.task || list[i].key.task == series->key.task)
            continue;
        fputs(*any ? ",{" : "{", answer->out);
        write_task(answer, &list[i]);
        write_gpu(answer, series->key.gpu);
        fprintf(answer->out, ",\"since\":%.3f,\"until\":%.3f}", (double)list[i].first_ms / 1e3,
            (double)list[i].last_ms / 1e3);
        *any = true;
    }
    free(list);
    return n < 0 ? n : 0;
}

static void begin_series(struct answer *answer, const char *head)
{
    const struct metric_query *query = answer->query;
    answer->step_ms = metric_query_step(query->until_ms - answer->since_ms, query->step_ms);
    fprintf(answer->out, "{%s,\"step_s\":%.6g,\"series\":[", head, (double)answer->step_ms / 1e3);
}

static int answer_task(struct answer *answer, const char *head, struct fault *fault)
{
    const struct metric_query *query = answer->query;
    struct metric_series *list;
    bool any = false;
    int r = 0, n = metric_db_list(
                   answer->db, query->task, NULL, query->since_ms, query->until_ms, fault, &list);
    answer->since_ms = query->since_ms ? query->since_ms : query->until_ms;
    for (int i = 0; i < n && !query->since_ms; i++)
        if (list[i].first_ms < answer->since_ms)
            answer->since_ms = list[i].first_ms;
    begin_series(answer, head);
    for (int i = 0; i < n && r == 0; i++)
        r = write_series(answer, &list[i], fault);
    fputs("],\"neighbours\":[", answer->out);
    for (int i = 0; i < n && r == 0; i++)
        if (*list[i].key.gpu)
            r = write_neighbours(answer, &list[i], &any, fault);
    fputs("]}", answer->out);
    free(list);
    return n < 0 ? n : r;
}

static int answer_gpu(struct answer *answer, const struct metric_gpu *gpu, struct fault *fault)
{
    const struct metric_query *query = answer->query;
    struct metric_series *list;
    int r = 0, n = metric_db_list(
                   answer->db, 0, gpu->uuid, query->since_ms, query->until_ms, fault, &list);
    for (int i = 0; i < n && r == 0; i++)
        if (!list[i].key.task || query->with_tasks)
            r = write_series(answer, &list[i], fault);
    free(list);
    return n < 0 ? n : r;
}

static int answer_gpus(struct answer *answer, const char *head, struct fault *fault)
{
    const struct metric_query *query = answer->query;
    int r = 0;
    answer->since_ms = query->since_ms;
    begin_series(answer, head);
    for (size_t i = 0; i < query->n_gpus && r == 0; i++)
        if (query->only_gpu == query->n_gpus || query->only_gpu == i)
            r = answer_gpu(answer, &query->gpus[i], fault);
    fputs("]}", answer->out);
    return r;
}

/* All series are read in one transaction. */
static int answer_query(struct answer *answer, const char *head, struct fault *fault)
{
    int r = metric_db_begin_read(answer->db, fault);
    if (r < 0)
        return r;
    r = answer->query->task ? answer_task(answer, head, fault) : answer_gpus(answer, head, fault);
    metric_db_end_read(answer->db);
    return r;
}

char *metric_query_run(
    struct metric_db *db, const struct metric_query *query, const char *head, struct fault *fault)
{
    char *text = NULL;
    size_t size;
    if (query->as_rows)
        return metric_rows_run(db, query, fault);
    struct answer answer = {.db = db, .query = query, .out = open_memstream(&text, &size)};
    int r = answer.out ? answer_query(&answer, head, fault)
                       : fault_set(fault, ENOMEM, "out of memory");
    if (answer.out && fclose(answer.out) != 0 && r == 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        return text;
    free(text);
    return NULL;
}
