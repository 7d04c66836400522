/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a job's request to Slurm that colloc needs before it reads the job's script: the
 * nodes that its user requests or excludes, their features (-w, -x, -C), and the numbers of GPUs
 * and nodes.
 *
 * Slurm stores these in the same fields that colloc writes. A pin is in the field of -w, so the
 * note (job_note.h) records whether the user had requested nodes, too:
 *
 *     submitted with -w n1,n2    required n1,n2                            rule n1,n2
 *     pinned to n1               required n1, note: node=n1 bound=1        rule n1,n2
 *     a new controller sees it   the same                                  rule n1
 *     returned, -w removed       required "", by an administrator          no rule
 *
 * Slurm's fields do not show the GPUs that a user requested, either: the guard in slurmctld takes
 * them out of a submission and writes them into the note, and a pin has shards. So the note is read
 * first.
 */
#include <stdlib.h>
#include <string.h>

#include "slurm/job_request.h"

static void set_rule(struct slurm_controller *controller, char **rule, const char *text)
{
    text = text ? text : "";
    if (*rule ? strcmp(*rule, text) == 0 : !*text)
        return;
    free(*rule);
    *rule = *text ? strdup(text) : NULL;
    controller->is_broken |= *text && !*rule;
}

/* Slurm stores a pin's node in the field of the user's -w. If the job was pinned to this node, the
 * field says nothing new: its former request remains valid. */
static void follow_required_nodes(
    struct slurm_controller *controller, struct tracked_job *job, const struct slurm_job *record)
{
    const char *nodes = record->required_nodes ? record->required_nodes : "";
    struct job_note note;
    if (job->rules[0] ? strcmp(nodes, job->rules[0]) == 0 : !*nodes)
        return;
    job_note_parse(record->admin_comment, &note);
    if (note.nodes.size == 0 || !span_is(note.nodes, nodes))
        set_rule(controller, &job->rules[0], nodes);
    else if (note.is_bound && !job->rules[0])
        set_rule(controller, &job->rules[0], nodes);
}

void controller_follow_rules(
    struct slurm_controller *controller, struct tracked_job *job, const struct slurm_job *record)
{
    follow_required_nodes(controller, job, record);
    set_rule(controller, &job->rules[1], record->excluded_nodes);
    set_rule(controller, &job->rules[2], record->features);
}

void tracked_job_set_wanted(
    struct tracked_job *job, const struct slurm_job *record, const struct job_note *note)
{
    int64_t nodes = record->nodes > 1 ? record->nodes : 1;
    int64_t each = note->want ? note->want : gres_count(span_of_optional(record->gres), "gpu");
    int64_t total = note->total ? note->total
                                : gres_count(span_of_optional(record->other_gres), "gpu");
    int64_t gpus = each * nodes > total ? each * nodes : total;
    gpus = gpus > 0 ? gpus : nodes;
    job->request.gpus = gpus < INT32_MAX ? (int)gpus : INT32_MAX;
    job->request.nodes = (int)nodes;
    job->nodes_shown = record->nodes;
}
