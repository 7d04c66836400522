/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs are filtered in one pass in order of time, in this order: the window, the number of GPUs,
 * the sample, the number of jobs. The kept ones move to the front of the list, their times then
 * count from the first of them and are scaled.
 */
#include "trace/select.h"

#include <math.h>

#include "trace/seeded_random.h"

/* Returns the reason to leave the job out, or LEFT_OUT_REASONS to keep it. */
static enum left_out check_job(const struct selection *selection, const struct log_job *job,
    int64_t from_us, size_t kept, struct seeded_random *random)
{
    if (job->submit_us < from_us ||
        (selection->window_us && job->submit_us - from_us >= selection->window_us))
        return LEFT_OUT_OUTSIDE_WINDOW;
    if (selection->gpus_max && job->gpus > selection->gpus_max)
        return LEFT_OUT_TOO_LARGE;
    if (selection->sample < 1 && seeded_random_fraction(random) >= selection->sample)
        return LEFT_OUT_NOT_SAMPLED;
    if (selection->jobs_max && kept >= (size_t)selection->jobs_max)
        return LEFT_OUT_BEYOND_LIMIT;
    return LEFT_OUT_REASONS;
}

int jobs_select(struct job_list *list, const struct selection *selection, struct job_counts *counts)
{
    struct seeded_random random = {selection->seed};
    size_t kept = 0;
    int r = job_list_sort(list);
    if (r < 0 || list->n == 0)
        return r;
    int64_t from_us = selection->from_us + (selection->from_is_date ? 0 : list->jobs[0].submit_us),
            first_us = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct log_job job = list->jobs[i];
        enum left_out reason = check_job(selection, &job, from_us, kept, &random);
        if (reason != LEFT_OUT_REASONS) {
            counts->left_out[reason]++;
            continue;
        }
        first_us = kept ? first_us : job.submit_us;
        job.submit_us = llround((double)(job.submit_us - first_us) * selection->arrival_scale);
        list->jobs[kept++] = job;
    }
    list->n = kept;
    return 0;
}
