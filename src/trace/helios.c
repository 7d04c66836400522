/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster_log.csv of SenseTime's Helios traces (README.md of the repository HeliosData by
 * S-Lab-System-Group): a line of names, then one of each job of a Slurm cluster. `duration` is
 * in seconds; where it is missing, it is the time from start_time to end_time. A job that was
 * cancelled before it started has "None" or nothing as its start_time.
 *
 *     job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
 *     1,u1,vc1,8,64,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:30,2020-06-09 18:45:39,249,3
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "trace/civil_time.h"
#include "trace/cluster_log.h"
#include "trace/log_table.h"

enum { SUBMIT, START, END, DURATION, GPUS, STATE, USER, HELIOS_COLUMNS };

struct helios {
    struct columns columns;
    int column[HELIOS_COLUMNS];
};

static int find_columns(struct helios *helios, struct fault *fault)
{
    static const char *const names[HELIOS_COLUMNS][2] = {
        [SUBMIT] = {"submit_time"},
        [START] = {"start_time"},
        [END] = {"end_time"},
        [DURATION] = {"duration"},
        [GPUS] = {"gpu_num"},
        [STATE] = {"state"},
        [USER] = {"user"},
    };
    for (int i = 0; i < HELIOS_COLUMNS; i++)
        helios->column[i] = columns_find(&helios->columns, names[i]);
    const int *column = helios->column;
    bool has_length = column[DURATION] >= 0 || (column[START] >= 0 && column[END] >= 0);
    if (column[SUBMIT] >= 0 && column[GPUS] >= 0 && has_length)
        return 0;
    return columns_wrong(&helios->columns, fault,
        "the first line must name submit_time, gpu_num, and duration or start_time and end_time, "
        "as that of Helios' cluster_log.csv does");
}

/* Returns 1 with a time; 0: it is not known; -EINVAL with a fault. */
static int read_time(const struct helios *helios, int column, struct fault *fault, int64_t *ret_us)
{
    const char *text = columns_get(&helios->columns, helios->column[column]);
    if (!text || strcmp(text, "None") == 0)
        return 0;
    if (civil_time_parse(text, ret_us) == 0)
        return 1;
    return columns_wrong(&helios->columns, fault, "%s is \"%.40s\": YYYY-MM-DD HH:MM:SS is needed",
        helios->columns.name_at[helios->column[column]], text);
}

static bool has_ended(const char *state)
{
    static const char *const others[] = {"RUNNING", "PENDING", "SUSPENDED"};
    for (size_t i = 0; state && i < ARRAY_SIZE(others); i++)
        if (strcmp(state, others[i]) == 0)
            return false;
    return true;
}

/* Returns 1 with the length, which is 0 if the job never started; 0: it is not known; -EINVAL with
 * a fault. */
static int read_length(const struct helios *helios, struct fault *fault, int64_t *ret_us)
{
    double seconds;
    int64_t start_us, end_us;
    int r = columns_number(&helios->columns, helios->column[DURATION], 0,
        (double)JOB_LENGTH_MAX_US / (double)SECOND_US, fault, &seconds);
    if (r != 0) {
        *ret_us = r > 0 ? llround(seconds * (double)SECOND_US) : 0;
        return r;
    }
    int start = read_time(helios, START, fault, &start_us),
        end = read_time(helios, END, fault, &end_us);
    if (start < 0 || end < 0)
        return -EINVAL;
    *ret_us = start && end ? end_us - start_us : 0;
    return end;
}

/* Returns 0; -EBUSY if the job had not ended; -EINVAL with a fault. */
static int read_job(const struct helios *helios, struct fault *fault, struct log_job *job)
{
    double gpus = 0;
    int r = read_time(helios, SUBMIT, fault, &job->submit_us);
    if (r == 0)
        return columns_wrong(&helios->columns, fault, "the job has no submit_time");
    if (r > 0)
        r = columns_number(&helios->columns, helios->column[GPUS], 0, JOB_GPUS_MAX, fault, &gpus);
    job->gpus = (int)gpus;
    if (r >= 0 && job->gpus != gpus)
        return columns_wrong(&helios->columns, fault, "gpu_num is %g: whole GPUs are needed", gpus);
    if (r >= 0 && !has_ended(columns_get(&helios->columns, helios->column[STATE])))
        return -EBUSY;
    if (r >= 0)
        r = read_length(helios, fault, &job->length_us);
    return r == 0 ? -EBUSY : r < 0 ? r : 0;
}

static int read_row(void *context, struct cluster_log *log, struct fault *fault)
{
    struct helios *helios = context;
    struct log_job job = {0};
    struct fault mistake;
    char where[320];
    int r = read_job(helios, &mistake, &job);
    if (r == -EBUSY)
        cluster_log_leave_out(log, LEFT_OUT_UNFINISHED);
    else if (r < 0)
        cluster_log_not_understood(log, &mistake);
    if (r < 0)
        return 0;
    r = cluster_log_set_user(log, columns_get(&helios->columns, helios->column[USER]), &job, fault);
    snprintf(where, sizeof where, "%.280s:%lld", helios->columns.name,
        (long long)helios->columns.number);
    return r < 0 ? r : cluster_log_add(log, &job, where, fault);
}

static int read_helios(FILE *file, const char *name, struct cluster_log *log, struct fault *fault)
{
    struct helios helios = {0};
    int r = columns_open_file(&helios.columns, file, name, fault);
    if (r == 0)
        r = find_columns(&helios, fault);
    if (r == 0)
        r = log_table_read(&helios.columns, read_row, &helios, log, fault);
    columns_close(&helios.columns);
    return r;
}

const struct cluster_log_format cluster_log_helios = {"helios", read_helios};
