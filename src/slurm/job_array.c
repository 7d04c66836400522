/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting tasks of arrays.
 *
 * Slurm has one record for all waiting tasks of an array, and splits a task off when it is pinned
 * or starts. So the record of `sbatch --array=0-9%2` (at most two at a time) changes like this:
 *
 *     "0-9%2"     none of them runs       0 and 1 are followed, and may be placed
 *     "2-9%2"     0 and 1 run             the limit is reached: none is followed
 *     "2-9%2"     0 has ended             2 is followed
 *
 * A list that libslurm has cut ends with "...", often in the middle of a number: "160,170,1...". Its
 * last number is not used.
 *
 * A task that is split off has a record like any job. The limit counts running and pinned tasks.
 * They are counted once in an update, if there is an array with a limit.
 */
#include <stdlib.h>
#include <string.h>

#include "slurm/job_array.h"

/* Removes the next number from the front. */
static bool take_number(const char **text, int64_t *ret_number)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *ret_number = strtoll(*text, &end, 10);
    *text = end;
    return *ret_number >= 0 && *ret_number < SLURM_NO_INDEX;
}

/* Begins the range at the front: "4", "0-9" or "0-9:3". Returns false when there is none. */
static bool begin_range(struct job_array_indices *indices)
{
    const char *at = indices->rest;
    int64_t first, last, step = 1;
    if (!take_number(&at, &first))
        return false;
    last = first;
    if (*at == '-' && (at++, !take_number(&at, &last)))
        return false;
    if (*at == ':' && (at++, !take_number(&at, &step) || step < 1))
        return false;
    if (*at == '.')
        return false;
    *indices = (struct job_array_indices){
        .rest = *at == ',' ? at + 1 : "", .next = first, .last = last, .step = step};
    return true;
}

bool job_array_next(struct job_array_indices *indices, uint32_t *ret_index)
{
    while (indices->next > indices->last)
        if (!begin_range(indices))
            return false;
    *ret_index = (uint32_t)indices->next;
    indices->next += indices->step;
    return true;
}

/* Is the task of an array running, or pinned so that it will run? */
static bool counts_in_array(const struct slurm_job *job)
{
    struct job_note note;
    return slurm_job_holds_node(job) ||
           (job->state == SLURM_STATE_PENDING && job_note_parse(job->admin_comment, &note) &&
               note.state == NOTE_PINNED);
}

/* How many tasks of each array are placed or running: what its limit counts. */
static void count_active(struct slurm_controller *controller)
{
    const struct slurm_snapshot *snapshot = &controller->snapshot;
    id_map_fini(&controller->array_active);
    controller->is_active_counted = true;
    for (size_t i = 0; i < snapshot->n_jobs; i++) {
        const struct slurm_job *job = &snapshot->jobs[i];
        if (!job->array_id || job->array_indices || !counts_in_array(job))
            continue;
        uintptr_t n = (uintptr_t)id_map_get(&controller->array_active, job->array_id);
        if (id_map_set(&controller->array_active, job->array_id, (void *)(n + 1)) < 0)
            controller->is_broken = true;
    }
}

int64_t controller_array_left(
    struct slurm_controller *controller, const struct slurm_job *record, uint32_t base)
{
    const char *percent = strchr(record->array_indices, '%');
    int64_t limit = 0;
    const char *at = percent ? percent + 1 : "";
    if (!take_number(&at, &limit) || limit == 0)
        return WINDOW_JOBS_MAX;
    if (!controller->is_active_counted)
        count_active(controller);
    return limit - (int64_t)(uintptr_t)id_map_get(&controller->array_active, base);
}
