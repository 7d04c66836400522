/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Standard Workload Format, version 2.2
 * (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html): 18 numbers a line, -1 where a figure
 * is unknown, ";" before comments, among them "; UnixStartTime: N". Processors are taken to be
 * GPUs, or cluster_log.processors_per_gpu of them to be one.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "trace/cluster_log.h"

/* Fields from 1 on, as the format counts them. */
enum {
    SUBMIT = 2,
    RUN_TIME = 4,
    ALLOCATED = 5,
    REQUESTED = 8,
    STATUS = 11,
    USER = 12,
    FIELDS = 18
};
/* A job that was interrupted has a line for each part, and one for the whole. */
enum { STATUS_PART = 2, STATUS_LAST_PART_FAILED = 4 };
enum { LINE_MAX_BYTES = 1 << 16 }; /* chosen: 18 numbers take a few hundred */
#define SECONDS_MAX 7e9            /* since 1970: the year 2191 */

struct swf {
    const char *name;
    int64_t line;
    double start_s; /* of the log, since 1970 */
};

static int report_line(const struct swf *swf, struct fault *fault, const char *what)
{
    return fault_set(fault, EINVAL, "%s:%lld: %s", swf->name, (long long)swf->line, what);
}

static void read_comment(struct swf *swf, const char *line)
{
    static const char key[] = "UnixStartTime:";
    double start_s;
    const char *at = strstr(line, key);
    char word[32] = "";
    if (at && sscanf(at + sizeof key - 1, "%31s", word) == 1 &&
        parse_double(word, 0, SECONDS_MAX, &start_s) == 0)
        swf->start_s = start_s;
}

/* 0 or -EINVAL with a fault. */
static int read_fields(const struct swf *swf, char *line, struct fault *fault, double *fields)
{
    int n = 0;
    char *word, *rest = line;
    while ((word = strsep(&rest, " \t\r\n"))) {
        if (*word == '\0')
            continue;
        if (n == FIELDS || parse_double(word, -1e15, 1e15, &fields[++n]) < 0)
            return report_line(
                swf, fault, n == FIELDS ? "more than 18 fields" : "a field is no number");
    }
    return n == FIELDS ? 0 : report_line(swf, fault, "a job must have 18 fields");
}

static int add_job(
    const struct swf *swf, const double *fields, struct cluster_log *log, struct fault *fault)
{
    char where[320];
    struct fault mistake;
    double processors = fields[ALLOCATED] > 0 ? fields[ALLOCATED] : fields[REQUESTED];
    if (fields[STATUS] >= STATUS_PART && fields[STATUS] <= STATUS_LAST_PART_FAILED)
        return 0;
    snprintf(where, sizeof where, "%.280s:%lld", swf->name, (long long)swf->line);
    if (fields[SUBMIT] < 0 || fields[SUBMIT] > SECONDS_MAX || fields[RUN_TIME] > 1e9 ||
        processors > JOB_GPUS_MAX) {
        report_line(
            swf, &mistake, "the submit time, the run time or the number of processors cannot be");
        cluster_log_not_understood(log, &mistake);
        return 0;
    }
    struct log_job job = {
        .submit_us = llround((swf->start_s + fields[SUBMIT]) * (double)SECOND_US),
        .length_us = fields[RUN_TIME] > 0 ? llround(fields[RUN_TIME] * (double)SECOND_US) : 0,
        .gpus = processors > 0 ? (int)ceil(processors / log->processors_per_gpu) : 0,
    };
    char user[32] = "";
    if (fields[USER] >= 0)
        snprintf(user, sizeof user, "u%.0f", fields[USER]);
    int r = cluster_log_set_user(log, user, &job, fault);
    return r < 0 ? r : cluster_log_add(log, &job, where, fault);
}

static int read_line(
    struct swf *swf, char *line, bool whole, struct cluster_log *log, struct fault *fault)
{
    double fields[FIELDS + 1];
    const char *first = line + strspn(line, " \t\r\n");
    if (*first == ';')
        read_comment(swf, first);
    if (*first == ';' || *first == '\0')
        return 0;
    if (read_fields(swf, line, fault, fields) == 0)
        return add_job(swf, fields, log, fault);
    if (!whole)
        return fault_prefix(fault, -EBADMSG, "the log breaks off");
    cluster_log_not_understood(log, fault);
    return 0;
}

static int read_swf(FILE *file, const char *name, struct cluster_log *log, struct fault *fault)
{
    struct swf swf = {.name = name};
    int r = 0;
    char *line = malloc(LINE_MAX_BYTES);
    if (!line)
        return fault_set(fault, ENOMEM, "out of memory");
    while (r == 0 && fgets(line, LINE_MAX_BYTES, file)) {
        bool whole = strchr(line, '\n') != NULL;
        swf.line++;
        if (!whole && !feof(file))
            r = fault_set(fault, EBADMSG, "%s:%lld: the line is too long, or binary", name,
                (long long)swf.line);
        else
            r = read_line(&swf, line, whole, log, fault);
    }
    if (r == 0 && ferror(file))
        r = fault_set(fault, EIO, "%s: cannot be read after line %lld", name, (long long)swf.line);
    free(line);
    return r;
}

const struct cluster_log_format cluster_log_swf = {"swf", read_swf};
