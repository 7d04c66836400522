/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of jobs. They are sorted by a merge sort of our own: it is stable, so that jobs of the same
 * second stay in the order of the log, and it needs half the list as extra memory, for logs of
 * millions of jobs; qsort promises neither.
 */
#include "trace/job_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

int job_list_add(struct job_list *list, const struct log_job *job)
{
    return ARRAY_APPEND(list->jobs, list->n, list->capacity, *job);
}

/* Merges the sorted halves of jobs[0..n) through `spare`, which holds the first. */
static void merge_sort(struct log_job *jobs, size_t n, struct log_job *spare)
{
    size_t half = n / 2, a = 0, b = half, to = 0;
    if (n < 2)
        return;
    merge_sort(jobs, half, spare);
    merge_sort(jobs + half, n - half, spare);
    memcpy(spare, jobs, half * sizeof *jobs);
    while (a < half)
        jobs[to++] = b < n && jobs[b].submit_us < spare[a].submit_us ? jobs[b++] : spare[a++];
}

int job_list_sort(struct job_list *list)
{
    size_t i = 1;
    while (i < list->n && list->jobs[i - 1].submit_us <= list->jobs[i].submit_us)
        i++;
    if (i >= list->n)
        return 0;
    struct log_job *spare = malloc(list->n / 2 * sizeof *spare);
    if (!spare)
        return -ENOMEM;
    merge_sort(list->jobs, list->n, spare);
    free(spare);
    return 0;
}

void job_list_fini(struct job_list *list)
{
    free(list->jobs);
    intern_fini(&list->users);
    *list = (struct job_list){0};
}

const char *left_out_text(enum left_out reason)
{
    static const char *const texts[LEFT_OUT_REASONS] = {
        [LEFT_OUT_NOT_UNDERSTOOD] = "not understood",
        [LEFT_OUT_UNFINISHED] = "had not ended",
        [LEFT_OUT_NEVER_RAN] = "never ran",
        [LEFT_OUT_NO_GPU] = "without GPUs",
        [LEFT_OUT_OUTSIDE_WINDOW] = "outside the window",
        [LEFT_OUT_TOO_LARGE] = "need more GPUs than there are",
        [LEFT_OUT_NOT_SAMPLED] = "not sampled",
        [LEFT_OUT_BEYOND_LIMIT] = "beyond --jobs",
    };
    return texts[reason];
}
