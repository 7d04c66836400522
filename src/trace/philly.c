/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster_job_log of Microsoft's Philly traces (https://github.com/msr-fiddle/philly-traces,
 * README.md): a list of jobs, each with its submitted_time and its attempts, which have start_time,
 * end_time ("None" or null if unknown) and, for every machine, the GPUs. A job's length is that of
 * its attempts together; its GPUs are those of the first attempt that names any.
 */
#include <errno.h>
#include <string.h>

#include "trace/array_stream.h"
#include "trace/civil_time.h"
#include "trace/cluster_log.h"

/* Returns 1 with a time; 0: it is not known; -EINVAL. */
static int read_time(const json_t *job, const char *key, int64_t *ret_us)
{
    const char *text = json_string_value(json_object_get(job, key));
    if (!text)
        return json_is_null(json_object_get(job, key)) || !json_object_get(job, key) ? 0 : -EINVAL;
    if (strcmp(text, "None") == 0 || *text == '\0')
        return 0;
    return civil_time_parse(text, ret_us) < 0 ? -EINVAL : 1;
}

static size_t count_gpus(const json_t *attempt)
{
    size_t n = 0, i;
    json_t *machine, *detail = json_object_get(attempt, "detail");
    json_array_foreach(detail, i, machine) {
        n += json_array_size(json_object_get(machine, "gpus"));
    }
    return n < JOB_GPUS_MAX ? n : JOB_GPUS_MAX;
}

/* Returns 1 with the length; 0: a time is not known; -EINVAL. `*ret_ended`: it has an end. */
static int read_attempt(const json_t *attempt, int64_t *ret_length_us, bool *ret_ended)
{
    int64_t start_us, end_us;
    int start = read_time(attempt, "start_time", &start_us),
        end = read_time(attempt, "end_time", &end_us);
    *ret_ended = end == 1;
    if (start < 0 || end < 0)
        return -EINVAL;
    if (start == 0 || end == 0)
        return 0;
    *ret_length_us = end_us - start_us;
    return end_us < start_us ? -EINVAL : 1;
}

/* Returns 0; -EINVAL; -EBUSY if the job had not ended. */
static int read_job(const json_t *object, struct log_job *job)
{
    size_t i;
    bool ended = true;
    json_t *attempt, *attempts = json_object_get(object, "attempts");
    if (read_time(object, "submitted_time", &job->submit_us) != 1 || !json_is_array(attempts))
        return -EINVAL;
    json_array_foreach(attempts, i, attempt) {
        int64_t length_us;
        int r = read_attempt(attempt, &length_us, &ended);
        if (r < 0)
            return r;
        job->length_us += r ? length_us : 0;
        if (job->length_us > JOB_LENGTH_MAX_US)
            return -EINVAL;
        job->gpus = job->gpus ? job->gpus : (int)count_gpus(attempt);
    }
    return ended ? 0 : -EBUSY;
}

static int add_job(const struct array_stream *stream, const json_t *object, struct cluster_log *log,
    struct fault *fault)
{
    struct log_job job = {0};
    struct fault mistake;
    char where[320];
    snprintf(where, sizeof where, "%.280s:%lld", stream->name, (long long)stream->begins);
    const char *user = json_string_value(json_object_get(object, "user"));
    int r = read_job(object, &job);
    if (r == 0)
        r = cluster_log_set_user(log, user, &job, fault);
    if (r == 0)
        return cluster_log_add(log, &job, where, fault);
    if (r == -ENOMEM)
        return r;
    if (r == -EBUSY) {
        cluster_log_leave_out(log, LEFT_OUT_UNFINISHED);
        return 0;
    }
    fault_set(&mistake, EINVAL,
        "%s: the job must have a submitted_time \"YYYY-MM-DD HH:MM:SS\" and attempts, each with "
        "an end_time not before its start_time, all of them together no longer than can be",
        where);
    cluster_log_not_understood(log, &mistake);
    return 0;
}

static int read_philly(FILE *file, const char *name, struct cluster_log *log, struct fault *fault)
{
    struct array_stream stream;
    json_t *object;
    int r = array_stream_open(&stream, file, name, fault), more = 0;
    while (r == 0 && (more = array_stream_next(&stream, fault, &object)) == 1) {
        r = add_job(&stream, object, log, fault);
        json_decref(object);
    }
    return r < 0 ? r : more;
}

const struct cluster_log_format cluster_log_philly = {"philly", read_philly};
