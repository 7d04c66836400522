/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of GPUs as rows, one for each step, as GET /v1/samples has them:
 *
 *     {"columns": ["time", "mem_used_mib", ...],
 *      "gpus": [{"index": "0", "uuid": "GPU-...", "rows": [[1700000000.000, 3000, ...]],
 *                "step_s": 1}]}
 *
 * They are read from the metrics over time (store/metric_db.h). Steps without a sample are
 * left out.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "daemon/metric_names.h"
#include "daemon/metric_query.h"

static const struct column {
    const char *name;
    enum gpu_metric metric;
    bool is_max; /* of the step; else the mean */
} columns[] = {
    {"mem_used_mib", GPU_METRIC_MEM_USED_MIB, false},
    {"mem_used_max_mib", GPU_METRIC_MEM_USED_MIB, true},
    {"utilisation", GPU_METRIC_UTILISATION, false},
    {"smact", GPU_METRIC_SMACT, false},
    {"smact_max", GPU_METRIC_SMACT, true},
    {"smocc", GPU_METRIC_SMOCC, false},
    {"gract", GPU_METRIC_GRACT, false},
    {"dram_active", GPU_METRIC_DRAM_ACTIVE, false},
    {"power_w", GPU_METRIC_POWER_W, false},
    {"temperature_c", GPU_METRIC_TEMPERATURE_C, false},
    {"sm_clock_mhz", GPU_METRIC_SM_CLOCK_MHZ, false},
    {"tasks", GPU_METRIC_TASKS, false},
    {"foreign_processes", GPU_METRIC_FOREIGN, false},
};

struct rows {
    FILE *out;
    bool any;
};

static void write_row(void *context, int64_t at_ms, const struct metric_value *values)
{
    struct rows *rows = context;
    fprintf(rows->out, "%s[%.3f", rows->any ? "," : "", (double)at_ms / 1e3);
    for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
        const struct metric_value *value = &values[columns[i].metric];
        float number = columns[i].is_max ? value->max : value->mean;
        if (isnan(number))
            fputs(",null", rows->out);
        else
            fprintf(rows->out, ",%.6g", (double)number);
    }
    fputc(']', rows->out);
    rows->any = true;
}

static int write_gpu(struct metric_db *db, const struct metric_query *query,
    const struct metric_gpu *gpu, FILE *out, struct fault *fault)
{
    struct rows rows = {.out = out};
    struct metric_series *list;
    int r = 0, n = metric_db_list(db, 0, gpu->uuid, query->since_ms, query->until_ms, fault, &list);
    fprintf(out, "{\"index\":\"%s\",\"uuid\":\"%s\",\"rows\":[", gpu->index, gpu->uuid);
    for (int i = 0; i < n && r == 0; i++)
        if (!list[i].key.task)
            r = metric_db_read(db, &list[i], query->since_ms, query->until_ms, query->step_ms,
                write_row, &rows, fault);
    fprintf(out, "],\"step_s\":%.6g}", (double)query->step_ms / 1e3);
    free(list);
    return n < 0 ? n : r;
}

static int write_gpus(
    struct metric_db *db, const struct metric_query *query, FILE *out, struct fault *fault)
{
    int r = 0;
    for (size_t i = 0; i < query->n_gpus && r == 0; i++) {
        fputs(i ? "," : "", out);
        r = write_gpu(db, query, &query->gpus[i], out, fault);
    }
    return r;
}

/* All GPUs are read in one transaction. */
static int read_gpus(
    struct metric_db *db, const struct metric_query *query, FILE *out, struct fault *fault)
{
    int r = metric_db_begin_read(db, fault);
    if (r < 0)
        return r;
    r = write_gpus(db, query, out, fault);
    metric_db_end_read(db);
    return r;
}

char *metric_rows_run(struct metric_db *db, const struct metric_query *query, struct fault *fault)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int r = 0;
    if (out) {
        fputs("{\"columns\":[\"time\"", out);
        for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
            fprintf(out, ",\"%s\"", columns[i].name);
        fputs("],\"gpus\":[", out);
        r = query->n_gpus ? read_gpus(db, query, out, fault) : 0;
        fputs("]}", out);
    }
    if ((!out || fclose(out) != 0) && r == 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        return text;
    free(text);
    return NULL;
}
