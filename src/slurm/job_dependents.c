/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that wait for the success of a job that failed and is run again.
 *
 * A job that ran out of GPU memory is requeued by the agent of its node before Slurm books its end.
 * Where that was not possible (no agent, it was late, slurmctld had crashed and forgotten it), the
 * job FAILED, and the controller requeues it. By then Slurm has judged what depends on it, and does
 * not do so again (seen on 22.05):
 *
 *     job 12    FAILED, then PENDING, at last COMPLETED
 *     job 13    PENDING (DependencyNeverSatisfied): afterok:12(failed)
 *
 * As soon as job 12 is requeued, the dependency of job 13 is set anew, as it was: Slurm judges it
 * by what job 12 is now. All of it is seen in Slurm's records, so that a controller that was killed
 * goes on with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "slurm/controller_state.h"

/* Chosen: Slurm may go on to show the dependency as failed, for a reason that is not known here. */
#define RENEWAL_PERIOD_US (60 * SECOND_US)

void controller_note_dependent(struct slurm_controller *controller, const struct slurm_job *record)
{
    if (record->state != SLURM_STATE_PENDING || !slurm_job_has_dependency(record) ||
        !strstr(record->dependency, "(failed)"))
        return;
    if (ARRAY_APPEND(controller->broken_dependents, controller->n_broken_dependents,
            controller->broken_dependents_capacity, record) < 0)
        controller->is_broken = true;
}

/* It ran out of GPU memory, and waits or runs again. */
static bool is_run_again(const struct tracked_job *job)
{
    return job->ooms > 0 && job->record && !slurm_state_is_end(job->record->state);
}

/* Not twice for one job within the period; but for all that depend on it at once. */
static bool is_renewal_due(const struct slurm_controller *controller, const struct tracked_job *job)
{
    int64_t since_us = controller->now_us - job->renewed_us;
    bool is_due = job->renewed_us == 0 || since_us == 0 || since_us > RENEWAL_PERIOD_US;
    return is_due && is_run_again(job);
}

static struct tracked_job *find_task_of(struct slurm_controller *controller, uint32_t array)
{
    for (size_t i = 0; i < controller->n_all; i++)
        if (controller->all[i]->base == array && is_renewal_due(controller, controller->all[i]))
            return controller->all[i];
    return NULL;
}

/* The job that "12", "12_3" or "12_*" names, if its dependents are to wait for it again. */
static struct tracked_job *find_cause(struct slurm_controller *controller, const char *name)
{
    char *end;
    unsigned long base = strtoul(name, &end, 10), index = SLURM_NO_INDEX;
    if (strncmp(end, "_*", 2) == 0)
        return find_task_of(controller, (uint32_t)base);
    if (*end == '_')
        index = strtoul(end + 1, &end, 10);
    struct tracked_job *job = id_map_get(&controller->jobs, (uint64_t)base << 32 | (uint32_t)index);
    return job && is_renewal_due(controller, job) ? job : NULL;
}

/* A condition of a dependency: "afterok:12_3(failed)". */
static struct tracked_job *find_cause_of(struct slurm_controller *controller, const char *at)
{
    size_t size = strcspn(at, ",?");
    const char *state = memchr(at, '(', size), *colon = memchr(at, ':', size);
    bool is_success = strncmp(at, "afterok:", 8) == 0 || strncmp(at, "aftercorr:", 10) == 0;
    if (!is_success || !colon || !state || strncmp(state, "(failed)", 8) != 0)
        return NULL;
    return find_cause(controller, colon + 1);
}

/* Without the states that Slurm shows. Returns false when it is longer than `size`. */
static bool copy_dependency(const char *from, char *to, size_t size)
{
    size_t used = 0;
    while (*from) {
        size_t plain = strcspn(from, "(");
        if (used + plain >= size)
            return false;
        memcpy(to + used, from, plain);
        used += plain;
        from += plain;
        from += strcspn(from, ")");
        from += *from == ')';
    }
    to[used] = '\0';
    return true;
}

static void renew_dependency(struct slurm_controller *controller, const struct slurm_job *record)
{
    char text[SLURM_DEPENDENCY_MAX];
    bool is_due = false, is_task = record->array_id != 0 && !record->array_indices;
    for (const char *at = record->dependency; *at; at += strcspn(at, ",?")) {
        at += strspn(at, ",?");
        struct tracked_job *cause = find_cause_of(controller, at);
        if (cause)
            cause->renewed_us = controller->now_us;
        is_due |= cause != NULL;
    }
    if (!is_due || !copy_dependency(record->dependency, text, sizeof text))
        return;
    struct slurm_change *change = controller_add_change(controller, SLURM_DEPEND,
        is_task ? record->array_id : record->id, is_task ? record->array_index : SLURM_NO_INDEX);
    if (!change)
        return;
    change->moves = record->partition &&
                    strcmp(record->partition, controller->options.intake_partition) == 0;
    snprintf(change->dependency, sizeof change->dependency, "%s", text);
}

void controller_list_dependents(struct slurm_controller *controller)
{
    for (size_t i = 0; i < controller->n_broken_dependents; i++)
        renew_dependency(controller, controller->broken_dependents[i]);
}
