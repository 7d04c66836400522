/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that depend on the success of a job that failed and is run again.
 *
 * A job that ran out of GPU memory is requeued by the agent of its node before Slurm records its
 * end. If that was not possible (no agent, too late, slurmctld had crashed and forgotten it), the
 * job FAILED, and the controller requeues it. By then Slurm has judged the dependencies on it, and
 * does not do so again (observed with 22.05):
 *
 *     job 12    FAILED, then PENDING, at last COMPLETED
 *     job 13    PENDING (DependencyNeverSatisfied): afterok:12(failed)
 *
 * As soon as job 12 is requeued, the dependency of job 13 is set again, unchanged: Slurm judges it
 * by the present state of job 12. A failed request is repeated later, also when job 12 has
 * succeeded. If another job has finally failed, job 13 is not changed. All of this is in Slurm's
 * records, so a new controller continues after a kill.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "slurm/controller_state.h"

/* Chosen: Slurm may continue to show the dependency as failed, for a reason that colloc does not
 *         know. */
#define RENEWAL_PERIOD_US (60 * SECOND_US)

void controller_note_dependent(struct slurm_controller *controller, const struct slurm_job *record)
{
    if (record->state != SLURM_STATE_PENDING || !slurm_job_has_dependency(record) ||
        strnlen(record->dependency, SLURM_DEPENDENCY_MAX) == SLURM_DEPENDENCY_MAX ||
        !strstr(record->dependency, "(failed)"))
        return;
    if (ARRAY_APPEND(controller->broken_dependents, controller->n_broken_dependents,
            controller->broken_dependents_capacity, record) < 0)
        controller->is_broken = true;
}

/* Chosen: until a failed renewal is tried again. */
#define RENEWAL_AGAIN_US (2 * SECOND_US)

/* It ran out of GPU memory, and waits or runs again, or has succeeded by now. */
static bool is_run_again(const struct tracked_job *job)
{
    return job->ooms > 0 && job->record &&
           (!slurm_state_is_end(job->record->state) || job->record->state == SLURM_STATE_COMPLETED);
}

/* Not twice for one job within the period; but for all its dependents at once. */
static bool is_renewal_due(const struct slurm_controller *controller, const struct tracked_job *job)
{
    int64_t since_us = controller->now_us - job->renewed_us;
    bool is_due = job->renewed_us == 0 || since_us == 0 || since_us > RENEWAL_PERIOD_US;
    return is_due && is_run_again(job);
}

/*
 * Lists the jobs that are run again and have not ended, by their arrays: a text of a user is
 * compared with these only. A condition on a whole array may have failed by another of its tasks,
 * so a completed task is no cause.
 *
 * Returns whether the dependents of a job that is run again are due.
 */
static bool list_causes(struct slurm_controller *controller)
{
    bool is_any_due = false;
    id_map_fini(&controller->causes);
    for (size_t i = 0; i < controller->n_all; i++) {
        struct tracked_job *job = controller->all[i];
        if (!is_run_again(job))
            continue;
        bool is_due = is_renewal_due(controller, job);
        is_any_due |= is_due;
        if (!slurm_state_is_end(job->record->state) &&
            (is_due || !id_map_get(&controller->causes, job->base)) &&
            id_map_set(&controller->causes, job->base, job) < 0)
            controller->is_broken = true;
    }
    return is_any_due;
}

/* The job that "12", "12_3" or "12_*" names, if it is run again. */
static struct tracked_job *find_cause(struct slurm_controller *controller, const char *name)
{
    char *end;
    unsigned long base = strtoul(name, &end, 10), index = SLURM_NO_INDEX;
    if (strncmp(end, "_*", 2) == 0)
        return id_map_get(&controller->causes, (uint32_t)base);
    if (*end == '_')
        index = strtoul(end + 1, &end, 10);
    struct tracked_job *job = id_map_get(&controller->jobs, (uint64_t)base << 32 | (uint32_t)index);
    return job && is_run_again(job) ? job : NULL;
}

/* Removes the next condition, "afterok:12_3(failed)", from the front. Returns its size; 0: none. */
static size_t take_condition(const char **text, const char **ret_condition)
{
    *text += strspn(*text, ",?");
    *ret_condition = *text;
    size_t size = strcspn(*text, ",?");
    *text += size;
    return size;
}

static bool is_shown_as(const char *condition, size_t size, const char *shown)
{
    const char *state = memchr(condition, '(', size);
    return state && strncmp(state, shown, strlen(shown)) == 0;
}

static bool has_failed(const char *condition, size_t size)
{
    return is_shown_as(condition, size, "(failed)");
}

/* A condition names a task of an array by its own id or by the array's. */
static void list_ids(struct slurm_controller *controller)
{
    const struct slurm_snapshot *snapshot = &controller->snapshot;
    for (size_t i = 0; i < snapshot->n_jobs; i++) {
        const struct slurm_job *job = &snapshot->jobs[i];
        if (id_map_set(&controller->ids, job->id, controller) < 0 ||
            (job->array_id && id_map_set(&controller->ids, job->array_id, controller) < 0))
            controller->is_broken = true;
    }
}

