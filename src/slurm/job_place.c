/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a job is: its nodes, and the indices of its GPUs, which are the same on each of them.
 *
 * A running controller has this from the core, which has placed the job. A new controller reads it
 * from Slurm's records and from the job's note (job_note.h). Here is job 17, pinned to the GPUs 0
 * and 3 of two nodes, with 12 shards of each:
 *
 *     required nodes   n1,n4                        of a job that runs: its list of nodes
 *     tres_per_node    gres:shard:i0:12,shard:i3:12
 *     note             node=n1,n4 gpus=0,3 shards=12 smact=20
 *     in the core      GPUs 0, 3, 12 and 15, where the nodes n1 to n4 have four each
 *
 * Slurm's fields count where they differ from the note: an administrator has changed them by hand.
 * A job whose pin does not count any more, because it ran out of GPU memory or was requeued, was
 * where its note says.
 */
#include "slurm/job_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/job_task.h"

void controller_clear_place(struct tracked_job *job)
{
    free(job->node_list);
    job->node_list = NULL;
    job->node = -1;
    job->indices = 0;
}

void controller_set_place(
    struct slurm_controller *controller, struct tracked_job *job, const int *gpus, int n)
{
    const struct node_table *nodes = &controller->nodes;
    char list[SLURM_NODES_MAX] = "";
    size_t used = 0;
    controller_clear_place(job);
    for (int i = 0, node = -1; i < n; i++) {
        const struct cluster_gpu *gpu = &nodes->gpus[gpus[i]];
        job->indices |= UINT64_C(1) << gpu->index;
        if (gpu->node != node && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "",
                nodes->nodes[gpu->node]->name);
        node = gpu->node;
    }
    job->node = nodes->gpus[gpus[0]].node;
    if (strchr(list, ',') && !(job->node_list = strdup(list)))
        controller->is_broken = true;
}

const char *controller_nodes_of(
    const struct slurm_controller *controller, const struct tracked_job *job)
{
    if (job->node_list)
        return job->node_list;
    return job->node >= 0 ? controller->nodes.nodes[job->node]->name : "";
}

/* ---- found again ---- */

/* Lists the GPUs of these indices on each node of the list, node by node. Returns the scratch list;
 * `ret_n` 0: a node is unknown, or lacks one of them. */
static const int *list_gpus(
    struct slurm_controller *controller, const char *list, uint64_t indices, int *ret_n)
{
    struct node_table *nodes = &controller->nodes;
    struct span rest = span_of_optional(list), name;
    *ret_n = 0;
    if (ARRAY_RESERVE(controller->found_gpus, controller->found_capacity, nodes->n_gpus + 1) < 0) {
        controller->is_broken = true;
        return NULL;
    }
    for (size_t n = 0; node_list_next(&rest, &name); *ret_n = (int)n) {
        int number = node_table_find(nodes, name);
        for (int i = 0; i < GRES_INDEX_MAX; i++) {
            if (!(indices >> i & 1))
                continue;
            if (number < 0 || nodes->nodes[number]->gpus[i] < 0 || n == nodes->n_gpus) {
                *ret_n = 0;
                return NULL;
            }
            controller->found_gpus[n++] = nodes->nodes[number]->gpus[i];
        }
    }
    return controller->found_gpus;
}

/* The GPUs that the record names, node by node: a scratch list. `ret_shards`: of each. Returns NULL
 * when it names none, or nodes or GPUs that are not known. */
static const int *find_gpus(struct slurm_controller *controller, const struct slurm_job *record,
    bool is_running, int *ret_n, int64_t *ret_shards)
{
    int64_t shards[GRES_INDEX_MAX];
    uint64_t indices = 0;
    gres_counts_by_index(span_of_optional(record->gres), "shard", shards);
    for (int i = 0; i < GRES_INDEX_MAX; i++) {
        if (shards[i] == 0)
            continue;
        indices |= UINT64_C(1) << i;
        *ret_shards = shards[i];
    }
    const char *list = is_running ? record->node_list : record->required_nodes;
    const int *gpus = list_gpus(controller, list, indices, ret_n);
    return *ret_n > 0 ? gpus : NULL;
}

/* The data of a job that another controller has placed: its shards, and its note. */
static void restore_request(
    const struct slurm_controller *controller, struct tracked_job *job, int gpu)
{
    struct job_note note;
    job_note_parse(job->record->admin_comment, &note);
    if (job->request.need.kind < NEED_ESTIMATED)
        job->request.need = (struct need){
            NEED_ESTIMATED, job->shards * node_table_shard_bytes(&controller->nodes, gpu)};
    if (!job->request.expect.smact.valid && note.smact_percent >= 0)
        job->request.expect.smact = reading_of(note.smact_percent / 100.0);
}

bool controller_restore_placed(
    struct slurm_controller *controller, struct tracked_job *job, bool is_running)
{
    int n;
    int64_t shards;
    const int *gpus = find_gpus(controller, job->record, is_running, &n, &shards);
    if (!gpus)
        return false;
    controller_drop_task(controller, job);
    controller_set_place(controller, job, gpus, n);
    job->shards = shards;
    job->request.gpus = n;
    job->request.nodes = n / __builtin_popcountll(job->indices);
    restore_request(controller, job, gpus[0]);
    controller_submit_task(controller, job);
    controller_place_task(controller, job, gpus, n, is_running);
    if (is_running && job->shards < controller->nodes.gpus[gpus[0]].shards) /* perhaps not alone */
        controller_apply(
            controller, (struct event){.kind = EVENT_EXTERNAL_SEEN, .task = job->task});
    job->phase = is_running ? JOB_RUNNING : JOB_PLACED;
    return true;
}

void controller_restore_place(
    struct slurm_controller *controller, struct tracked_job *job, const struct job_note *note)
{
    char list[SLURM_NODES_MAX];
    int n = 0;
    const int *gpus = span_copy(note->nodes, list, sizeof list)
                          ? list_gpus(controller, list, note->gpus, &n)
                          : NULL;
    if (n > 0)
        controller_set_place(controller, job, gpus, n);
    else
        controller_clear_place(job);
    job->indices = note->gpus;
}

bool controller_runs_as_placed(struct slurm_controller *controller, const struct tracked_job *job)
{
    const struct task *task = core_task(controller->core, job->task);
    int n, n_same = 0;
    int64_t shards;
    const int *gpus = find_gpus(controller, job->record, true, &n, &shards);
    if (!gpus || !task || n != task->n_gpus)
        return false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            n_same += gpus[i] == task->gpus[k];
    return n_same == n;
}

const int *controller_former_gpus(
    struct slurm_controller *controller, const struct tracked_job *job)
{
    int n, wanted = job->request.gpus;
    const char *list = controller_nodes_of(controller, job);
    const int *gpus = list_gpus(controller, list, job->indices, &n);
    if (n == wanted && n > 0)
        return gpus;
    for (n = 0; n < wanted && n < (int)controller->nodes.n_gpus && controller->found_gpus; n++)
        controller->found_gpus[n] = n;
    return n > 0 && n == wanted ? controller->found_gpus : NULL;
}
