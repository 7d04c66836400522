/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of other clusters, and our own traces and catalogues: any bytes are answered; what is kept
 * of a log has a length and GPUs; what a catalogue says is a number within its bounds.
 */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/columns.h"
#include "fuzz.h"
#include "trace/cluster_log.h"
#include "trace/select.h"
#include "trace/statistics.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_selection(struct cluster_log *log)
{
    const struct selection selection = {
        .window_us = INT64_C(86400000000), .sample = 1, .arrival_scale = 0.5};
    struct job_statistics statistics;
    size_t n = log->jobs.n;
    require(jobs_select(&log->jobs, &selection, &log->counts) == 0);
    require(log->jobs.n + (size_t)log->counts.left_out[LEFT_OUT_OUTSIDE_WINDOW] == n);
    for (size_t i = 1; i < log->jobs.n; i++)
        require(log->jobs.jobs[i - 1].submit_us <= log->jobs.jobs[i].submit_us);
    if (log->jobs.n && job_statistics_make(&log->jobs, &statistics) == 0) {
        require(isfinite(statistics.gpu_s) && statistics.quantile_s[LENGTH_QUANTILES - 1] > 0);
        job_statistics_fini(&statistics);
    }
}

static void read_log(const struct cluster_log_format *format, const uint8_t *data, size_t size)
{
    struct cluster_log log = {.processors_per_gpu = 1};
    struct fault fault = {0};
    FILE *file = fmemopen((void *)data, size, "r");
    if (!file)
        return;
    int r = format->read(file, "log", &log, &fault);
    require((r < 0) == (fault.text[0] != '\0') || r == 0);
    for (size_t i = 0; i < log.jobs.n; i++) {
        const struct log_job *job = &log.jobs.jobs[i];
        require(job->length_us > 0 && job->length_us <= JOB_LENGTH_MAX_US && job->gpus > 0 &&
                job->gpus <= JOB_GPUS_MAX && job->submit_us >= 0 && job->part >= 0 &&
                job->part < 1);
    }
    check_selection(&log);
    cluster_log_fini(&log);
    fclose(file);
}

static void read_columns(const uint8_t *data, size_t size)
{
    struct columns columns;
    double value;
    FILE *file = fmemopen((void *)data, size, "r");
    if (!file)
        return;
    if (columns_open_file(&columns, file, "table", NULL) == 0)
        while (columns_next(&columns, NULL) == 1)
            for (int i = 0; i < columns.n; i++)
                if (columns_number(&columns, i, 0, 1e9, NULL, &value) == 1)
                    require(value >= 0 && value <= 1e9);
    columns_close(&columns);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {"philly", "sacct", "swf", "helios", "alibaba"};
    for (size_t i = 0; size && i < ARRAY_SIZE(formats); i++)
        read_log(cluster_log_find_format(formats[i]), data, size);
    if (size)
        read_columns(data, size);
    return 0;
}