/* After one condition has failed, slurmctld no longer judges the others (22.05): a condition that
 * it shows as open may be on a job that has failed since, and that it has forgotten. */
static bool is_forgotten(struct slurm_controller *controller, const char *condition, size_t size)
{
    const char *colon = memchr(condition, ':', size);
    bool any_end_counts = strncmp(condition, "after:", 6) == 0 ||
                          strncmp(condition, "afterany:", 9) == 0;
    if (!colon || any_end_counts || !is_shown_as(condition, size, "(unfulfilled)"))
        return false;
    if (controller->ids.count == 0)
        list_ids(controller);
    return !id_map_get(&controller->ids, strtoul(colon + 1, NULL, 10));
}

/* The job that is run again and whose success the condition requires; or NULL. */
static struct tracked_job *find_cause_of(
    struct slurm_controller *controller, const char *condition, size_t size)
{
    const char *colon = memchr(condition, ':', size);
    bool is_success = strncmp(condition, "afterok:", 8) == 0 ||
                      strncmp(condition, "aftercorr:", 10) == 0;
    return is_success && colon ? find_cause(controller, colon + 1) : NULL;
}

/*
 * Writes the dependency as the user set it, without the states that Slurm shows. slurmctld drops a
 * condition of a job that it has forgotten meanwhile, and would start the dependent although that
 * job failed. So no condition that has finally failed, or may have, is written:
 *
 *     afterok:12(failed),afterok:9(failed)    none: it cannot come true
 *     afterok:12(failed)?afterok:9(failed)    afterok:12
 *
 * ret_text: SLURM_DEPENDENCY_MAX bytes
 * Returns whether all failed conditions are of jobs that run again; in a list with "?", whether
 * some are.
 */
static bool restore_dependency(
    struct slurm_controller *controller, const char *dependency, char *ret_text)
{
    const char *condition, *separator = strchr(dependency, '?') ? "?" : ",";
    size_t size, used = 0;
    bool is_restored = false;
    while ((size = take_condition(&dependency, &condition)) > 0) {
        bool has_cause = has_failed(condition, size);
        if (has_cause ? !find_cause_of(controller, condition, size)
                      : is_forgotten(controller, condition, size)) {
            if (*separator == ',')
                return false;
            continue;
        }
        is_restored |= has_cause;
        used += (size_t)snprintf(ret_text + used, SLURM_DEPENDENCY_MAX - used, "%s%.*s",
            used ? separator : "", (int)strcspn(condition, "(,?"), condition);
        if (used >= SLURM_DEPENDENCY_MAX)
            return false;
    }
    return is_restored;
}

/* Notes that all causes of the dependency are done with. Returns whether one of them was due. */
static bool take_due_causes(struct slurm_controller *controller, const char *dependency)
{
    const char *condition;
    size_t size;
    bool is_due = false;
    while ((size = take_condition(&dependency, &condition)) > 0) {
        struct tracked_job *cause = has_failed(condition, size)
                                        ? find_cause_of(controller, condition, size)
                                        : NULL;
        if (!cause || !is_renewal_due(controller, cause))
            continue;
        cause->renewed_us = controller->now_us;
        is_due = true;
    }
    return is_due;
}

static void renew_dependency(struct slurm_controller *controller, const struct slurm_job *record)
{
    char text[SLURM_DEPENDENCY_MAX];
    bool is_task = record->array_id != 0 && !record->array_indices;
    if (!restore_dependency(controller, record->dependency, text) ||
        !take_due_causes(controller, record->dependency))
        return;
    struct slurm_change *change = controller_add_change(controller, SLURM_DEPEND,
        is_task ? record->array_id : record->id, is_task ? record->array_index : SLURM_NO_INDEX);
    if (!change)
        return;
    change->moves = record->partition &&
                    strcmp(record->partition, controller->options.intake_partition) == 0;
    change->begin_s = record->begin_s;
    snprintf(change->dependency, sizeof change->dependency, "%s", text);
}

/* Which causes it had is not known any more: all that were done with are due again soon. What was
 * renewed meanwhile is not shown as failed, and left alone. */
void controller_retry_renewals(struct slurm_controller *controller)
{
    for (size_t i = 0; i < controller->n_all; i++) {
        struct tracked_job *job = controller->all[i];
        if (job->renewed_us)
            job->renewed_us = controller->now_us - RENEWAL_PERIOD_US + RENEWAL_AGAIN_US;
    }
}

void controller_list_dependents(struct slurm_controller *controller)
{
    if (controller->n_broken_dependents == 0 || !list_causes(controller))
        return;
    id_map_fini(&controller->ids);
    for (size_t i = 0; i < controller->n_broken_dependents; i++)
        renew_dependency(controller, controller->broken_dependents[i]);
}
